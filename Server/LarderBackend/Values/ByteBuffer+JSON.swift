import LarderTime

/// Writes JSON on the hot path: bytes are appended directly to the body, without a tree and without intermediate strings.
extension [UInt8] {
    /// Appends the bytes of a literal.
    @inline(__always)
    mutating func append(_ literal: StaticString) {
        unsafe append(contentsOf: UnsafeBufferPointer(start: literal.utf8Start, count: literal.utf8CodeUnitCount))
    }

    /// Appends a decimal number.
    mutating func append(decimal value: Int64) {
        if value >= 0 && value < 10 {
            append(UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: value))
            return
        }
        if value < 0 { append(UInt8(ascii: "-")) }
        append(digits: value.magnitude, atLeast: 1)
    }

    /// Appends the digits of a number, eight at a time: they are packed into a word and copied once.
    private mutating func append(digits value: UInt64, atLeast least: Int) {
        var rest = value
        if rest >= 100_000_000 {
            append(digits: rest / 100_000_000, atLeast: 1)
            return append(digits: rest % 100_000_000, atLeast: 8)
        }
        var word: UInt64 = 0
        var count = 0
        repeat {
            word = word << 8 | (UInt64(UInt8(ascii: "0")) + rest % 10)
            rest /= 10
            count += 1
        } while rest > 0 || count < least
        var packed = word.littleEndian
        unsafe Swift.withUnsafeBytes(of: &packed) { raw in
            unsafe append(contentsOf: UnsafeRawBufferPointer(rebasing: raw[..<count]))
        }
    }

    /// Appends a timestamp as a JSON string.
    mutating func append(timestamp: WallTime) {
        TimestampText(timestamp).append(to: &self)
    }

    /// Appends a public identifier as a JSON string.
    mutating func append(identifier: EntityID) {
        append(UInt8(ascii: "\""))
        append(identifier.kind.prefix)
        append(decimal: identifier.row)
        append(UInt8(ascii: "\""))
    }

    /// Appends an entry of an index: an identifier and a version.
    mutating func append(entryOf id: EntityID, version: Int64) {
        append("{\"id\":")
        append(identifier: id)
        append(",\"version\":")
        append(decimal: version)
        append(UInt8(ascii: "}"))
    }

    /// Closes an entity: appends its version and modification time.
    mutating func append(version: Int64, updated: WallTime) {
        append(",\"version\":")
        append(decimal: version)
        append(",\"updatedAt\":")
        append(timestamp: updated)
        append(UInt8(ascii: "}"))
    }

    /// Appends the items of a list, separated by commas.
    mutating func append(items: [[UInt8]]) {
        for (index, item) in items.enumerated() {
            if index > 0 { append(UInt8(ascii: ",")) }
            append(contentsOf: item)
        }
    }
}
