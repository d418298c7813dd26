import LarderHTTP
import LarderTime
import LarderTransport

/// Responses from stored ones: complete, by the request's conditions, or a range. Pure.
enum HTTPCacheAnswer {
    /// - Parameter isConfirmed: whether the server has just confirmed it.
    static func make(
        _ entry: HTTPCacheEntry,
        _ body: [UInt8],
        for request: TransportRequest,
        now: WallTime,
        policy: HTTPCache.Policy,
        isConfirmed: Bool
    ) -> TransportResponse {
        var fields = entry.fields
        if !isConfirmed {
            if case .fields(let names) = CacheControl(response: fields).noCache {
                // Forbidden by no-cache without a validation (RFC 9111 §5.2.2.4).
                for name in names { fields.remove(name) }
            }
            fields.remove(.age)
            if let age = entry.age(now: now, ResponseTerms(entry, policy: policy)) {
                fields.add(.age, "\(min(DeltaSeconds.maximum, age.components.seconds))")
            }
        }
        let body = request.method == .head ? [] : body
        guard entry.status == .ok else {
            return TransportResponse(status: entry.status, fields: fields, body: body)
        }
        // A request with the cache's conditions has none of its own.
        if isConfirmed { return part(entry, fields, body, request) }
        // Only the server evaluates other conditions (RFC 9111 §4.3.2).
        let conditions = Preconditions(
            ifMatch: nil,
            ifNoneMatch: request.fields.combined(.ifNoneMatch),
            ifModifiedSince: request.fields[.ifModifiedSince],
            ifUnmodifiedSince: nil
        )
        let outcome = conditions.evaluate(
            method: request.method,
            exists: true,
            entityTag: entry.entityTag,
            lastModified: entry.lastModified,
            now: now
        )
        guard outcome == .notModified else { return part(entry, fields, body, request) }
        fields.removeAll { $0 == .contentLength || $0 == .contentType || $0 == .contentEncoding }
        return TransportResponse(status: .notModified, fields: fields)
    }

    /// Returns the requested range of the content (RFC 9110 §14.2). For several ranges or other units the complete content
    /// is returned, which the RFC allows.
    private static func part(
        _ entry: HTTPCacheEntry,
        _ fields: Fields,
        _ body: [UInt8],
        _ request: TransportRequest
    ) -> TransportResponse {
        let whole = TransportResponse(status: entry.status, fields: fields, body: body)
        // Ranges are of the encoded bytes, and these may have been decoded.
        guard request.method == .get, !fields.contains(.contentEncoding),
            let ranges = request.fields[.range].flatMap({ ByteRange.parse($0) }), ranges.count == 1
        else { return whole }
        if let condition = request.fields[.ifRange],
            !Preconditions.ifRangeHolds(
                condition,
                entityTag: entry.entityTag,
                lastModified: entry.lastModified,
                date: entry.date
            )
        {
            return whole
        }
        guard let range = ranges[0].resolved(against: body.count) else {
            return TransportResponse(
                status: .rangeNotSatisfiable,
                fields: [.contentRange: "bytes */\(body.count)", .contentLength: "0"]
            )
        }
        var fields = fields
        fields.set(.contentRange, "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(body.count)")
        fields.set(.contentLength, "\(range.count)")
        return TransportResponse(
            status: .partialContent,
            fields: fields,
            body: Array(body[range])
        )
    }
}
