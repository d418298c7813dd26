import LarderCoding
import LarderEngine
import LarderHTTP

/// Profiles: readable by anyone, editable by their owner.
enum ProfileEndpoints {
    static let routes: [Route] = [
        Route(.get, "/v1/profiles", .ignored, list),
        Route(.get, "/v1/profiles/{id}", .ignored) { call throws(Problem) in try call.read(.profile) },
        Route(.patch, "/v1/profiles/{id}", .required) { call throws(Problem) in try edit(call, call.row(.profile)) },
        Route(.get, "/v1/me", .required) { call throws(Problem) in try call.read(EntityID(.profile, call.viewer)) },
        Route(.patch, "/v1/me", .required) { call throws(Problem) in try edit(call, call.viewer) },
    ]

    private static func list(_ call: Call) throws(Problem) -> Reply? {
        let limit = try call.limit(default: 50)
        let handle = call.query.first("handle")
        let first = try call.after(.profiles) ?? 0
        return try call.reply { store in
            var items: [[UInt8]] = []
            var next: Cursor?
            if let handle {
                if let found = try store.entities.find(.profile, named: handle) {
                    items = [try store.json(.profile, found.id.row)]
                }
            } else {
                let found = try store.entities.page(after: first, of: .all(.profile), limit: limit + 1)
                if found.count > limit { next = Cursor(.profiles, row: found[limit - 1].row) }
                items = found.prefix(limit).map(\.json)
            }
            return ListPage.representation(items, (next, nil), cacheControl: CachePolicy.profile, vary: "Origin")
        }
    }

    private static func edit(_ call: Call, _ row: Int64) throws(Problem) -> Reply? {
        let patch = try call.jsonObject(orMediaType: "application/merge-patch+json")
        return try call.edit(EntityID(.profile, row)) { profile, _, _ in
            try apply(patch, to: &profile.members, call.world.images)
        }
    }

    /// Merges a patch (RFC 7396) into the members that the owner may change.
    private static func apply(_ patch: JSONObject, to members: inout JSONObject, _ images: ImageCatalogue)
        throws(Problem)
    {
        let reader = BodyReader(patch)
        if let name = reader.patched("displayName", length: 1...80) { members["displayName"] = .string(name) }
        for (name, length) in [("bio", 0...500), ("location", 0...80)] where patch[name] != nil {
            // Null removes a member (RFC 7396); a removed member is shown as empty.
            members[name] = .string(reader.string(name, length: length) ?? "")
        }
        for name in ["avatar", "cover"] where patch[name] != nil {
            guard let value = reader.value(name) else {
                members[name] = .null
                continue
            }
            guard case .object(let object) = value, case .string(let id)? = object["id"], let image = images[id] else {
                reader.fail(name, "must be null or an object with the `id` of an image")
                continue
            }
            members[name] = image.reference
        }
        try reader.check()
    }
}
