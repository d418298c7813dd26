import LarderCoding
import LarderEngine
import LarderHTTP

extension Call {
    /// The reply to a read: the content, or the 304, 206, 412 or 416 that the request's conditions and its range require (RFC 9110 §13,
    /// §14).
    ///
    /// - Parameters:
    ///   - fields: those of the 200, except for `ETag` and `Accept-Ranges`.
    ///   - isText: whether the content may be compressed.
    ///   - content: called only if the content is sent.
    func contentReply(
        _ fields: Fields,
        entityTag: EntityTag,
        byteCount: Int,
        isText: Bool = false,
        _ content: () throws(Problem) -> Reply.Body
    ) throws(Problem) -> Reply {
        var fields = fields
        let range = try requestedRange(entityTag, byteCount)
        let coding = isText && range == nil && byteCount >= Self.codedBytesMinimum ? Negotiation.coding(request) : nil
        let tag = coding.map { entityTag.coded(by: $0) } ?? entityTag
        fields.set(.etag, tag.description)
        fields.set(.acceptRanges, "bytes")
        let outcome = Preconditions(request).evaluate(
            method: request.method,
            exists: true,
            entityTag: entityTag,
            codings: isText ? ContentCoding.allCases : [],
            lastModified: nil,
            now: world.clock.now
        )
        switch outcome {
        case .proceed: break
        case .notModified: return Reply(status: .notModified, fields: fields, body: .empty)
        case .preconditionFailed:
            throw ProblemType.preconditionFailed(
                "The content has another ETag.",
                fields: [.etag: entityTag.description]
            )
        }
        var body = try content()
        if let range {
            fields.set(.contentRange, "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(byteCount)")
            switch body {
            case .bytes(let bytes): body = .bytes(Array(bytes[range]))
            case .file(let file): body = .file(file.extracting(range))
            case .empty, .webSocket, .eventStream, .tunnel: break
            }
            return Reply(status: .partialContent, fields: fields, body: body)
        }
        if isText { fields.add(.vary, "Accept-Encoding") }
        if let coding, case .bytes(let bytes) = body, let coded = coding.encode(bytes) {
            fields.set(.contentEncoding, coding.rawValue)
            body = .bytes(coded)
        } else {
            fields.set(.etag, entityTag.description)
        }
        return Reply(status: .ok, fields: fields, body: body)
    }

    /// Smaller content fits into the packet that carries its head.
    private static let codedBytesMinimum = 1_024

    /// The requested range, if there is exactly one. Several ranges, or a failed `If-Range`, are answered with the whole content, as RFC
    /// 9110 §14.2 allows.
    private func requestedRange(_ entityTag: EntityTag, _ byteCount: Int) throws(Problem) -> Range<Int>? {
        guard request.method == .get, let field = request.fields[.range], let ranges = ByteRange.parse(field),
            ranges.count == 1
        else { return nil }
        let now = world.clock.now
        if let condition = request.fields[.ifRange],
            !Preconditions.ifRangeHolds(condition, entityTag: entityTag, lastModified: nil, date: now)
        {
            return nil
        }
        if let range = ranges[0].resolved(against: byteCount) { return range }
        throw ProblemType.rangeNotSatisfiable(
            "The range contains none of the \(byteCount) bytes.",
            fields: [.contentRange: "bytes */\(byteCount)", .acceptRanges: "bytes"]
        )
    }
}
