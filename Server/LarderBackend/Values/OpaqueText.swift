import LarderCoding

/// Numbers encoded as URL-safe text with a checksum: the form of cursors and change tokens.
///
/// The checksum detects truncated or mistyped text. It is not secret: no access is protected by a token or cursor.
enum OpaqueText {
    /// The maximum length in characters, for encoding and decoding.
    static let lengthMaximum = 120

    static func encode(format: UInt8, _ numbers: [UInt64]) -> String {
        var bytes = [format]
        for number in numbers {
            var rest = number
            while rest >= 0x80 {
                bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
                rest >>= 7
            }
            bytes.append(UInt8(truncatingIfNeeded: rest))
        }
        return Base64.encodeURL(bytes + checksum(bytes))
    }

    private static func checksum(_ bytes: some Collection<UInt8>) -> [UInt8] {
        let hash = ContentHash.hash64(Array(bytes).span)
        return [UInt8(truncatingIfNeeded: hash), UInt8(truncatingIfNeeded: hash >> 8)]
    }

    /// The numbers in `text`; nil if it is not `count` numbers of that format with a correct checksum.
    static func decode(_ text: String, format: UInt8, count: Int) -> [UInt64]? {
        guard text.utf8.count <= lengthMaximum, let bytes = Base64.decodeURL(text), bytes.count >= 3,
            bytes[0] == format, checksum(bytes.dropLast(2)) == Array(bytes.suffix(2))
        else { return nil }
        var numbers: [UInt64] = []
        var (value, shift): (UInt64, UInt64) = (0, 0)
        for byte in bytes.dropFirst().dropLast(2) {
            guard shift < 64 else { return nil }
            value |= UInt64(byte & 0x7F) << shift
            shift += 7
            guard byte < 0x80 else { continue }
            numbers.append(value)
            (value, shift) = (0, 0)
        }
        return shift == 0 && numbers.count == count ? numbers : nil
    }
}
