import LarderCoding
package import LarderEngine
package import LarderHTTP

extension Reply {
    /// A JSON reply that no cache may keep.
    package static func json(
        _ status: Status,
        _ body: [UInt8],
        fields: Fields = Fields()
    ) -> Reply {
        var fields = fields
        fields.set(.cacheControl, "no-store")
        fields.set(.contentType, "application/json")
        return Reply(status: status, fields: fields, body: .bytes(body))
    }

    package static let noContent = Reply(status: .noContent, fields: [.cacheControl: "no-store"])

    /// The reply to a write, with the resource in its present state. A client may keep it and validate it. It may be older than it seems,
    /// because it is sent again for the same idempotency key: it is never fresh.
    ///
    /// - Parameter path: that of a new resource; nil for one that already existed.
    static func written(_ json: [UInt8], createdAt path: String? = nil) -> Reply {
        var fields: Fields = path.map { [.location: $0] } ?? [:]
        fields.set(.contentType, "application/json")
        fields.set(.cacheControl, CachePolicy.revalidate)
        fields.set(.etag, EntityTag.strong(contentOf: json.span).description)
        fields.set(.vary, "Authorization, Origin")
        return Reply(status: path == nil ? .ok : .created, fields: fields, body: .bytes(json))
    }
}

extension Problem {
    /// The problem as a reply, with `no-store`: the next attempt may succeed.
    package var reply: Reply {
        var fields = fields
        fields.set(.contentType, "application/problem+json")
        fields.set(.cacheControl, "no-store")
        fields.set(.vary, "Authorization, Origin")
        return Reply(status: status, fields: fields, body: .bytes(encoded()))
    }
}
