import LarderCoding
package import LarderHTTP

/// The status line and the fields of a response (RFC 9112 §4, §5).
package struct ResponseHead: Sendable, Hashable {
    package let status: Status
    /// The digit after `HTTP/1.`.
    package let minorVersion: UInt8
    /// The field lines as they were received, without continuation lines.
    package let lines: FieldLines

    /// Parses a complete head without its empty line.
    package init(_ head: [UInt8]) throws(Rejection) {
        let lineEnd = FieldLines.endOfLine(head, from: 0)
        (status, minorVersion) = try Self.statusLine(head[..<lineEnd])
        lines = try FieldLines(head, from: lineEnd + 2, acceptsFolds: true).unfolded()
    }

    /// The fields as text. Bytes that are not UTF-8 are read as ISO 8859-1, which old servers send.
    ///
    /// - Complexity: one string for each name and value.
    package var fields: Fields {
        var fields = Fields()
        for line in lines.lines {
            // `FieldLines` has checked that names are tokens.
            guard let name = FieldName(lines.text(line.name)) else { continue }
            fields.add(name, text(line.value))
        }
        return fields
    }

    /// Appends the status line with the reason that was received, as a line of HTTP/1.1 with its CRLF.
    package func appendStatusLine(to bytes: inout [UInt8]) {
        let received = lines.head[..<FieldLines.endOfLine(lines.head, from: 0)]
        bytes.append("HTTP/1.1")
        bytes.append(contentsOf: received.dropFirst("HTTP/1.x".utf8.count))
        // The space stands before an empty reason too (RFC 9112 §4).
        if received.count == 12 { bytes.append(0x20) }
        bytes.append("\r\n")
    }

    private static func isDigit(_ byte: UInt8) -> Bool { byte &- UInt8(ascii: "0") < 10 }

    private static func statusLine(_ line: ArraySlice<UInt8>) throws(Rejection) -> (Status, UInt8) {
        // Version and status, then nothing, or a space and a reason that is ignored.
        guard line.count >= 12, line.starts(with: "HTTP/1.".utf8), isDigit(line[7]), line[8] == 0x20,
            line[9...11].allSatisfy(isDigit), line.count == 12 || line[12] == 0x20
        else { throw Rejection(.badRequest, "The status line is not a version, a status and a reason.") }
        guard line.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) else {
            throw Rejection(.badRequest, "The status line has a control character.")
        }
        let code = line[9...11].reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
        guard code >= 100 else { throw Rejection(.badRequest, "\(code) is not a status.") }
        return (Status(code: code), line[7] - UInt8(ascii: "0"))
    }

    private func text(_ range: Range<Int32>) -> String {
        let bytes = lines.head[Int(range.lowerBound)..<Int(range.upperBound)]
        if let text = String(validating: bytes, as: UTF8.self) { return text }
        return String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    }
}
