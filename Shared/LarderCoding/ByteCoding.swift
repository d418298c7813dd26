/// Numbers, lowest byte first, and texts with their lengths before them.
extension [UInt8] {
    package mutating func append(number: some FixedWidthInteger) {
        for shift in stride(from: 0, to: number.bitWidth, by: 8) { append(UInt8(truncatingIfNeeded: number >> shift)) }
    }

    package mutating func append(part: some Collection<UInt8>) {
        append(number: UInt32(part.count))
        append(contentsOf: part)
    }
}

extension ArraySlice<UInt8> {
    /// Removes a number from the beginning; nil if there are too few bytes.
    package mutating func takeNumber<Number: FixedWidthInteger>(_ type: Number.Type = Number.self) -> Number? {
        let count = Number.bitWidth / 8
        guard self.count >= count else { return nil }
        defer { removeFirst(count) }
        return prefix(count).reversed().reduce(0) { $0 << 8 | Number(truncatingIfNeeded: $1) }
    }

    /// Removes a part with its length from the beginning; nil if there are too few bytes.
    package mutating func takePart() -> ArraySlice<UInt8>? {
        guard let count = takeNumber(UInt32.self), count <= self.count else { return nil }
        defer { removeFirst(Int(count)) }
        return prefix(Int(count))
    }

    /// Removes a text with its length from the beginning; nil if there are too few bytes.
    package mutating func takeText() -> String? { takePart().map { String(decoding: $0, as: UTF8.self) } }
}
