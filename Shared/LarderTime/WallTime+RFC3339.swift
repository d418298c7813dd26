extension WallTime {
    /// Reads an RFC 3339 timestamp: with `Z` or an offset and up to nine digits of a fraction. Nil for anything else.
    public init?(rfc3339 text: String) {
        var text = text
        let parsed = text.withUTF8 { unsafe Self.parse(Span(_unsafeElements: $0)) }
        guard let parsed else { return nil }
        self = parsed
    }

    /// The time in UTC with exactly three digits of a fraction: `2026-01-01T00:00:00.000Z`.
    public func rfc3339() -> String {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(24)
        appendRFC3339(to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Appends what `rfc3339()` returns, without an allocation of its own.
    package func appendRFC3339(to bytes: inout [UInt8]) {
        let civil = CivilTime(self)
        bytes.append(digits: civil.year, count: 4)
        bytes.append(UInt8(ascii: "-"))
        bytes.append(digits: civil.month, count: 2)
        bytes.append(UInt8(ascii: "-"))
        bytes.append(digits: civil.day, count: 2)
        bytes.append(UInt8(ascii: "T"))
        bytes.append(digits: civil.hour, count: 2)
        bytes.append(UInt8(ascii: ":"))
        bytes.append(digits: civil.minute, count: 2)
        bytes.append(UInt8(ascii: ":"))
        bytes.append(digits: civil.second, count: 2)
        bytes.append(UInt8(ascii: "."))
        bytes.append(digits: civil.nanosecond / 1_000_000, count: 3)
        bytes.append(UInt8(ascii: "Z"))
    }

    private static func parse(_ text: Span<UInt8>) -> WallTime? {
        // 2026-01-01T00:00:00Z is the shortest.
        guard text.count >= 20, text.count <= 35, text[4] == UInt8(ascii: "-"), text[7] == UInt8(ascii: "-"),
            text[10] | 0x20 == UInt8(ascii: "t"), text[13] == UInt8(ascii: ":"), text[16] == UInt8(ascii: ":"),
            let year = number(text, 0, 4), let month = number(text, 5, 2), let day = number(text, 8, 2),
            let hour = number(text, 11, 2), let minute = number(text, 14, 2), let second = number(text, 17, 2)
        else { return nil }
        var index = 19
        var nanosecond = 0
        if text[index] == UInt8(ascii: ".") {
            index += 1
            var scale = 100_000_000
            let first = index
            while index < text.count, let digit = number(text, index, 1) {
                guard scale > 0 else { return nil }
                nanosecond += digit * scale
                scale /= 10
                index += 1
            }
            guard index > first else { return nil }
        }
        guard index < text.count else { return nil }
        var offset = 0
        switch text[index] {
        case UInt8(ascii: "Z"), UInt8(ascii: "z"): index += 1
        case UInt8(ascii: "+"), UInt8(ascii: "-"):
            guard index + 6 <= text.count, let hours = number(text, index + 1, 2), hours < 24,
                text[index + 3] == UInt8(ascii: ":"), let minutes = number(text, index + 4, 2), minutes < 60
            else { return nil }
            offset = (hours * 60 + minutes) * (text[index] == UInt8(ascii: "-") ? -1 : 1)
            index += 6
        default: return nil
        }
        let civil = CivilTime(
            year: year,
            month: month,
            day: day,
            hour: hour,
            minute: minute,
            second: second,
            nanosecond: nanosecond
        )
        guard index == text.count, let time = civil.time else { return nil }
        return time - .seconds(offset * 60)
    }

    private static func number(_ text: Span<UInt8>, _ start: Int, _ count: Int) -> Int? {
        guard start + count <= text.count else { return nil }
        var value = 0
        for index in start..<(start + count) {
            let digit = text[index] &- UInt8(ascii: "0")
            guard digit < 10 else { return nil }
            value = value * 10 + Int(digit)
        }
        return value
    }
}

extension [UInt8] {
    /// Appends a number with exactly that many decimal digits.
    package mutating func append(digits value: Int, count: Int) {
        var divisor = 1
        for _ in 1..<Swift.max(count, 2) where count > 1 { divisor *= 10 }
        var rest = value
        while divisor > 0 {
            append(UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: rest / divisor % 10))
            rest %= divisor
            divisor /= 10
        }
    }
}

extension WallTime: CustomStringConvertible {
    /// The time as RFC 3339.
    public var description: String { rfc3339() }
}
