package import LarderHTTP

/// The status line and the fields of a response (RFC 9112 §4, §5).
package struct ResponseHead: Sendable, Hashable {
    package let status: Status
    package let fields: Fields
    /// The digit after `HTTP/1.`.
    package let minorVersion: UInt8

    /// Parses a complete head without its empty line.
    package init(_ head: [UInt8]) throws(HTTPWireError) {
        let lineEnd = FieldLines.endOfLine(head, from: 0)
        (status, minorVersion) = try Self.statusLine(head[..<lineEnd])
        let lines = try FieldLines(head, from: lineEnd + 2, acceptsFolds: true).lines
        var fields = Fields()
        var index = 0
        while index < lines.count {
            let line = lines[index]
            guard let name = FieldName(Self.text(head, line.name)) else {
                throw HTTPWireError(.malformed, "A field line does not begin with a name and a colon.")
            }
            var value = Self.text(head, line.value)
            index += 1
            // A continuation line is joined with a space (RFC 9112 §5.2).
            while index < lines.count, lines[index].name.isEmpty {
                value += " " + Self.text(head, lines[index].value)
                index += 1
            }
            fields.add(name, value)
        }
        self.fields = fields
    }

    private static func isDigit(_ byte: UInt8) -> Bool { byte &- UInt8(ascii: "0") < 10 }

    private static func statusLine(_ line: ArraySlice<UInt8>) throws(HTTPWireError) -> (Status, UInt8) {
        // Version and status, then nothing, or a space and a reason that is ignored.
        guard line.count >= 12, line.starts(with: "HTTP/1.".utf8), isDigit(line[7]), line[8] == 0x20,
            line[9...11].allSatisfy(isDigit), line.count == 12 || line[12] == 0x20
        else { throw HTTPWireError(.malformed, "The status line is not a version, a status and a reason.") }
        guard line.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) else {
            throw HTTPWireError(.malformed, "The status line has a control character.")
        }
        let code = line[9...11].reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
        guard code >= 100 else { throw HTTPWireError(.malformed, "\(code) is not a status.") }
        return (Status(code: code), line[7] - UInt8(ascii: "0"))
    }

    /// Bytes that are not UTF-8 are read as ISO 8859-1, which old servers send.
    private static func text(_ head: [UInt8], _ range: Range<Int32>) -> String {
        let bytes = head[Int(range.lowerBound)..<Int(range.upperBound)]
        if let text = String(validating: bytes, as: UTF8.self) { return text }
        return String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    }
}
