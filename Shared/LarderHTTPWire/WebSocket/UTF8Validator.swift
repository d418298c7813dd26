/// Checks UTF-8 as it arrives, in pieces of any size (Unicode 15, table 3-7: no overlong forms, no surrogates).
package struct UTF8Validator: Sendable {
    private var continuationsLeft = 0
    private var lower: UInt8 = 0x80
    private var upper: UInt8 = 0xBF

    package init() {}

    /// Whether the bytes so far end at a character boundary.
    package var isComplete: Bool { continuationsLeft == 0 }

    /// Consumes bytes; false as soon as one of them is invalid.
    package mutating func accept(_ bytes: Span<UInt8>) -> Bool {
        let words = unsafe bytes.bytes
        var index = 0
        let count = bytes.count
        while index < count {
            if continuationsLeft == 0 {
                // Most text is ASCII: eight bytes at a time.
                while index + 8 <= count,
                    unsafe words.unsafeLoadUnaligned(fromUncheckedByteOffset: index, as: UInt64.self)
                        & 0x8080_8080_8080_8080 == 0
                {
                    index += 8
                }
                guard index < count else { return true }
            }
            guard accept(bytes[index]) else { return false }
            index += 1
        }
        return true
    }

    private mutating func accept(_ byte: UInt8) -> Bool {
        guard continuationsLeft == 0 else {
            guard byte >= lower, byte <= upper else { return false }
            (lower, upper) = (0x80, 0xBF)
            continuationsLeft -= 1
            return true
        }
        switch byte {
        case 0x00...0x7F: return true
        case 0xC2...0xDF: continuationsLeft = 1
        case 0xE0: (continuationsLeft, lower) = (2, 0xA0)
        case 0xED: (continuationsLeft, upper) = (2, 0x9F)
        case 0xE1...0xEF: continuationsLeft = 2
        case 0xF0: (continuationsLeft, lower) = (3, 0x90)
        case 0xF1...0xF3: continuationsLeft = 3
        case 0xF4: (continuationsLeft, upper) = (3, 0x8F)
        default: return false
        }
        return true
    }
}
