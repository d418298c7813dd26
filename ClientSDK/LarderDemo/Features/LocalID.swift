import Larder

extension LarderError {
    /// Whether the API itself says that an entity does not exist. A 404 of a proxy says nothing about it.
    var saysDeleted: Bool { status == 404 && problem?.hasSuffix("/not-found") ?? false }
}

/// IDs of entities that were created on this device and that the server does not have yet.
enum LocalID {
    static let prefix = "local-"

    /// Remembers the server's ID of an entity that was created on this device: a view may still have the local one.
    static func remember(_ local: String, as server: String, in update: inout CacheUpdate) {
        update.put(Link(id: local, serverID: server))
    }

    /// The server's ID; nil for a local ID of an entity that the server has not confirmed.
    static func serverID(_ id: String, in cache: LarderCache?) -> String? {
        guard id.hasPrefix(prefix) else { return id }
        return cache?.stored(Resource<Link>.entity(id) { _ in .gone })?.value?.serverID
    }

    /// The server's ID, or the local one if the server has not confirmed the entity.
    static func current(_ id: String, in cache: LarderCache) -> String { serverID(id, in: cache) ?? id }

    /// The error of a change of an entity whose creation was not sent, or was rejected.
    static func notCreated(_ id: String) -> LarderError {
        LarderError(
            .invalidArgument,
            "\(id) was not created on the server. Send its creation again (Outbox.retry), or drop both."
        )
    }

    private struct Link: CacheEntity {
        static let entityType = "localID"
        var id: String
        var serverID: String
    }
}
