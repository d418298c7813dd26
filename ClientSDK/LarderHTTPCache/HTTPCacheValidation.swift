package import LarderHTTP
package import LarderTime

/// Validation of stored responses (RFC 9111 §4.3). Pure.
package enum HTTPCacheValidation {
    /// The maximum number of tags in a request.
    private static let tagsMaximum = 8

    /// Returns the conditions of a validation: the entity tags of the chosen response and of others that the request
    /// selects, and its `Last-Modified` (§4.3.1). Empty if the request has its own conditions. They are also sent with a
    /// range request, because they are evaluated before the range (RFC 9110 §13.2.2): after a 304 the range is cut
    /// from the stored response.
    ///
    /// Tags of other variants are not sent: a 304 may only confirm what the request could have selected (§4.3.4), and
    /// servers exist that give all variants one tag.
    package static func conditions(
        _ chosen: HTTPCacheEntry,
        _ entries: [HTTPCacheEntry],
        _ request: Fields,
        _ policy: HTTPCache.Policy
    ) -> Fields {
        guard !conditionFields.contains(where: { $0 != .range && request.contains($0) }) else { return Fields() }
        var conditions = Fields()
        let selecting = policy.selecting(request)
        let candidates = entries.filter { $0.matches(selecting) }
        var tags = chosen.entityTag.map { [$0.description] } ?? []
        for entry in candidates where tags.count < tagsMaximum {
            if let tag = entry.entityTag?.description, !tags.contains(tag) { tags.append(tag) }
        }
        if !tags.isEmpty { conditions.add(.ifNoneMatch, tags.joined(separator: ", ")) }
        // A server ignores the date if there are tags.
        if let modified = chosen.lastModified, chosen.entityTag != nil || tags.isEmpty {
            conditions.add(.ifModifiedSince, HTTPDate.format(modified))
        }
        return conditions
    }

    /// The fields of a request's own conditions.
    static let conditionFields: [FieldName] = [
        .ifMatch, .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince, .ifRange, .range,
    ]

    /// Returns the stored response that a 304 confirms; nil if there is none (§4.3.4).
    ///
    /// - Parameter chosen: the response that was validated.
    package static func entry(
        confirmedBy fields: Fields,
        _ chosen: HTTPCacheEntry?,
        _ entries: [HTTPCacheEntry],
        _ request: Fields,
        _ policy: HTTPCache.Policy
    ) -> HTTPCacheEntry? {
        let selecting = policy.selecting(request)
        let candidates = entries.filter { $0.matches(selecting) }
        let recent = ([chosen].compactMap { $0 } + candidates.sorted { $0.receivedAt > $1.receivedAt })
        if let text = fields[.etag] {
            guard let tag = EntityTag(parsing: text) else { return nil }
            if !tag.isWeak { return recent.first { $0.entityTag.map { tag.stronglyMatches($0) } ?? false } }
            return recent.first { $0.entityTag.map { tag.weaklyMatches($0) } ?? false }
        }
        if let text = fields[.lastModified], let chosen {
            // Some servers send the current date with a 304 to an entity tag.
            return chosen.fields[.lastModified] == text || chosen.entityTag != nil ? chosen : nil
        }
        // A 304 without a validator means the chosen response, or the only candidate.
        guard fields[.lastModified] == nil else { return nil }
        return chosen ?? (candidates.count == 1 ? candidates[0] : nil)
    }

    /// Returns a stored response with the fields of a 304 or of a response to `HEAD` (§3.2).
    ///
    /// All received fields are replaced, except those of the connection, those about missing content
    /// (`Content-Length`, `Content-Encoding`, `Content-Range`), and those that are not stored.
    package static func freshened(
        _ entry: HTTPCacheEntry,
        by fields: Fields,
        for request: Fields,
        requestedAt: WallTime,
        receivedAt: WallTime,
        policy: HTTPCache.Policy
    ) -> HTTPCacheEntry {
        var entry = entry
        var update = HTTPCacheStorageDecision.storable(fields, receivedAt: receivedAt)
        for name in [FieldName.contentLength, .contentEncoding, .contentRange] { update.remove(name) }
        var isReplaced: Set<FieldName> = []
        // The age counts from the confirming response.
        entry.fields.remove(.age)
        for field in update {
            if isReplaced.insert(field.name).inserted { entry.fields.remove(field.name) }
            entry.fields.add(field.name, field.value)
        }
        entry.requestedAt = requestedAt
        entry.receivedAt = receivedAt
        entry.isInvalidated = false
        if let names = policy.varying(entry.fields) {
            entry.selectors = HTTPCacheStorageDecision.selectors(names, in: request, policy)
        }
        return entry
    }

    /// Whether a stored response may be kept with its updated fields, which may forbid storing or match no request
    /// (§4.1).
    package static func mayStay(_ entry: HTTPCacheEntry, _ policy: HTTPCache.Policy) -> Bool {
        let directives = CacheControl(response: entry.fields)
        let forbids = directives.noStore && !(directives.mustUnderstand && entry.status.isUnderstood)
        return !forbids && policy.varying(entry.fields) != nil
    }

    /// Whether a response to `HEAD` confirms a stored response (§4.3.5).
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
