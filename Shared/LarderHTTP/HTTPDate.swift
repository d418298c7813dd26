package import LarderTime

/// Dates in header fields (RFC 9110 §5.6.7), in UTC and English, independent of the locale.
package enum HTTPDate {
    /// The preferred form: `Sun, 06 Nov 1994 08:49:37 GMT`.
    package static func format(_ time: WallTime) -> String {
        var bytes: [UInt8] = []
        appendIMF(time, to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The length of the preferred form, in bytes.
    package static let byteCount = 29

    /// Appends the preferred form.
    package static func appendIMF(_ time: WallTime, to bytes: inout [UInt8]) {
        let civil = CivilTime(time)
        bytes.append(contentsOf: days[civil.weekday].utf8.prefix(3))
        bytes.append(contentsOf: ", ".utf8)
        bytes.append(digits: civil.day, count: 2)
        bytes.append(0x20)
        bytes.append(contentsOf: months[civil.month - 1].utf8)
        bytes.append(0x20)
        bytes.append(digits: civil.year, count: 4)
        bytes.append(0x20)
        bytes.append(digits: civil.hour, count: 2)
        bytes.append(UInt8(ascii: ":"))
        bytes.append(digits: civil.minute, count: 2)
        bytes.append(UInt8(ascii: ":"))
        bytes.append(digits: civil.second, count: 2)
        bytes.append(contentsOf: " GMT".utf8)
    }

    /// Parses the three forms that a recipient must accept; nil for anything else. Dates before 1700 and after 2250
    /// become the ends of the range of `WallTime`.
    ///
    /// The case of names is ignored, as RFC 9111 §4.2 asks of caches. Parts are separated by exactly one space.
    ///
    /// - Parameter now: determines the century of a two-digit year (RFC 850): the last one in which the date is at
    ///   most 50 years ahead.
    package static func parse(_ text: String, now: WallTime) -> WallTime? {
        // No form is longer than this.
        guard text.utf8.count <= 64 else { return nil }
        let parts = text.lowercased().split(separator: " ", omittingEmptySubsequences: false)
        switch parts.count {
        case 6 where parts[2].isEmpty:  // Sun Nov  6 08:49:37 1994
            guard parts[3].utf8.count == 1 else { return nil }
            return asctime([parts[0], parts[1], parts[3], parts[4], parts[5]])
        case 6:  // Sun, 06 Nov 1994 08:49:37 GMT
            guard parts[0].utf8.count == 4, parts[0].hasSuffix(","), isDay(parts[0].dropLast(), isShort: true),
                parts[5] == "gmt", parts[1].utf8.count == 2, let year = number(parts[3], digits: 4)
            else { return nil }
            return time(day: parts[1], month: parts[2], year: year, clock: parts[4])
        case 4:  // Sunday, 06-Nov-94 08:49:37 GMT
            let date = parts[1].split(separator: "-", omittingEmptySubsequences: false)
            guard parts[0].hasSuffix(","), isDay(parts[0].dropLast(), isShort: false), parts[3] == "gmt",
                date.count == 3, let short = number(date[2], digits: 2)
            else { return nil }
            return latest(before: now) { century in
                time(day: date[0], month: date[1], year: century + short, clock: parts[2])
            }
        case 5:  // Sun Nov 16 08:49:37 1994
            guard parts[2].utf8.count == 2 else { return nil }
            return asctime(parts)
        default: return nil
        }
    }

    private static func asctime(_ parts: [Substring]) -> WallTime? {
        guard isDay(parts[0], isShort: true), let year = number(parts[4], digits: 4) else { return nil }
        return time(day: parts[2], month: parts[1], year: year, clock: parts[3])
    }

    /// The latest interpretation of a date that is at most 50 years ahead.
    private static func latest(before now: WallTime, _ reading: (_ century: Int) -> WallTime?) -> WallTime? {
        var limit = CivilTime(now)
        limit.year += 50
        // The 29th of February has no counterpart in most years.
        if limit.month == 2 { limit.day = min(limit.day, 28) }
        let century = CivilTime(now).year / 100 * 100
        for candidate in [century + 100, century, century - 100] {
            if let time = reading(candidate), limit.time.map({ time <= $0 }) ?? true { return time }
        }
        return nil
    }

    private static func time(day: Substring, month: Substring, year: Int, clock: Substring) -> WallTime? {
        let parts = clock.split(separator: ":", omittingEmptySubsequences: false)
        guard let day = number(day), let month = lowercasedMonths.firstIndex(of: String(month)), parts.count == 3,
            parts.allSatisfy({ $0.utf8.count == 2 }), let hour = number(parts[0]), let minute = number(parts[1]),
            let second = number(parts[2])
        else { return nil }
        guard !(1_700...2_250).contains(year) else {
            return CivilTime(year: year, month: month + 1, day: day, hour: hour, minute: minute, second: second).time
        }
        // A date outside the range of `WallTime` becomes one of its ends: many servers write the year 9999 for "never expires".
        guard day >= 1, day <= CivilTime.days(in: month + 1, of: year),
            CivilTime(year: 2_000, month: 1, day: 1, hour: hour, minute: minute, second: second).time != nil
        else { return nil }
        return WallTime(nanosecondsSinceEpoch: year > 2_250 ? .max : .min)
    }

    private static func number(_ text: Substring, digits: Int? = nil) -> Int? {
        guard digits.map({ text.utf8.count == $0 }) ?? (1...2).contains(text.utf8.count),
            text.utf8.allSatisfy({ $0 &- UInt8(ascii: "0") < 10 })
        else {
            return nil
        }
        return Int(text)
    }

    private static func isDay(_ text: Substring, isShort: Bool) -> Bool {
        lowercasedDays.contains { isShort ? $0.prefix(3) == text : $0 == text }
    }

    private static let days = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
    private static let lowercasedDays = days.map { $0.lowercased() }
    private static let lowercasedMonths = months.map { $0.lowercased() }
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
}
