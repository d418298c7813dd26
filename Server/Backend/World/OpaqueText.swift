import LarderCoding

/// Numbers packed into URL-safe text with a check: the form of cursors and change tokens.
///
/// The check tells text that was cut or typed wrongly from text that a server issued. It is no secret: nothing that a token
/// or cursor opens is protected by it.
enum OpaqueText {
    /// At most this many characters are ever issued or read.
    static let lengthMaximum = 120

    static func encode(format: UInt8, _ values: [UInt64]) -> String {
        var text: [UInt8] = []
        append(format: format, values, to: &text)
        return String(decoding: text, as: UTF8.self)
    }

    /// Appends what `encode` makes: every page has two of them.
    static func append(format: UInt8, _ values: [UInt64], to text: inout [UInt8]) {
        let start = text.count
        text.append(format)
        for value in values {
            var rest = value
            while rest >= 0x80 {
                text.append(UInt8(truncatingIfNeeded: rest) | 0x80)
                rest >>= 7
            }
            text.append(UInt8(truncatingIfNeeded: rest))
        }
        let check = ContentHash.hash64(text.span.extracting(start..<text.count))
        text.append(UInt8(truncatingIfNeeded: check))
        text.append(UInt8(truncatingIfNeeded: check >> 8))
        Base64.encodeURL(from: start, in: &text)
    }

    /// The numbers in `text`, or nil if it is not `count` numbers of that format with a right check.
    static func decode(_ text: String, format: UInt8, count: Int) -> [UInt64]? {
        guard text.utf8.count <= lengthMaximum, let bytes = Base64.decodeURL(text), bytes.count >= 3 + count,
            bytes[0] == format
        else { return nil }
        let end = bytes.count - 2
        let check = ContentHash.hash64(bytes.span.extracting(0..<end))
        guard bytes[end] == UInt8(truncatingIfNeeded: check), bytes[end + 1] == UInt8(truncatingIfNeeded: check >> 8)
        else { return nil }
        var values: [UInt64] = []
        var cursor = 1
        for _ in 0..<count {
            var value: UInt64 = 0
            var shift: UInt64 = 0
            var ended = false
            while !ended {
                guard cursor < end, shift < 64 else { return nil }
                let byte = bytes[cursor]
                cursor += 1
                value |= UInt64(byte & 0x7F) << shift
                shift += 7
                ended = byte < 0x80
            }
            values.append(value)
        }
        return cursor == end ? values : nil
    }
}
