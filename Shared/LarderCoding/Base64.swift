/// Base64 (RFC 4648): the standard alphabet with padding, and the URL-safe one without.
package enum Base64 {
    package static func encode(_ bytes: [UInt8]) -> String { encode(bytes, .standard, isPadded: true) }
    package static func encodeURL(_ bytes: [UInt8]) -> String { encodeURL(bytes.span) }

    /// Decodes padded standard Base64; nil for anything else, including non-zero trailing bits.
    package static func decode(_ text: String) -> [UInt8]? {
        guard text.utf8.count % 4 == 0 else { return nil }
        var digits = Substring(text)
        if digits.hasSuffix("=") { digits.removeLast() }
        if digits.hasSuffix("=") { digits.removeLast() }
        guard text.utf8.count - digits.utf8.count == (4 - digits.utf8.count % 4) % 4 else { return nil }
        var isWellFormed = false
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: digits.utf8.count * 3 / 4) { bytes, count in
            guard let end = unsafe read(digits.utf8, .standard, to: bytes) else { return }
            (count, isWellFormed) = (end, true)
        }
        return isWellFormed ? bytes : nil
    }

    /// The difference between the alphabets: the last two digits.
    private struct Alphabet {
        let digit62: UInt8
        let digit63: UInt8

        static var standard: Alphabet { Alphabet(digit62: UInt8(ascii: "+"), digit63: UInt8(ascii: "/")) }
        static var urlSafe: Alphabet { Alphabet(digit62: UInt8(ascii: "-"), digit63: UInt8(ascii: "_")) }

        subscript(value: UInt8) -> UInt8 {
            switch value {
            case 0..<26: UInt8(ascii: "A") &+ value
            case 26..<52: UInt8(ascii: "a") &+ (value &- 26)
            case 52..<62: UInt8(ascii: "0") &+ (value &- 52)
            case 62: digit62
            default: digit63
            }
        }
    }

    /// Encodes bytes, URL-safe and without padding.
    package static func encodeURL(_ bytes: Span<UInt8>) -> String {
        unsafe String(unsafeUninitializedCapacity: length(bytes.count, isPadded: false)) { text in
            unsafe write(bytes, .urlSafe, isPadded: false, to: text)
        }
    }

    /// Appends the URL-safe encoding of bytes, without padding.
    package static func appendURL(_ bytes: Span<UInt8>, to text: inout [UInt8]) {
        let start = text.count
        text.append(contentsOf: repeatElement(0, count: length(bytes.count, isPadded: false)))
        unsafe text.withUnsafeMutableBufferPointer { text in
            _ = unsafe write(bytes, .urlSafe, isPadded: false, to: UnsafeMutableBufferPointer(rebasing: text[start...]))
        }
    }

    private static func encode(_ bytes: [UInt8], _ alphabet: Alphabet, isPadded: Bool) -> String {
        unsafe String(unsafeUninitializedCapacity: length(bytes.count, isPadded: isPadded)) { text in
            unsafe write(bytes.span, alphabet, isPadded: isPadded, to: text)
        }
    }

    private static func length(_ count: Int, isPadded: Bool) -> Int {
        isPadded ? (count + 2) / 3 * 4 : (count * 4 + 2) / 3
    }

    /// Writes the encoding of bytes into a buffer with enough room; returns its length.
    @unsafe private static func write(
        _ bytes: Span<UInt8>,
        _ alphabet: Alphabet,
        isPadded: Bool,
        to text: UnsafeMutableBufferPointer<UInt8>
    ) -> Int {
        var (index, end) = (0, 0)
        while index < bytes.count {
            let count = min(3, bytes.count - index)
            var group = UInt32(bytes[index]) << 16
            if count > 1 { group |= UInt32(bytes[index + 1]) << 8 }
            if count > 2 { group |= UInt32(bytes[index + 2]) }
            for digit in 0..<4 where digit <= count || isPadded {
                let value = UInt8(truncatingIfNeeded: group >> UInt32(18 - 6 * digit)) & 63
                unsafe text[end] = digit <= count ? alphabet[value] : UInt8(ascii: "=")
                end += 1
            }
            index += 3
        }
        return end
    }

    /// Decodes unpadded URL-safe Base64 into a buffer with room for three quarters of the text.
    ///
    /// - Returns: the number of bytes; nil for invalid text, including non-zero trailing bits.
    @unsafe package static func readURL(_ text: String, to bytes: UnsafeMutableBufferPointer<UInt8>) -> Int? {
        guard text.utf8.count * 3 / 4 <= bytes.count else { return nil }
        return unsafe read(text.utf8, .urlSafe, to: bytes)
    }

    @unsafe private static func read(
        _ text: some Sequence<UInt8>,
        _ alphabet: Alphabet,
        to bytes: UnsafeMutableBufferPointer<UInt8>
    ) -> Int? {
        var bits: UInt32 = 0
        var (count, end) = (0, 0)
        for character in text {
            let value: UInt8
            switch character {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"): value = character - UInt8(ascii: "A")
            case UInt8(ascii: "a")...UInt8(ascii: "z"): value = character - UInt8(ascii: "a") + 26
            case UInt8(ascii: "0")...UInt8(ascii: "9"): value = character - UInt8(ascii: "0") + 52
            case alphabet.digit62: value = 62
            case alphabet.digit63: value = 63
            default: return nil
            }
            bits = bits << 6 | UInt32(value)
            count += 6
            if count >= 8 {
                count -= 8
                unsafe bytes[end] = UInt8(truncatingIfNeeded: bits >> UInt32(count))
                end += 1
                bits &= (1 << UInt32(count)) - 1
            }
        }
        // Six left-over bits mean a lone character, and trailing bits must be zero.
        return count < 6 && bits == 0 ? end : nil
    }
}
