/// Searches in bytes, eight at a time: most bytes of a head are part of a name or a value.
enum ByteSearch {
    /// The index of the first control character (below 0x20, or 0x7F) at or after `start`; `bytes.count` if there is none.
    static func firstControl(in bytes: Span<UInt8>, from start: Int) -> Int {
        let raw = unsafe bytes.bytes
        var index = start
        while index + 8 <= bytes.count {
            // The first byte is the least significant one.
            let word = UInt64(littleEndian: unsafe raw.unsafeLoadUnaligned(fromByteOffset: index, as: UInt64.self))
            let found = controls(word)
            guard found == 0 else { return index + found.trailingZeroBitCount / 8 }
            index += 8
        }
        while index < bytes.count, bytes[index] >= 0x20, bytes[index] != 0x7F { index += 1 }
        return index
    }

    /// The index of the first CR at or after `start`; `bytes.count` if there is none.
    static func firstCR(in bytes: Span<UInt8>, from start: Int) -> Int {
        var index = firstControl(in: bytes, from: start)
        while index < bytes.count, bytes[index] != 0x0D { index = firstControl(in: bytes, from: index + 1) }
        return index
    }

    /// Sets the highest bit of the least significant byte of `word` that is a control character. Bits of more significant bytes may be set
    /// without reason, because a subtraction borrows from them; 0 if there is no control character.
    private static func controls(_ word: UInt64) -> UInt64 {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let belowSpace = (word &- ones &* 0x20) & ~word
        let delete = word ^ (ones &* 0x7F)
        let isDelete = (delete &- ones) & ~delete
        return (belowSpace | isDelete) & (ones &* 0x80)
    }
}
