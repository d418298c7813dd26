/// A wall time in the proleptic Gregorian calendar, UTC.
package struct CivilTime: Sendable, Hashable {
    package var year: Int
    /// 1 to 12.
    package var month: Int
    /// 1 to 31.
    package var day: Int
    package var hour: Int
    package var minute: Int
    package var second: Int
    package var nanosecond: Int
    /// 0 is Sunday. Ignored when this is converted to a time.
    package var weekday: Int

    package init(
        year: Int,
        month: Int,
        day: Int,
        hour: Int = 0,
        minute: Int = 0,
        second: Int = 0,
        nanosecond: Int = 0,
        weekday: Int = 0
    ) {
        self.year = year
        self.month = month
        self.day = day
        self.hour = hour
        self.minute = minute
        self.second = second
        self.nanosecond = nanosecond
        self.weekday = weekday
    }

    /// The calendar date and time in UTC.
    package init(_ time: WallTime) {
        let seconds = time.seconds
        let days = Int(seconds.flooredDivision(by: 86_400))
        let ofDay = Int(seconds) - days * 86_400
        // Days since 0000-03-01 in eras of 400 years, so that leap days are last.
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
        year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        hour = ofDay / 3_600
        minute = ofDay / 60 % 60
        second = ofDay % 60
        // Computed without a product with the seconds, which would overflow for the earliest times.
        let fraction = Int(time.nanosecondsSinceEpoch % 1_000_000_000)
        nanosecond = fraction < 0 ? fraction + 1_000_000_000 : fraction
        weekday = ((days % 7) + 11) % 7
    }

    /// The time; nil for an invalid date or time, and for years before 1700 and after 2250.
    package var time: WallTime? {
        guard (1...12).contains(month), day >= 1, day <= Self.days(in: month, of: year), (0..<24).contains(hour),
            (0..<60).contains(minute), (0...60).contains(second), (1_700...2_250).contains(year)
        else { return nil }
        let shiftedYear = month <= 2 ? year - 1 : year
        let era = shiftedYear / 400
        let yearOfEra = shiftedYear - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        let days = era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
        let seconds = days * 86_400 + hour * 3_600 + minute * 60 + second
        return WallTime(nanosecondsSinceEpoch: Int64(seconds) * 1_000_000_000 + Int64(nanosecond))
    }

    package static func days(in month: Int, of year: Int) -> Int {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }
}
