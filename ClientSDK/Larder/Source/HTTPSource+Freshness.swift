import LarderHTTP
import LarderHTTPCache
import LarderResources
import LarderTime
import LarderTransport

/// The server's word about freshness and storage (RFC 9111), and validators (RFC 9110 §8.8).
extension HTTPSource {
    /// Adds the condition for a stored validator, and the demand for the origin's answer.
    static func addConditions(_ context: FetchContext, to request: inout TransportRequest, now: WallTime) {
        if let validator = context.validator {
            let isDate = EntityTag(parsing: validator) == nil && HTTPDate.parse(validator, now: now) != nil
            request.fields.set(isDate ? .ifModifiedSince : .ifNoneMatch, validator)
        }
        if context.mustRevalidate { request.fields.set(.cacheControl, "no-cache") }
    }

    /// The validator of a reply: its entity tag, otherwise its modification date.
    ///
    /// A date is a validator only if it is at least a second before `Date`: the resource may change again within its second, and the
    /// date would confirm the older content (RFC 9110 §8.8.2.2). With a tag, a server ignores `If-Modified-Since` (§13.1.3).
    func validator(of fields: Fields) -> String? {
        if let tag = fields[.etag] { return tag }
        let now = wallClock.now
        guard let text = fields[.lastModified], let modified = HTTPDate.parse(text, now: now) else { return nil }
        let date = fields[.date].flatMap { HTTPDate.parse($0, now: now) } ?? now
        return date - modified >= .seconds(1) ? text : nil
    }

    /// Applies the cache directives of a reply.
    ///
    /// The age is that of the `Age` field alone: `Date` is not compared with the clock of the device, which is often wrong. A 304 that states
    /// no lifetime itself continues the known one.
    func apply<Value>(_ response: TransportResponse, to fetched: inout Fetched<Value>) {
        let now = wallClock.now
        let terms = ResponseTerms(
            status: response.status,
            fields: response.fields,
            requestedAt: now,
            receivedAt: now
        )
        fetched.mayStore = terms.mayStore
        fetched.age = .seconds(Age.seconds(in: response.fields))
        fetched.mustRevalidate = terms.noCache || terms.mustRevalidate
        let isStated =
            switch terms.source {
            case .none: false
            case .heuristic: response.status != .notModified
            default: true
            }
        fetched.lifetime = terms.noCache ? .zero : isStated ? terms.lifetime : nil
    }
}
