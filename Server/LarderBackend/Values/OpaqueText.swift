import LarderCoding

/// Numbers encoded as URL-safe text with a checksum: the form of cursors and change tokens.
///
/// The checksum detects truncated or mistyped text. It is not secret: no access is protected by a token or cursor.
enum OpaqueText {
    /// The maximum length in characters, for encoding and decoding.
    static let lengthMaximum = 120

    /// Numbers in fixed storage without allocation: every page has two cursors.
    typealias Numbers = SIMD8<UInt64>

    static func encode(format: UInt8, _ numbers: Numbers, count: Int) -> String {
        var text: [UInt8] = []
        append(format: format, numbers, count: count, to: &text)
        return String(decoding: text, as: UTF8.self)
    }

    /// Appends the result of `encode`.
    static func append(format: UInt8, _ numbers: Numbers, count: Int, to text: inout [UInt8]) {
        unsafe withUnsafeTemporaryAllocation(of: UInt8.self, capacity: lengthMaximum) { bytes in
            unsafe bytes[0] = format
            var end = 1
            for index in 0..<count {
                var rest = numbers[index]
                while rest >= 0x80 {
                    unsafe bytes[end] = UInt8(truncatingIfNeeded: rest) | 0x80
                    rest >>= 7
                    end += 1
                }
                unsafe bytes[end] = UInt8(truncatingIfNeeded: rest)
                end += 1
            }
            let check = ContentHash.hash64(unsafe bytes.span.extracting(0..<end))
            unsafe bytes[end] = UInt8(truncatingIfNeeded: check)
            unsafe bytes[end + 1] = UInt8(truncatingIfNeeded: check >> 8)
            Base64.appendURL(unsafe bytes.span.extracting(0..<(end + 2)), to: &text)
        }
    }

    /// The numbers in `text`; nil if it is not `count` numbers of that format with a correct checksum.
    static func decode(_ text: String, format: UInt8, count: Int) -> Numbers? {
        guard text.utf8.count <= lengthMaximum else { return nil }
        return unsafe withUnsafeTemporaryAllocation(of: UInt8.self, capacity: lengthMaximum) { bytes in
            guard let length = unsafe Base64.readURL(text, to: bytes), length >= 3 + count else { return nil }
            return unsafe numbers(in: bytes.span.extracting(0..<length), format: format, count: count)
        }
    }

    private static func numbers(in bytes: Span<UInt8>, format: UInt8, count: Int) -> Numbers? {
        let end = bytes.count - 2
        let check = ContentHash.hash64(bytes.extracting(0..<end))
        guard bytes[0] == format, bytes[end] == UInt8(truncatingIfNeeded: check),
            bytes[end + 1] == UInt8(truncatingIfNeeded: check >> 8)
        else { return nil }
        var numbers = Numbers()
        var cursor = 1
        for index in 0..<count {
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
            numbers[index] = value
        }
        return cursor == end ? numbers : nil
    }
}
