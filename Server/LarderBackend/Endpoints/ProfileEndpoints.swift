import LarderCoding
import LarderEngine
import LarderHTTP

/// Profiles: readable by anyone, editable by their owner.
enum ProfileEndpoints {
    static let routes: [Route] = [
        Route(.get, "/v1/profiles", .ignored, list),
        Route(.get, "/v1/profiles/{id}", .ignored) { call throws(Problem) in try read(call, call.row(.profile)) },
        Route(.patch, "/v1/profiles/{id}", .required) { call throws(Problem) in try edit(call, call.row(.profile)) },
        Route(.get, "/v1/me", .required) { call throws(Problem) in try read(call, call.viewer) },
        Route(.patch, "/v1/me", .required) { call throws(Problem) in try edit(call, call.viewer) },
    ]

    private static func list(_ call: Call) throws(Problem) -> Reply? {
        let limit = try call.limit(default: 50)
        let handle = call.query.first("handle")
        var after: Int64 = 0
        if let text = call.query.first("after") { after = try call.cursor(text, "after", .profiles, 0).row }
        let first = after
        return try call.reply { store in
            var rows = try handle.map { try store.profiles.row(handle: $0).map { [$0] } ?? [] }
            var next: Cursor?
            if rows == nil {
                let found = try store.profiles.rows(after: first, limit: limit + 1)
                if found.count > limit { next = Cursor(.profiles, row: found[limit - 1]) }
                rows = Array(found.prefix(limit))
            }
            let items = try (rows ?? []).map { try store.json(.profile, $0) }
            return ListPage.representation(items, (next, nil), cacheControl: CachePolicy.profile, vary: "Origin")
        }
    }

    private static func read(_ call: Call, _ row: Int64) throws(Problem) -> Reply? {
        try call.reply { try representation(of: row, for: call, in: $0) }
    }

    private static func representation(of row: Int64, for call: Call, in store: Store) throws -> Representation {
        // `/v1/me` depends on the caller; `/v1/profiles/{id}` does not.
        let vary = call.parameters.isEmpty ? "Authorization, Origin" : "Origin"
        return try call.representation(of: .profile, row, CachePolicy.profile, vary: vary, in: store)
    }

    private static func edit(_ call: Call, _ row: Int64) throws(Problem) -> Reply? {
        let patch = try call.jsonObject(orMediaType: "application/merge-patch+json")
        let representation = try call.write { store, commit in
            guard var profile = try store.profiles.find(row) else {
                throw ProblemType.notFound("There is no profile user_\(row).")
            }
            guard row == call.viewer else {
                throw ProblemType.forbidden("Profile user_\(row) belongs to another user.")
            }
            try call.checkConditions(
                on: try Self.representation(of: row, for: call, in: store),
                version: profile.version,
                isRequired: true
            )
            try apply(patch, to: &profile.members, call.world.images)
            profile.version += 1
            profile.updated = commit.now
            try store.profiles.replace(profile)
            try commit.record(.profile, row, audience: .everyone, version: profile.version, in: store)
            return try Self.representation(of: row, for: call, in: store)
        }
        return representation.full
    }

    /// Merges a patch (RFC 7396) into the members that the owner may change.
    private static func apply(_ patch: JSONObject, to members: inout JSONObject, _ images: ImageCatalogue)
        throws(Problem)
    {
        var reader = BodyReader(patch)
        if patch["displayName"] != nil {
            reader.require("displayName")
            if let name = reader.string("displayName", length: 1...80) { members["displayName"] = .string(name) }
        }
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
