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
        request.isUserInitiated = context.isForced
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
    func apply<Value>(_ fields: Fields, to fetched: inout Fetched<Value>, isNotModified: Bool) {
        let now = wallClock.now
        let directives = CacheControl(response: fields)
        // must-understand overrides no-store for a known status (RFC 9111 §5.2.2.3).
        fetched.mayStore = !directives.noStore || directives.mustUnderstand
        fetched.age = .seconds(Age.seconds(in: fields))
        let needsValidation = directives.noCache == .all
        fetched.mustRevalidate = needsValidation || directives.mustRevalidate
        if needsValidation {
            fetched.lifetime = .zero
            return
        }
        let (lifetime, source) = HTTPCacheFreshness.lifetime(
            status: isNotModified ? .notModified : .ok,
            fields: fields,
            directives: directives,
            date: fields[.date].flatMap { HTTPDate.parse($0, now: now) } ?? now,
            receivedAt: now,
            policy: HTTPCache.Policy()
        )
        fetched.lifetime = source == .none ? nil : lifetime
    }
}
