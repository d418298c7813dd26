public import LarderTime

/// Dates in header fields (RFC 9110 §5.6.7), always in UTC and in English, whatever the locale.
public enum HTTPDate {
    /// The form that is sent: `Sun, 06 Nov 1994 08:49:37 GMT`.
    public static func format(_ time: WallTime) -> String {
        var bytes: [UInt8] = []
        appendIMF(time, to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    /// How many bytes the sent form has.
    package static let byteCount = 29

    /// Appends the form that is sent.
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

    /// Reads any of the three forms that a recipient must understand; nil for anything else.
    ///
    /// - Parameter now: tells the century of the two-digit years of RFC 850: one that would be more than 50 years ahead is
    ///   the last one past.
    public static func parse(_ text: String, now: WallTime = WallTime(seconds: 1_767_225_600)) -> WallTime? {
        let parts = text.split(separator: " ", omittingEmptySubsequences: true)
        switch parts.count {
        case 6:  // Sun, 06 Nov 1994 08:49:37 GMT
            guard parts[0].utf8.count == 4, parts[0].hasSuffix(","), isDay(parts[0].dropLast(), isShort: true),
                parts[5] == "GMT", parts[1].utf8.count == 2, parts[3].utf8.count == 4
            else { return nil }
            return time(day: parts[1], month: parts[2], year: Int(parts[3]), clock: parts[4])
        case 4:  // Sunday, 06-Nov-94 08:49:37 GMT
            let date = parts[1].split(separator: "-", omittingEmptySubsequences: false)
            guard parts[0].hasSuffix(","), isDay(parts[0].dropLast(), isShort: false), parts[3] == "GMT",
                date.count == 3,
                date[2].utf8.count == 2, let short = Int(date[2])
            else { return nil }
            let thisYear = CivilTime(now).year
            var year = thisYear / 100 * 100 + short
            if year > thisYear + 50 { year -= 100 }
            return time(day: date[0], month: date[1], year: year, clock: parts[2])
        case 5:  // Sun Nov  6 08:49:37 1994
            guard isDay(parts[0], isShort: true), parts[4].utf8.count == 4 else { return nil }
            return time(day: parts[2], month: parts[1], year: Int(parts[4]), clock: parts[3])
        default: return nil
        }
    }

    private static func time(day: Substring, month: Substring, year: Int?, clock: Substring) -> WallTime? {
        let parts = clock.split(separator: ":", omittingEmptySubsequences: false)
        guard let year, let day = number(day), let month = months.firstIndex(of: String(month)), parts.count == 3,
            parts.allSatisfy({ $0.utf8.count == 2 }), let hour = number(parts[0]), let minute = number(parts[1]),
            let second = number(parts[2])
        else { return nil }
        return CivilTime(year: year, month: month + 1, day: day, hour: hour, minute: minute, second: second).time
    }

    private static func number(_ text: Substring) -> Int? {
        guard (1...2).contains(text.utf8.count), text.utf8.allSatisfy({ $0 &- UInt8(ascii: "0") < 10 }) else {
            return nil
        }
        return Int(text)
    }

    private static func isDay(_ text: Substring, isShort: Bool) -> Bool {
        days.contains { isShort ? $0.prefix(3) == text : $0 == text }
    }

    private static let days = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
}
