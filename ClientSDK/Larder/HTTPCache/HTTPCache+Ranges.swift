import LarderHTTP
import LarderTime

/// Parts of content (RFC 9110 §14, RFC 9111 §3.3, §3.4).
///
/// A part is never stored, neither one that was asked for nor one that is left of content that broke off: so none can be put
/// together with what it does not belong to, or be taken for the whole. What is stored is whole, and parts are cut from it. A
/// part from the server is given on, and says something about the whole that is stored.
extension HTTPCache {
    /// What a 206 says about what is stored. It is current if it has the same strong validator, and takes over the newer fields
    /// (RFC 9111 §3.4); it is not if it has another one.
    func notePart(
        _ plan: Plan,
        _ status: Status,
        _ fields: Fields,
        _ requestedAt: WallTime,
        _ receivedAt: WallTime,
        _ ticket: HTTPCacheTicket
    ) {
        guard status == .partialContent, let entry = plan.entry, entry.status == .ok else { return }
        let verdict = HTTPCacheValidation.part(fields, of: entry)
        guard verdict != .silent else { return }
        note(entry, plan, isCurrent: verdict == .current, by: fields, requestedAt, receivedAt, ticket)
    }
}

extension HTTPCacheValidation {
    /// What a part says about the whole.
    enum PartVerdict: Sendable, Hashable {
        case current
        case outdated
        /// It has no validator to compare, or only weak ones.
        case silent
    }

    /// Compares the fields of a 206 with a stored whole (RFC 9110 §15.3.7.3).
    static func part(_ fields: Fields, of entry: HTTPCacheEntry) -> PartVerdict {
        if let text = fields[.etag], let stored = entry.entityTag {
            guard let tag = EntityTag(parsing: text), tag.weaklyMatches(stored) else { return .outdated }
            guard tag.stronglyMatches(stored) else { return .silent }
            // The same tag for another length is a server's mistake, and what it vouches for is not known.
            let total = fields[.contentRange].flatMap { $0.split(separator: "/").last }.flatMap { Int($0) }
            return total == nil || total == entry.bodyCount ? .current : .outdated
        }
        guard let text = fields[.lastModified], let stored = entry.fields[.lastModified] else { return .silent }
        return text == stored ? .silent : .outdated
    }
}
