import LarderHTTP

/// Where a reply's content ends, and whether the connection lives on (RFC 9112 §6.3, §9.3). Pure.
struct ReplyFraming: Sendable, Hashable {
    enum Content: Sendable, Hashable {
        case none
        case length(Int)
        case chunked
        /// It ends with the connection.
        case untilClose
    }

    let content: Content
    let keepsAlive: Bool

    /// - Parameter isHead: whether the reply is to a `HEAD`.
    init(_ head: ReplyHead, isHead: Bool) throws(ReplyReader.Failure) {
        let length = try Self.length(head.fields)
        let coding = try Self.coding(head)
        if isHead || head.status.hasNoContent {
            content = .none
        } else if coding {
            // It overrides a length, but whoever says both may have been tricked: nothing follows on that connection (§6.3).
            content = .chunked
        } else {
            content = length.map { .length($0) } ?? .untilClose
        }
        let options = head.fields.values(of: .connection).flatMap(FieldList.members).map { $0.lowercased() }
        let isWished = head.minorVersion == 0 ? options.contains("keep-alive") : true
        keepsAlive = isWished && !options.contains("close") && content != .untilClose && !(coding && length != nil)
    }

    /// Whether the content is chunked, which is the only transfer coding that we have said to know.
    private static func coding(_ head: ReplyHead) throws(ReplyReader.Failure) -> Bool {
        guard let text = head.fields.combined(.transferEncoding) else { return false }
        guard head.minorVersion >= 1 else { throw .malformed("An HTTP/1.0 reply has a Transfer-Encoding.") }
        guard text.lowercased() == "chunked" else {
            throw .malformed("The reply's Transfer-Encoding is not chunked alone, and nothing else was asked for.")
        }
        return true
    }

    /// The length that is stated; one that is stated twice must be the same (§6.3).
    private static func length(_ fields: Fields) throws(ReplyReader.Failure) -> Int? {
        var length: Int?
        for text in fields.values(of: .contentLength) {
            for member in text.split(separator: ",", omittingEmptySubsequences: false) {
                let digits = FieldList.trimmed(member)
                guard !digits.isEmpty, digits.utf8.allSatisfy({ $0 &- UInt8(ascii: "0") < 10 }),
                    let stated = Int(digits)
                else { throw .malformed("The Content-Length is no number of bytes.") }
                guard length == nil || length == stated else {
                    throw .malformed("The reply has two different lengths.")
                }
                length = stated
            }
        }
        return length
    }
}
