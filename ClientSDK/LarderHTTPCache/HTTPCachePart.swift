import LarderHTTP
import LarderTime

/// Parts of content (RFC 9111 §3.3, §3.4): which are stored, which requests they answer, how they are combined. Pure.
///
/// Bytes are combined only under the same strong entity tag, and only if they overlap or adjoin, so a stored part is always
/// one run of bytes of one version.
enum HTTPCachePart {
    /// Returns the part that a 206 has; nil if it cannot be stored: several ranges, an unknown size, or content that the
    /// transport may have decoded.
    static func part(_ fields: Fields) -> (bytes: Range<Int>, total: Int)? {
        guard !fields.contains(.contentEncoding),
            let range = fields[.contentRange].flatMap({ ContentRange(parsing: $0) }), let total = range.total
        else { return nil }
        return (range.bytes, total)
    }

    /// Returns a stored part or whole that is made of a stored and a received part; nil if they cannot be combined.
    ///
    /// - Parameters:
    ///   - news: the received part as an entry.
    ///   - freshened: the stored part with the fields and times of the received one (§3.4).
    static func combined(
        _ stored: HTTPCacheEntry,
        _ storedBody: [UInt8],
        _ news: HTTPCacheEntry,
        _ newBody: [UInt8],
        _ freshened: HTTPCacheEntry
    ) -> (entry: HTTPCacheEntry, body: [UInt8])? {
        guard let old = stored.part, let new = news.part, old.total == new.total,
            let oldTag = stored.entityTag, let newTag = news.entityTag, oldTag.stronglyMatches(newTag)
        else { return nil }
        let (oldEnd, newEnd) = (old.offset + storedBody.count, new.offset + newBody.count)
        guard old.offset <= newEnd, new.offset <= oldEnd else { return nil }
        // Where they overlap, the received bytes count.
        var body = old.offset < new.offset ? Array(storedBody.prefix(new.offset - old.offset)) : []
        body += newBody
        if oldEnd > newEnd { body += storedBody.suffix(oldEnd - newEnd) }
        let isWhole = body.count == new.total
        var fields = freshened.fields
        fields.remove(.contentRange)
        fields.remove(.contentLength)
        if isWhole { fields.set(.contentLength, "\(body.count)") }
        let part = HTTPCacheEntry.Part(offset: min(old.offset, new.offset), total: new.total)
        let entry = HTTPCacheEntry(
            bodyID: HTTPCacheEntry.bodyID(for: body),
            bodyCount: body.count,
            status: .ok,
            fields: fields,
            selectors: news.selectors,
            requestedAt: news.requestedAt,
            receivedAt: news.receivedAt,
            part: isWhole ? nil : part
        )
        return (entry, body)
    }

    /// Returns the stored beginning of the content that a request for all of it may complete, and the fields that ask for
    /// the rest; nil if there is none.
    static func beginning(
        _ method: Method,
        _ request: Fields,
        _ entries: [HTTPCacheEntry],
        _ selecting: Fields
    ) -> (entry: HTTPCacheEntry, conditions: Fields)? {
        guard method == .get, !HTTPCacheValidation.own.contains(where: { request.contains($0) }) else { return nil }
        let found = entries.filter { $0.part?.offset == 0 && $0.matches(selecting) }.max { $0.bodyCount < $1.bodyCount }
        guard let found, let tag = found.entityTag, !tag.isWeak else { return nil }
        return (found, [.range: "bytes=\(found.bodyCount)-", .ifRange: tag.description])
    }
}

extension HTTPCacheEntry {
    /// Whether the stored content suffices to answer a request: all of it always does, a part for one range within it.
    func suffices(for method: Method, _ request: Fields) -> Bool {
        guard let part else { return true }
        guard method == .get, !fields.contains(.contentEncoding),
            let ranges = request[.range].flatMap({ ByteRange.parse($0) }), ranges.count == 1,
            let range = ranges[0].resolved(against: part.total)
        else { return false }
        if let condition = request[.ifRange],
            !Preconditions.ifRangeHolds(condition, entityTag: entityTag, lastModified: lastModified, date: date)
        {
            return false
        }
        return part.offset <= range.lowerBound && range.upperBound <= part.offset + bodyCount
    }
}
