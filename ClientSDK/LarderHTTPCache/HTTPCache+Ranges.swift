import LarderHTTP
import LarderTime
import LarderTransport

/// Partial responses (RFC 9110 §14, RFC 9111 §3.3, §3.4).
extension HTTPCache {
    /// Stores a 206, combined with a stored part if possible, or applies it to the stored whole. Returns the combined
    /// response; nil if it was not combined.
    @discardableResult func keepPart(
        _ entry: HTTPCacheEntry,
        _ reply: TransportResponse,
        _ plan: Plan,
        _ ticket: HTTPCacheTicket
    ) -> (entry: HTTPCacheEntry, body: [UInt8])? {
        if let whole = plan.entry, whole.part == nil {
            let verdict = notePart(plan, reply.status, reply.fields, entry.requestedAt, entry.receivedAt, ticket)
            // The whole is worth more than a part, unless it is of another version.
            if verdict != .outdated { return nil }
        }
        let combined = combined(entry, reply, plan)
        let (kept, body) = combined ?? (entry, reply.body)
        let now = configuration.clock.now
        let maximum = max(1, configuration.policy.variantsMaximum)
        let isStored = change(plan.url.text, body: body) { entries in
            guard ticket.isValid, !entries.contains(where: { kept.isOutdated(by: $0, now: now) }) else { return }
            // Another exchange has stored the whole meanwhile.
            let known = Set(plan.entries.map(\.bodyID))
            let isNewWhole = { (other: HTTPCacheEntry) in other.part == nil && !known.contains(other.bodyID) }
            if entries.contains(where: { $0.selectors == kept.selectors && isNewWhole($0) }) { return }
            entries.removeAll { $0.selectors == kept.selectors }
            entries.append(kept)
            if entries.count > maximum { entries.removeFirst(entries.count - maximum) }
        }
        if isStored, ticket.isValid { count { $0.stores += 1 } }
        return combined
    }

    private func combined(
        _ entry: HTTPCacheEntry,
        _ reply: TransportResponse,
        _ plan: Plan
    ) -> (entry: HTTPCacheEntry, body: [UInt8])? {
        let selecting = configuration.policy.selecting(plan.request.fields)
        for stored in plan.entries where stored.part != nil && stored.matches(selecting) {
            guard let body = storedBody(stored, plan.url.text) else { continue }
            let freshened = HTTPCacheValidation.freshened(
                stored,
                by: reply.fields,
                for: plan.request.fields,
                requestedAt: entry.requestedAt,
                receivedAt: entry.receivedAt,
                policy: configuration.policy
            )
            guard let combined = HTTPCachePart.combined(stored, body, entry, reply.body, freshened),
                combined.body.count <= max(0, configuration.policy.bodyBytesMaximum)
            else { continue }
            return combined
        }
        return nil
    }

    /// Processes the reply to a request for the rest of a stored part: returns the whole, or nil if the request must be
    /// sent again without a range.
    func completed(
        _ plan: Plan,
        _ reply: TransportResponse,
        _ entry: HTTPCacheEntry?,
        _ ticket: HTTPCacheTicket
    ) throws(TransportError) -> HTTPCache.Response? {
        guard let entry, entry.part != nil, let whole = keepPart(entry, reply, plan, ticket), whole.entry.part == nil
        else { return nil }
        guard whole.body.count <= plan.request.bodyLimit else {
            throw TransportError(
                .tooLarge,
                "\(whole.body.count) bytes of content, and the request takes \(plan.request.bodyLimit)."
            )
        }
        count { $0.bytesSaved += whole.body.count - reply.body.count }
        return HTTPCache.Response(
            status: .ok,
            fields: whole.entry.fields,
            body: whole.body,
            source: .network,
            explanation: "\(plan.explanation) The whole is combined (RFC 9111 §3.4).",
            times: HTTPCache.Response.Times(whole.entry, now: whole.entry.receivedAt, policy: configuration.policy)
        )
    }

    /// Applies a 206 to the stored response: the same strong validator confirms it and updates its fields (RFC 9111
    /// §3.4); another one invalidates it.
    @discardableResult func notePart(
        _ plan: Plan,
        _ status: Status,
        _ fields: Fields,
        _ requestedAt: WallTime,
        _ receivedAt: WallTime,
        _ ticket: HTTPCacheTicket
    ) -> HTTPCacheValidation.PartVerdict {
        guard status == .partialContent, let entry = plan.entry, entry.status == .ok, entry.part == nil else {
            return .silent
        }
        let verdict = HTTPCacheValidation.part(fields, of: entry)
        guard verdict != .silent else { return .silent }
        note(entry, plan, isCurrent: verdict == .current, by: fields, requestedAt, receivedAt, ticket)
        return verdict
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
