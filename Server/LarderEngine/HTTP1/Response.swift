package import LarderHTTP

/// A reply to be serialised. The engine adds `Date`, `Content-Length` and `Connection`.
package struct Response: Sendable {
    package enum Body: Sendable {
        case empty
        case bytes([UInt8])
        case file(FileRegion)

        var count: Int {
            switch self {
            case .empty: 0
            case .bytes(let bytes): bytes.count
            case .file(let region): region.range.count
            }
        }
    }

    package var status: Status
    package var fields: Fields
    package var body: Body

    package init(status: Status, fields: Fields = Fields(), body: Body = .empty) {
        self.status = status
        self.fields = fields
        self.body = body
    }
}

/// A reply that is serialised once and sent often: status line and field lines, without `Date` and `Connection`, and the body.
package final class PreparedResponse: Sendable {
    package let status: Status
    /// Complete lines, each with its CRLF; includes `Content-Length` if the status has content.
    package let head: [UInt8]
    package let body: [UInt8]
    /// The bytes that a content coding has taken off the body.
    package let bytesSavedByCoding: Int

    package init(status: Status, head: [UInt8], body: [UInt8], bytesSavedByCoding: Int = 0) {
        self.status = status
        self.head = head
        self.body = body
        self.bytesSavedByCoding = bytesSavedByCoding
    }
}

extension Response {
    /// Status line and field lines with `Content-Length`, as `PreparedResponse` has them.
    package func serializedHead() -> [UInt8] {
        var head: [UInt8] = []
        head.reserveCapacity(256)
        head.append(contentsOf: "HTTP/1.1 \(status.code) \(status.reasonPhrase)\r\n".utf8)
        fields.append(to: &head)
        // A 304 could only state the length of the corresponding 200, which is not known here (RFC 9110 §8.6).
        if !status.hasNoContent { head.append(contentsOf: "Content-Length: \(body.count)\r\n".utf8) }
        return head
    }
}

extension Fields {
    /// Appends complete field lines, each with its CRLF.
    func append(to lines: inout [UInt8]) {
        for field in self {
            lines.append(contentsOf: field.name.description.utf8)
            lines.append(contentsOf: ": ".utf8)
            lines.append(contentsOf: field.value.utf8)
            lines.append(contentsOf: "\r\n".utf8)
        }
    }
}
