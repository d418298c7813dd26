import LarderHTTP
import LarderTime

/// Asking whether what is stored is current, and what the answer means (RFC 9111 §4.3). Pure.
enum HTTPCacheValidation {
    /// How many tags a request carries at most: those of all variants may be many.
    private static let tagsMaximum = 8

    /// The conditions to ask with: the tags of the response that is meant, and of the variants that could do instead; its date
    /// where it has no tag, and beside it for servers that know dates only (§4.3.1). None where the request has conditions of
    /// its own. A request for a part is asked with them too: they are looked at before its range is (RFC 9110 §13.2.2), so a 304
    /// lets the part be cut from what is stored.
    static func conditions(_ chosen: HTTPCacheEntry?, _ entries: [HTTPCacheEntry], _ request: Fields) -> Fields {
        guard !own.contains(where: { $0 != .range && request.contains($0) }) else { return Fields() }
        var conditions = Fields()
        // What another one was given may never be taken for this one's, however careless the server is with its tags.
        let candidates = entries.filter { entry in
            entry.selectors.allSatisfy { !$0.isIdentity || $0.matches(request) }
        }
        var tags = chosen?.entityTag.map { [$0.description] } ?? []
        for entry in candidates where tags.count < tagsMaximum {
            if let tag = entry.entityTag?.description, !tags.contains(tag) { tags.append(tag) }
        }
        if !tags.isEmpty { conditions.add(.ifNoneMatch, tags.joined(separator: ", ")) }
        // With tags of others beside its own, a date would be passed over anyway.
        if let chosen, let modified = chosen.lastModified, chosen.entityTag != nil || tags.isEmpty {
            conditions.add(.ifModifiedSince, HTTPDate.format(modified))
        }
        return conditions
    }

    /// The fields by which a request states conditions of its own.
    static let own: [FieldName] = [
        .ifMatch, .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince, .ifRange, .range,
    ]

    /// Which of the stored responses a 304 vouches for; nil if none (§4.3.4).
    ///
    /// - Parameter chosen: the one that was asked about.
    static func entry(
        confirmedBy fields: Fields,
        _ chosen: HTTPCacheEntry?,
        _ entries: [HTTPCacheEntry],
        _ request: Fields
    ) -> HTTPCacheEntry? {
        let candidates = entries.filter { entry in
            entry.selectors.allSatisfy { !$0.isIdentity || $0.matches(request) }
        }
        let recent = ([chosen].compactMap { $0 } + candidates.sorted { $0.receivedAt > $1.receivedAt })
        if let text = fields[.etag] {
            guard let tag = EntityTag(parsing: text) else { return nil }
            if !tag.isWeak { return recent.first { $0.entityTag.map { $0.opaque == tag.opaque } ?? false } }
            return recent.first { $0.entityTag.map { tag.weaklyMatches($0) } ?? false }
        }
        if let text = fields[.lastModified], let chosen {
            // Some servers send the date of now with a 304 that they gave for the tag.
            return chosen.fields[.lastModified] == text || chosen.entityTag != nil ? chosen : nil
        }
        // No validator: it can only mean the one that was asked about, if that was one.
        guard fields[.lastModified] == nil else { return nil }
        return chosen ?? (candidates.count == 1 ? candidates[0] : nil)
    }

    /// A stored response with the fields of a 304, or of the reply to a `HEAD` (§3.2).
    ///
    /// Everything that is named is replaced, except what belongs to a connection, what is about bytes that did not come
    /// (`Content-Length`, `Content-Encoding`, `Content-Range`), and what is not stored.
    static func freshened(
        _ entry: HTTPCacheEntry,
        by fields: Fields,
        for request: Fields,
        requestedAt: WallTime,
        receivedAt: WallTime,
        policy: HTTPCachePolicy
    ) -> HTTPCacheEntry {
        var entry = entry
        var update = HTTPCacheStorageDecision.storable(fields, receivedAt: receivedAt)
        for name in [FieldName.contentLength, .contentEncoding, .contentRange] { update.remove(name) }
        var isReplaced: Set<FieldName> = []
        // Ages are added up from the response that vouches last.
        entry.fields.remove(.age)
        for field in update {
            if isReplaced.insert(field.name).inserted { entry.fields.remove(field.name) }
            entry.fields.add(field.name, field.value)
        }
        entry.requestedAt = requestedAt
        entry.receivedAt = receivedAt
        entry.isInvalidated = false
        if case .fields(let names) = Vary(entry.fields) {
            entry.selectors = HTTPCacheStorageDecision.selectors(names, in: request, policy)
        }
        return entry
    }

    /// Whether a stored response may stay with the fields that it has now: what renewed it may forbid that, or have it match no
    /// request any more (§4.1).
    static func mayStay(_ entry: HTTPCacheEntry) -> Bool {
        !CacheControl(response: entry.fields).noStore && Vary(entry.fields) != .any
    }

    /// Whether the reply to a `HEAD` says that what is stored is current (§4.3.5).
    static func head(_ fields: Fields, confirms entry: HTTPCacheEntry) -> Bool {
        if let text = fields[.etag], entry.fields[.etag] != text { return false }
        if let text = fields[.lastModified], entry.fields[.lastModified] != text { return false }
        if let text = fields[.contentLength], fields[.contentEncoding] == nil, entry.fields[.contentEncoding] == nil,
            let length = Int(text), length != entry.bodyCount
        {
            return false
        }
        return true
    }
}
