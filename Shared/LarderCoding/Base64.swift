/// Base64 (RFC 4648): the standard alphabet with padding, and the URL-safe one without.
package enum Base64 {
    package static func encode(_ bytes: [UInt8]) -> String { encode(bytes, .standard, isPadded: true) }
    package static func encodeURL(_ bytes: [UInt8]) -> String { encode(bytes, .urlSafe, isPadded: false) }

    /// Decodes padded standard Base64; nil for anything else, including non-zero trailing bits.
    package static func decode(_ text: String) -> [UInt8]? {
        guard text.utf8.count % 4 == 0 else { return nil }
        var digits = Substring(text)
        if digits.hasSuffix("=") { digits.removeLast() }
        if digits.hasSuffix("=") { digits.removeLast() }
        guard text.utf8.count - digits.utf8.count == (4 - digits.utf8.count % 4) % 4 else { return nil }
        return decode(digits, .standard)
    }

    /// Decodes unpadded URL-safe Base64; nil for anything else, including non-zero trailing bits.
    package static func decodeURL(_ text: String) -> [UInt8]? { decode(text[...], .urlSafe) }

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

    private static func encode(_ bytes: [UInt8], _ alphabet: Alphabet, isPadded: Bool) -> String {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count + 2) / 3 * 4)
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let count = min(3, bytes.count - start)
            var group = UInt32(bytes[start]) << 16
            if count > 1 { group |= UInt32(bytes[start + 1]) << 8 }
            if count > 2 { group |= UInt32(bytes[start + 2]) }
            for digit in 0..<4 where digit <= count || isPadded {
                let value = UInt8(truncatingIfNeeded: group >> UInt32(18 - 6 * digit)) & 63
                text.append(digit <= count ? alphabet[value] : UInt8(ascii: "="))
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    private static func decode(_ text: Substring, _ alphabet: Alphabet) -> [UInt8]? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.utf8.count * 3 / 4)
        var bits: UInt32 = 0
        var count = 0
        for character in text.utf8 {
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
                bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
                bits &= (1 << UInt32(count)) - 1
            }
        }
        // Six left-over bits mean a lone character, and trailing bits must be zero.
        return count < 6 && bits == 0 ? bytes : nil
    }
}
