import LarderTime

/// A timestamp as a JSON string, `"2026-11-21T09:00:00.123Z"`, packed into words. One is written for every row, and appending
/// single characters would cost more than computing them.
struct TimestampText {
    /// The 26 bytes, least significant first.
    private let words: (UInt64, UInt64, UInt64, UInt64)

    /// Correct for the years 1677 to 2262, the range of `WallTime`.
    init(_ time: WallTime) {
        let milliseconds = time.milliseconds
        let days = milliseconds.floored(by: 86_400_000)
        let ofDay = UInt64(bitPattern: milliseconds - days * 86_400_000)
        // Days since 0000-03-01, in eras of 400 years: leap days come last, which makes months regular. Not negative in the
        // supported range.
        let shifted = UInt64(bitPattern: days + 719_468)
        let era = shifted / 146_097
        let dayOfEra = shifted % 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        let day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        let (minutes, ofMinute) = ofDay.quotientAndRemainder(dividingBy: 60_000)
        let (hour, minute) = minutes.quotientAndRemainder(dividingBy: 60)
        let (second, millisecond) = ofMinute.quotientAndRemainder(dividingBy: 1_000)

        let (seconds, fraction) = (Self.two(second), Self.two(millisecond / 10))
        let minuteDigits = Self.two(minute)
        words = (
            Self.quote | Self.two(year / 100) << 8 | Self.two(year % 100) << 24 | Self.dash << 40
                | Self.two(month) << 48,
            Self.dash | Self.two(day) << 8 | Self.letterT << 24 | Self.two(hour) << 32 | Self.colon << 48
                | minuteDigits << 56,
            minuteDigits >> 8 | Self.colon << 8 | seconds << 16 | Self.dot << 32 | fraction << 40
                | (Self.zero + millisecond % 10) << 56,
            Self.letterZ | Self.quote << 8
        )
    }

    func append(to bytes: inout [UInt8]) {
        var words = (words.0.littleEndian, words.1.littleEndian, words.2.littleEndian, words.3.littleEndian)
        unsafe withUnsafeBytes(of: &words) { raw in
            unsafe bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: raw[..<26]))
        }
    }

    private static let quote = UInt64(UInt8(ascii: "\""))
    private static let dash = UInt64(UInt8(ascii: "-"))
    private static let colon = UInt64(UInt8(ascii: ":"))
    private static let dot = UInt64(UInt8(ascii: "."))
    private static let letterT = UInt64(UInt8(ascii: "T"))
    private static let letterZ = UInt64(UInt8(ascii: "Z"))
    private static let zero = UInt64(UInt8(ascii: "0"))

    /// Two digits, the first in the lower byte.
    @inline(__always) private static func two(_ value: UInt64) -> UInt64 {
        (zero + value / 10) | (zero + value % 10) << 8
    }
}

extension Int64 {
    /// The quotient rounded down, for a positive divisor.
    fileprivate func floored(by divisor: Int64) -> Int64 {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? quotient - 1 : quotient
    }
}
