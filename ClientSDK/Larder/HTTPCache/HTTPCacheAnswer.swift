import LarderHTTP
import LarderTime

/// Answers made from what is stored: whole, by the request's own conditions, or a part. Pure.
enum HTTPCacheAnswer {
    /// - Parameter isConfirmed: whether the server has just said that it is current.
    static func make(
        _ entry: HTTPCacheEntry,
        _ body: [UInt8],
        for request: TransportRequest,
        now: WallTime,
        policy: HTTPCachePolicy,
        isConfirmed: Bool
    ) -> TransportResponse {
        var fields = entry.fields
        if !isConfirmed {
            if case .fields(let names) = CacheControl(response: fields).noCache {
                // Not without the server's consent (RFC 9111 §5.2.2.4).
                for name in names { fields.remove(name) }
            }
            fields.remove(.age)
            if let age = HTTPCacheFreshness(entry, now: now, policy: policy).age {
                fields.add(.age, "\(min(DeltaSeconds.maximum, age.components.seconds))")
            }
        }
        let body = request.method == .head ? [] : body
        guard entry.status == .ok else {
            return TransportResponse(status: entry.status, fields: fields, body: body)
        }
        // A request that was sent with our conditions had none of its own.
        if isConfirmed { return part(entry, fields, body, request) }
        // The others are for the server alone (RFC 9111 §4.3.2).
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

    /// The range that is asked for, of content that is there as a whole (RFC 9110 §14.2). Several ranges, and other units, get
    /// the whole content, as servers may give it too.
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
        return TransportResponse(status: .partialContent, fields: fields, body: Array(body[range]))
    }
}
