import LarderCoding
package import LarderHTTP

/// The head of a reply as it is sent: the status line and the field lines, each with its CRLF, without the empty line.
///
/// Lines are written once, and found and changed in place.
package struct ReplyHead: Sendable {
    package private(set) var bytes: [UInt8] = []

    /// The head of an exchange without a reply.
    package static let none = ReplyHead()

    private init() {}

    /// The head with these `bytes`, as they were stored.
    package init(stored bytes: [UInt8]) { self.bytes = bytes }

    package init(_ status: Status, _ fields: Fields = Fields()) {
        bytes.reserveCapacity(256)
        bytes.append(contentsOf: Self.statusLine(status))
        append(fields)
    }

    /// A head that begins with the status line of another server.
    package init(_ head: ResponseHead) {
        bytes.reserveCapacity(head.lines.head.count + 128)
        head.appendStatusLine(to: &bytes)
    }

    /// The three digits of the status line; `.noReply` without one.
    package var status: Status {
        guard bytes.count >= 12 else { return .noReply }
        return Status(code: bytes[9..<12].reduce(0) { $0 * 10 + Int($1 &- UInt8(ascii: "0")) })
    }

    private static func statusLine(_ status: Status) -> String.UTF8View {
        "HTTP/1.1 \(status.code) \(status.reasonPhrase)\r\n".utf8
    }

    /// The head as it is sent, with the `Date` line, `Connection`, and the empty line.
    ///
    /// - Parameter room: how many bytes are going to follow. `Output` keeps many of them in a piece of their own.
    func bytes(date: [UInt8], connection: StaticString, room: Int = 0) -> [UInt8] {
        var all: [UInt8] = []
        all.reserveCapacity(bytes.count + date.count + 32 + (room <= Output.copiedBytesMaximum ? room : 0))
        all += bytes
        all += date
        all.append(connection)
        all.append("\r\n")
        return all
    }

    // MARK: Adding lines

    package mutating func append(lines: [UInt8]) { bytes.append(contentsOf: lines) }

    package mutating func append(lines write: (inout [UInt8]) -> Void) { write(&bytes) }

    package mutating func append(_ name: StaticString, _ value: String) {
        bytes.append(name)
        bytes.append(": ")
        bytes.append(contentsOf: value.utf8)
        bytes.append("\r\n")
    }

    package mutating func append(_ fields: Fields) {
        for field in fields {
            bytes.append(contentsOf: field.name.description.utf8)
            bytes.append(": ")
            bytes.append(contentsOf: field.value.utf8)
            bytes.append("\r\n")
        }
    }

    // MARK: Finding and changing lines

    /// The value of the first field with that name, in any case.
    package subscript(name: String) -> String? {
        guard let line = line(name) else { return nil }
        let value = bytes[(line.lowerBound + name.utf8.count + 1)..<(line.upperBound - 2)]
        return String(decoding: value.drop { $0 == UInt8(ascii: " ") }, as: UTF8.self)
    }

    /// The values of all fields with that name, in any case, as one list (RFC 9110 §5.3); nil if there are none.
    package func combined(_ name: String) -> String? {
        guard let first = self[name] else { return nil }
        guard line(name, after: line(name)?.upperBound) != nil else { return first }
        let canonical = name.lowercased()
        return fields.filter { $0.name.lowercased() == canonical }.map(\.value).joined(separator: ", ")
    }

    package var fields: [(name: String, value: String)] {
        String(decoding: bytes, as: UTF8.self).split(separator: "\r\n").dropFirst().map { line in
            let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            return (String(parts[0]), parts.count > 1 ? String(parts[1].drop { $0 == " " }) : "")
        }
    }

    /// Replaces all fields with that name by one at the end.
    package mutating func set(_ name: StaticString, _ value: String) {
        remove(name.description)
        append(name, value)
    }

    /// Removes all fields with that name, in any case.
    package mutating func remove(_ name: String) { while let line = line(name) { bytes.removeSubrange(line) } }

    package mutating func setStatus(_ status: Status) {
        bytes.replaceSubrange(..<(bytes.firstIndex(of: 0x0A).map { $0 + 1 } ?? 0), with: Self.statusLine(status))
    }

    /// The range of the first line with that name, with its CRLF.
    ///
    /// - Parameter position: where the search begins; nil: behind the status line.
    private func line(_ name: String, after position: Int? = nil) -> Range<Int>? {
        var start = position ?? (bytes.firstIndex(of: 0x0A) ?? bytes.count - 1) + 1
        while start < bytes.count {
            // A report asks for thousands of heads: no line becomes a string.
            let end = bytes[start...].firstIndex(of: 0x0A).map { $0 + 1 } ?? bytes.count
            let colon = start + name.utf8.count
            if colon < end, bytes[colon] == UInt8(ascii: ":"),
                zip(bytes[start..<colon], name.utf8).allSatisfy({ Self.lowercased($0) == Self.lowercased($1) })
            {
                return start..<end
            }
            start = end
        }
        return nil
    }

    private static func lowercased(_ byte: UInt8) -> UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
    }
}
