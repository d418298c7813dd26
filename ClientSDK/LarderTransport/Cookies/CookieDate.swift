import LarderTime

/// Dates of cookies (RFC 6265 §5.1.1): day, month, year and time in any order, which many servers do not write as HTTP dates.
enum CookieDate {
    private static let months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]

    /// - Returns: nil if the text is no date. A year beyond 2250 becomes the last time.
    static func parse(_ text: String) -> WallTime? {
        var clock: [Int]?
        var day: Int?
        var month: Int?
        var year: Int?
        for token in text.split(whereSeparator: isDelimiter) {
            if clock == nil, let found = time(token) {
                clock = found
            } else if day == nil, let found = number(token, digits: 1...2) {
                day = found
            } else if month == nil, let found = months.firstIndex(of: token.prefix(3).lowercased()) {
                month = found + 1
            } else if year == nil, let found = number(token, digits: 2...4) {
                year = found < 70 ? found + 2_000 : found < 100 ? found + 1_900 : found
            }
        }
        guard let clock, let day, let month, let year, year >= 1_601 else { return nil }
        let shown = min(max(year, 1_700), 2_250)
        let civil = CivilTime(year: shown, month: month, day: day, hour: clock[0], minute: clock[1], second: clock[2])
        guard let time = civil.time else { return nil }
        return year > 2_250 ? WallTime(nanosecondsSinceEpoch: .max) : time
    }

    private static func isDelimiter(_ character: Character) -> Bool {
        guard let byte = character.asciiValue else { return false }
        switch byte {
        case 0x09, 0x20...0x2F, 0x3B...0x40, 0x5B...0x60, 0x7B...0x7E: return true
        default: return false
        }
    }

    /// Hours, minutes and seconds.
    private static func time(_ token: Substring) -> [Int]? {
        let parts = token.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 3 else { return nil }
        let numbers = parts.compactMap { number($0, digits: 1...2) }
        return numbers.count == 3 ? numbers : nil
    }

    /// The digits at the beginning, if they are as many as that.
    private static func number(_ token: Substring, digits: ClosedRange<Int>) -> Int? {
        let found = token.prefix { ("0"..."9").contains($0) }
        return digits.contains(found.count) ? Int(found) : nil
    }
}
