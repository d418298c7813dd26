import LarderHTTP

/// Where the body of a message ends (RFC 9112 §6.3).
package enum BodyFraming: Sendable, Hashable {
    case none
    case length(Int)
    case chunked
    /// The body ends with the connection. Responses only.
    case untilClose

    /// The framing of a request. Ambiguous framing is rejected, because it allows request smuggling.
    package init(_ request: RequestHead, bodyBytesMaximum: Int) throws(Rejection) {
        let fields = request.fields
        let lengths = fields.count(of: "content-length")
        guard fields.range(of: "transfer-encoding") == nil else {
            guard request.minorVersion == 1 else {
                throw Rejection(.badRequest, "HTTP/1.0 has no Transfer-Encoding.")
            }
            guard lengths == 0 else {
                throw Rejection(.badRequest, "Content-Length and Transfer-Encoding contradict each other.")
            }
            guard fields.combined(.transferEncoding)?.lowercased() == "chunked" else {
                throw Rejection(.notImplemented, "The only supported transfer coding is chunked.")
            }
            self = .chunked
            return
        }
        guard lengths <= 1 else { throw Rejection(.badRequest, "There is more than one Content-Length.") }
        guard lengths == 1, let value = fields.range(of: "content-length") else {
            self = .none
            return
        }
        let length = try Self.length(fields.head[value])
        guard length <= bodyBytesMaximum else {
            throw Rejection(.contentTooLarge, "The body has \(length) bytes; the maximum is \(bodyBytesMaximum).")
        }
        self = length == 0 ? .none : .length(length)
    }

    /// The framing of a response. Equal lengths may be repeated, and transfer codings override a length; both are rejected
    /// in requests. Content whose last transfer coding is not chunked ends with the connection. Codings other than chunked
    /// are not removed from the content: the response's `Transfer-Encoding` names them.
    ///
    /// - Parameter isHead: whether the request was a `HEAD`.
    package init(_ response: ResponseHead, isHead: Bool) throws(Rejection) {
        let length = try Self.length(response.lines)
        let coding = try Self.lastTransferCoding(response)
        if isHead || response.status.hasNoContent {
            self = .none
        } else if let coding {
            self = coding == "chunked" ? .chunked : .untilClose
        } else {
            self = length.map { $0 == 0 ? .none : .length($0) } ?? .untilClose
        }
    }

    /// Returns the last transfer coding in lower case; nil if there is none.
    private static func lastTransferCoding(_ response: ResponseHead) throws(Rejection) -> String? {
        guard response.lines.range(of: "transfer-encoding") != nil,
            let text = response.lines.combined(.transferEncoding)
        else { return nil }
        guard response.minorVersion >= 1 else { throw Rejection(.badRequest, "HTTP/1.0 has no Transfer-Encoding.") }
        let codings = FieldList.members(of: text.lowercased())
        guard codings.count(where: { $0 == "chunked" }) <= 1 else {
            throw Rejection(.badRequest, "Chunked is applied more than once (RFC 9112 §6.1): '\(text)'.")
        }
        guard let last = codings.last else { throw Rejection(.badRequest, "Transfer-Encoding is empty.") }
        return last
    }

    private static func length(_ fields: FieldLines) throws(Rejection) -> Int? {
        var length: Int?
        for line in fields.lines where fields.isNamed(line, "content-length") {
            var rest = fields.value(of: line)
            while true {
                let end = rest.firstIndex(of: UInt8(ascii: ",")) ?? rest.endIndex
                let stated = try Self.length(rest[..<end])
                guard length == nil || length == stated else {
                    throw Rejection(.badRequest, "There are two different Content-Lengths.")
                }
                length = stated
                guard end < rest.endIndex else { break }
                rest = rest[(end + 1)...]
            }
        }
        return length
    }

    /// A length with optional white space around it.
    private static func length(_ member: ArraySlice<UInt8>) throws(Rejection) -> Int {
        func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
        var digits = member.drop(while: isSpace)
        while let last = digits.last, isSpace(last) { digits = digits.dropLast() }
        var length = 0
        for byte in digits {
            let (product, overflows) = length.multipliedReportingOverflow(by: 10)
            let (sum, overflowsToo) = product.addingReportingOverflow(Int(byte &- UInt8(ascii: "0")))
            guard byte &- UInt8(ascii: "0") < 10, !overflows, !overflowsToo else {
                throw Rejection(.badRequest, "Content-Length is not a number.")
            }
            length = sum
        }
        guard !digits.isEmpty else { throw Rejection(.badRequest, "Content-Length is not a number.") }
        return length
    }
}

extension ResponseHead {
    /// Whether another request may follow on the connection (RFC 9112 §9.3).
    package func keepsAlive(after framing: BodyFraming) -> Bool {
        let options =
            lines.range(of: "connection") == nil
            ? [] : FieldList.members(of: lines.combined(.connection)?.lowercased() ?? "")
        // A response with both lengths may be an attack: nothing follows it (RFC 9112 §6.3).
        let isAmbiguous =
            lines.range(of: "transfer-encoding") != nil && lines.range(of: "content-length") != nil
        let isOffered = minorVersion > 0 || options.contains("keep-alive")
        return isOffered && !options.contains("close") && framing != .untilClose && !isAmbiguous
    }
}
