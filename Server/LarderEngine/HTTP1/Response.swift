package import LarderHTTP

/// A reply with a body of known length. The engine adds `Date` and `Connection`.
package struct Response: Sendable {
    package enum Body: Sendable {
        case empty
        case bytes([UInt8])
        case file(FileRegion)

        package var count: Int {
            switch self {
            case .empty: 0
            case .bytes(let bytes): bytes.count
            case .file(let region): region.range.count
            }
        }
    }

    /// The head, with `Content-Length` if the status has content.
    package var head: ReplyHead
    package var body: Body
    /// The bytes that a content coding has taken off the body.
    package var bytesSavedByCoding = 0

    package var status: Status { head.status }

    /// A response with these fields and the length of its body.
    package init(status: Status, fields: Fields = Fields(), body: Body = .empty) {
        head = ReplyHead(status, fields)
        self.body = body
        // A 304 could only state the length of the corresponding 200, which is not known here (RFC 9110 §8.6).
        if !status.hasNoContent { head.append("Content-Length", "\(body.count)") }
    }

    /// A response with a complete head.
    package init(_ head: ReplyHead, body: Body, bytesSavedByCoding: Int = 0) {
        self.head = head
        self.body = body
        self.bytesSavedByCoding = bytesSavedByCoding
    }
}
