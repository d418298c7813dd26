import LarderTime

/// What rows are written with on the hot path: bytes straight into the body, no tree and no intermediate string.
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
        var digits: InlineArray<20, UInt8> = .init(repeating: 0)
        var start = 20
        var rest = value.magnitude
        repeat {
            start -= 1
            let (quotient, remainder) = rest.quotientAndRemainder(dividingBy: 10)
            digits[start] = UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: remainder)
            rest = quotient
        } while rest > 0
        if value < 0 { append(UInt8(ascii: "-")) }
        for index in start..<20 { append(digits[index]) }
    }

    /// Appends a timestamp as a JSON string.
    mutating func append(timestamp: WallTime) {
        append(UInt8(ascii: "\""))
        timestamp.appendRFC3339(to: &self)
        append(UInt8(ascii: "\""))
    }

    /// Appends a public identifier as a JSON string.
    mutating func append(identifier: EntityID) {
        append(UInt8(ascii: "\""))
        append(identifier.kind.prefix)
        append(decimal: identifier.row)
        append(UInt8(ascii: "\""))
    }

    /// Ends an entity whose members so far were written: its version and the time of its last change.
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
