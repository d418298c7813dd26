/// The part of RFC 9651 that the API's fields use.
package enum StructuredField {
    /// Reads an item that is a string (§3.3.3), without parameters; nil for anything else.
    package static func string(parsing text: String) -> String? {
        let bytes = Array(FieldList.trimmed(text).utf8)
        guard bytes.count >= 2, bytes[0] == UInt8(ascii: "\""), bytes[bytes.count - 1] == UInt8(ascii: "\"") else {
            return nil
        }
        var result: [UInt8] = []
        var index = 1
        while index < bytes.count - 1 {
            var byte = bytes[index]
            guard byte >= 0x20, byte < 0x7F, byte != UInt8(ascii: "\"") else { return nil }
            if byte == UInt8(ascii: "\\") {
                index += 1
                guard index < bytes.count - 1 else { return nil }
                byte = bytes[index]
                guard byte == UInt8(ascii: "\\") || byte == UInt8(ascii: "\"") else { return nil }
            }
            result.append(byte)
            index += 1
        }
        return String(decoding: result, as: UTF8.self)
    }
}
