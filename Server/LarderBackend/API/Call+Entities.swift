import LarderEngine
import LarderHTTP

/// What the routes of one entity have in common.
extension Call {
    func read(_ kind: EntityKind) throws(Problem) -> Reply? { try read(EntityID(kind, try row(kind))) }

    func read(_ id: EntityID) throws(Problem) -> Reply? {
        try reply { store in
            _ = try visible(id, in: store)
            return try representation(of: id, in: store)
        }
    }

    /// Changes an entity and returns its new representation. Everything is checked before `change`: who may edit it, and the conditions.
    func edit(
        _ id: EntityID,
        isConditionRequired: Bool = true,
        _ change: (inout EntityRow, Store, Commit) throws -> Void
    ) throws(Problem) -> Reply? {
        let representation = try write { store, commit in
            var entity = try own(id, in: store, isConditionRequired: isConditionRequired)
            try change(&entity, store, commit)
            try commit.save(entity, in: store)
            return try self.representation(of: id, in: store)
        }
        return representation.full
    }

    /// Deletes the entity that the path names, and then what depends on it.
    func delete(
        _ kind: EntityKind,
        _ then: (EntityRow, Store, inout Commit) throws -> Void = { _, _, _ in }
    ) throws(Problem) -> Reply? {
        let id = EntityID(kind, try row(kind))
        try write { store, commit in
            let entity = try own(id, in: store, isConditionRequired: false)
            try commit.delete(entity, in: store)
            try then(entity, store, &commit)
        }
        return .noContent
    }

    /// An entity that the caller may see.
    ///
    /// - Throws: `not-found`, also for an entity of somebody else.
    func visible(_ id: EntityID, in store: Store) throws -> EntityRow {
        if let found = try store.entities.find(id), try store.scope(of: viewer).includes(id, in: found.list) {
            return found
        }
        switch id.kind {
        case .account: throw ProblemType.notFound("You have no account \(id.text).")
        case .conversation: throw ProblemType.notFound("You are not a member of a conversation \(id.text).")
        case .message: throw ProblemType.notFound("There is no message \(id.text) in your conversations.")
        default: throw ProblemType.notFound("There is no \(id.kind.name) \(id.text).")
        }
    }

    /// An entity that the caller may change, after the conditions of the request were checked.
    ///
    /// - Throws: `not-found`, `forbidden`, or the problem of a condition.
    func own(_ id: EntityID, in store: Store, isConditionRequired: Bool) throws -> EntityRow {
        let entity = try visible(id, in: store)
        guard entity.author ?? viewer == viewer else {
            let name = id.kind.name.description
            throw ProblemType.forbidden(
                "\(name.prefix(1).uppercased() + name.dropFirst()) \(id.text) belongs to another user."
            )
        }
        try checkConditions(
            on: try representation(of: id, in: store),
            version: entity.version,
            isRequired: isConditionRequired
        )
        return entity
    }

    /// The present representation of an entity that the caller may see.
    func representation(of id: EntityID, in store: Store) throws -> Representation {
        var body: [UInt8] = []
        let version = try store.entities.append(id, viewer: viewer, to: &body)
        let cacheControl =
            switch id.kind {
            case .post: CachePolicy.feed
            case .profile: CachePolicy.profile
            default: CachePolicy.revalidate
            }
        return Representation(
            body: body,
            cacheControl: cacheControl,
            // `/v1/me` depends on the caller; `/v1/profiles/{id}` does not.
            vary: id.kind == .profile && !parameters.isEmpty ? "Origin" : "Authorization, Origin",
            modified: version.map { modification($0.updated) }
        )
    }
}
