/// Lists in field values (RFC 9110 §5.6.1). Separators inside quoted strings are ignored.
package enum FieldList {
    /// Returns the trimmed members of a list without empty ones (RFC 9110 §5.6.1.2). Cost: linear in the text.
    package static func members(of text: String) -> [String] {
        split(text, at: UInt8(ascii: ",")).filter { !$0.isEmpty }
    }

    /// Returns the trimmed parts between separators, including empty ones. An unclosed quoted string extends to the
    /// end.
    package static func split(_ text: String, at separator: UInt8) -> [String] {
        var parts: [String] = []
        var part: [UInt8] = []
        var isQuoted = false
        var isEscaped = false
        for byte in text.utf8 {
            if isEscaped {
                isEscaped = false
            } else if isQuoted, byte == UInt8(ascii: "\\") {
                isEscaped = true
            } else if byte == UInt8(ascii: "\"") {
                isQuoted.toggle()
            } else if byte == separator, !isQuoted {
                parts.append(trimmed(part[...]))
                part.removeAll(keepingCapacity: true)
                continue
            }
            part.append(byte)
        }
        parts.append(trimmed(part[...]))
        return parts
    }

    /// Removes spaces and tabs at both ends.
    package static func trimmed(_ text: some StringProtocol) -> String { trimmed(Array(text.utf8)[...]) }

    private static func trimmed(_ bytes: ArraySlice<UInt8>) -> String {
        let isSpace: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 }
        let start = bytes.drop(while: isSpace)
        let end = start.lastIndex { !isSpace($0) }.map { $0 + 1 } ?? start.startIndex
        return String(decoding: start[start.startIndex..<end], as: UTF8.self)
    }

    /// Returns the value of a token or a quoted string (RFC 9110 §5.6.4).
    package static func unquoted(_ text: some StringProtocol) -> String {
        let bytes = Array(trimmed(text).utf8)
        guard bytes.count >= 2, bytes[0] == UInt8(ascii: "\""), bytes[bytes.count - 1] == UInt8(ascii: "\"") else {
            return String(decoding: bytes, as: UTF8.self)
        }
        var result: [UInt8] = []
        var isEscaped = false
        for byte in bytes[1..<(bytes.count - 1)] {
            if !isEscaped, byte == UInt8(ascii: "\\") {
                isEscaped = true
            } else {
                result.append(byte)
                isEscaped = false
            }
        }
        return String(decoding: result, as: UTF8.self)
    }
}
