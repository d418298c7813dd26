import LarderHTTP

/// The head of a reply: its status line and its fields (RFC 9112 §4, §5).
struct ReplyHead: Sendable, Hashable {
    let status: Status
    let fields: Fields
    /// The digit behind `HTTP/1.`.
    let minorVersion: UInt8

    /// Reads a head that is complete, its empty line included; every line of it ends with CR LF.
    init(_ bytes: [UInt8]) throws(ReplyReader.Failure) {
        let lineEnd = Self.endOfLine(bytes, from: 0)
        (status, minorVersion) = try Self.statusLine(bytes[..<lineEnd])
        fields = try Self.fields(bytes, from: lineEnd + 2)
    }

    private static func endOfLine(_ bytes: [UInt8], from start: Int) -> Int {
        var index = start
        while index < bytes.count, bytes[index] != 0x0D { index += 1 }
        return index
    }

    private static func isDigit(_ byte: UInt8) -> Bool { byte &- UInt8(ascii: "0") < 10 }

    /// Whether a byte may be in a field's value or a reason phrase (RFC 9110 §5.5).
    private static func isText(_ byte: UInt8) -> Bool { byte >= 0x20 && byte != 0x7F || byte == 0x09 }

    private static func statusLine(_ line: ArraySlice<UInt8>) throws(ReplyReader.Failure) -> (Status, UInt8) {
        // `HTTP/1.1 200`, and then nothing, or a space and any words, which mean nothing.
        guard line.count >= 12, line.starts(with: "HTTP/1.".utf8), isDigit(line[7]), line[8] == 0x20,
            line[9...11].allSatisfy(isDigit), line.count == 12 || line[12] == 0x20
        else { throw .malformed("The status line is not a version, a status and a reason.") }
        guard line.allSatisfy(isText) else { throw .malformed("The status line has a control character.") }
        let code = line[9...11].reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
        guard code >= 100 else { throw .malformed("\(code) is no status.") }
        return (Status(code: code), line[7] - UInt8(ascii: "0"))
    }

    private static func fields(_ bytes: [UInt8], from first: Int) throws(ReplyReader.Failure) -> Fields {
        var fields = Fields()
        var start = first
        while start < bytes.count {
            var end = endOfLine(bytes, from: start)
            // The empty line.
            if end == start { break }
            var colon = start
            while colon < end, isTokenByte(bytes[colon]) { colon += 1 }
            guard colon > start, colon < end, bytes[colon] == UInt8(ascii: ":"),
                let name = FieldName(String(decoding: bytes[start..<colon], as: UTF8.self))
            else { throw .malformed("A field line does not begin with a name and a colon.") }
            var value = try self.value(bytes[(colon + 1)..<end])
            // A folded line goes on with the next, and the fold is a space (RFC 9112 §5.2).
            while end + 2 < bytes.count, bytes[end + 2] == 0x20 || bytes[end + 2] == 0x09 {
                let next = end + 2
                end = endOfLine(bytes, from: next)
                value += " " + (try self.value(bytes[next..<end]))
            }
            fields.add(name, value)
            start = end + 2
        }
        return fields
    }

    /// A value without the space around it. What is not UTF-8 is taken for Latin-1, as old servers mean it.
    private static func value(_ bytes: ArraySlice<UInt8>) throws(ReplyReader.Failure) -> String {
        guard bytes.allSatisfy(isText) else { throw .malformed("A field's value has a control character.") }
        var value = bytes
        while let byte = value.first, byte == 0x20 || byte == 0x09 { value.removeFirst() }
        while let byte = value.last, byte == 0x20 || byte == 0x09 { value.removeLast() }
        if let text = String(validating: value, as: UTF8.self) { return text }
        return String(String.UnicodeScalarView(value.map { Unicode.Scalar($0) }))
    }
}
