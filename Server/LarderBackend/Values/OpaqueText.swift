import LarderCoding

/// Numbers encoded as URL-safe text with a checksum: the form of cursors and change tokens.
///
/// The checksum detects truncated or mistyped text. It is not secret: no access is protected by a token or cursor.
enum OpaqueText {
    static func encode(format: UInt8, _ numbers: [UInt64]) -> String {
        let text = ([UInt64(format)] + numbers).map { String($0, radix: 36) }.joined(separator: ".")
        return "\(text).\(String(ContentHash.hash64(Array(text.utf8).span) & 0xFFFF, radix: 36))"
    }

    /// The numbers in `text`; nil if it is not what `encode` makes of `count` numbers.
    static func decode(_ text: String, format: UInt8, count: Int) -> [UInt64]? {
        let numbers = text.split(separator: ".").dropFirst().dropLast().compactMap { UInt64($0, radix: 36) }
        return numbers.count == count && encode(format: format, numbers) == text ? numbers : nil
    }
}
