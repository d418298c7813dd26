/// Base64 (RFC 4648): the standard alphabet with padding, and the URL-safe one without.
package enum Base64 {
    package static func encode(_ bytes: [UInt8]) -> String { encode(bytes, standard, isPadded: true) }
    package static func encodeURL(_ bytes: [UInt8]) -> String { encode(bytes, urlSafe, isPadded: false) }

    /// The bytes of padded standard Base64, or nil for anything else, non-zero bits after the end included.
    package static func decode(_ text: String) -> [UInt8]? {
        guard text.utf8.count % 4 == 0 else { return nil }
        var digits = Substring(text)
        if digits.hasSuffix("=") { digits.removeLast() }
        if digits.hasSuffix("=") { digits.removeLast() }
        guard text.utf8.count - digits.utf8.count == (4 - digits.utf8.count % 4) % 4 else { return nil }
        return decode(digits, UInt8(ascii: "+"), UInt8(ascii: "/"))
    }

    /// The bytes of unpadded URL-safe Base64, or nil for anything else, non-zero bits after the end included.
    package static func decodeURL(_ text: String) -> [UInt8]? {
        decode(Substring(text), UInt8(ascii: "-"), UInt8(ascii: "_"))
    }

    private static let standard = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    private static let urlSafe = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    /// Puts in the place of the last bytes, from `start` on, what `encodeURL` makes of them: nothing is allocated for it.
    package static func encodeURL(from start: Int, in bytes: inout [UInt8]) {
        let end = bytes.count
        append(start..<end, of: &bytes, urlSafe, isPadded: false)
        bytes.removeSubrange(start..<end)
    }

    private static func encode(_ bytes: [UInt8], _ alphabet: [UInt8], isPadded: Bool) -> String {
        var text = bytes
        text.reserveCapacity(bytes.count + (bytes.count + 2) / 3 * 4)
        append(0..<bytes.count, of: &text, alphabet, isPadded: isPadded)
        return String(decoding: text[bytes.count...], as: UTF8.self)
    }

    /// Appends the digits of some of the bytes to all of them.
    private static func append(_ range: Range<Int>, of text: inout [UInt8], _ alphabet: [UInt8], isPadded: Bool) {
        var index = range.lowerBound
        while index < range.upperBound {
            let count = min(3, range.upperBound - index)
            var group = UInt32(text[index]) << 16
            if count > 1 { group |= UInt32(text[index + 1]) << 8 }
            if count > 2 { group |= UInt32(text[index + 2]) }
            for digit in 0..<4 {
                if digit <= count {
                    text.append(alphabet[Int(group >> UInt32(18 - 6 * digit)) & 63])
                } else if isPadded {
                    text.append(UInt8(ascii: "="))
                }
            }
            index += 3
        }
    }

    private static func decode(_ text: Substring, _ digit62: UInt8, _ digit63: UInt8) -> [UInt8]? {
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
            case digit62: value = 62
            case digit63: value = 63
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
        // Six left-over bits are a lone character, and bits that are not zero belong to no byte.
        return count < 6 && bits == 0 ? bytes : nil
    }
}
