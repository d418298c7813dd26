import LarderHTTP
import LarderTime

/// Ranges (RFC 9110 §14, RFC 9111 §3.3, §3.4).
///
/// Partial content is never stored, whether requested or truncated, so parts of different versions are never combined.
/// Ranges are cut from complete stored content. A 206 from the server is returned and may confirm or invalidate the
/// stored response.
extension HTTPCache {
    /// Applies a 206 to the stored response: the same strong validator confirms it and updates its fields (RFC 9111
    /// §3.4); another one invalidates it.
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
    /// The relation of a 206 to the stored response.
    enum PartVerdict: Sendable, Hashable {
        case current
        case outdated
        /// There is no strong validator to compare.
        case silent
    }

    /// Compares the fields of a 206 with a stored response (RFC 9110 §15.3.7.3).
    static func part(_ fields: Fields, of entry: HTTPCacheEntry) -> PartVerdict {
        if let text = fields[.etag], let stored = entry.entityTag {
            guard let tag = EntityTag(parsing: text), tag.weaklyMatches(stored) else { return .outdated }
            guard tag.stronglyMatches(stored) else { return .silent }
            // The same tag with another length is an error of the server.
            let total = fields[.contentRange].flatMap { $0.split(separator: "/").last }.flatMap { Int($0) }
            return total == nil || total == entry.bodyCount ? .current : .outdated
        }
        guard let text = fields[.lastModified], let stored = entry.fields[.lastModified] else { return .silent }
        return text == stored ? .silent : .outdated
    }
}
