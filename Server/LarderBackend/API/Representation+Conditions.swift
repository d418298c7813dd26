import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime

extension Representation {
    /// The reply that the request's conditions require: the representation, a 304 or a 412 (RFC 9110 §13.2).
    func reply(to request: Request, now: WallTime) -> Reply {
        let coding = isNegotiated ? Negotiation.coding(request) : nil
        guard request.hasConditions else { return full(coding) }
        // A single entity tag, as caches send it, needs no parsing: a 304 is not slower than a 200.
        if request.hasTagAlone, let range = request.fields.range(of: "if-none-match"), isTagged(request.head[range]) {
            return notModified(nil)
        }
        let conditions = Preconditions(request)
        func outcome(_ codings: [ContentCoding]) -> PreconditionOutcome {
            conditions.evaluate(
                method: request.method,
                exists: true,
                entityTag: entityTag,
                codings: codings,
                lastModified: lastModified,
                now: now
            )
        }
        switch outcome(coding.map { [$0] } ?? []) {
        case .proceed: return full(coding)
        case .notModified:
            // The 304 has the tag that matched, so that the client's cache finds what it confirms. Without a tag in the condition it
            // has the tag that the 200 would have.
            let hasTag = request.fields.combined(.ifNoneMatch).map { $0.contains("\"") } ?? false
            return notModified(hasTag && outcome([]) == .notModified ? nil : coding)
        case .preconditionFailed:
            return ProblemType.preconditionFailed(
                "The condition does not hold for the current representation.",
                fields: [.etag: entityTag.description]
            ).reply
        }
    }
}

extension Request {
    /// Whether the request has any condition of RFC 9110 §13.1.
    fileprivate var hasConditions: Bool {
        fields.range(of: "if-none-match") != nil || fields.range(of: "if-modified-since") != nil
            || fields.range(of: "if-match") != nil || fields.range(of: "if-unmodified-since") != nil
    }

    /// Whether only `If-None-Match` must be evaluated: it overrides `If-Modified-Since` (RFC 9110 §13.1.3).
    fileprivate var hasTagAlone: Bool {
        fields.range(of: "if-none-match") != nil && fields.range(of: "if-match") == nil
            && fields.range(of: "if-unmodified-since") == nil
    }
}
