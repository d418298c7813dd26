import Larder

extension LarderError {
    /// Whether the API itself says that an entity does not exist. A 404 of a proxy says nothing about it.
    private var saysDeleted: Bool { status == 404 && problem?.hasSuffix("/not-found") ?? false }

    /// The result of a change; nil if what it changes is deleted already, perhaps by an attempt whose reply was lost.
    static func unlessDeleted<Item>(
        _ change: () async throws(LarderError) -> Item?
    ) async throws(LarderError) -> Item? {
        do { return try await change() } catch {
            guard error.saysDeleted else { throw error }
            return nil
        }
    }
}

/// IDs of entities that were created on this device and that the server does not have yet.
enum LocalID {
    static let prefix = "local-"

    /// The server's ID; nil for a local ID of an entity that the server has not confirmed.
    static func serverID(_ id: String, in cache: LarderCache?) -> String? {
        id.hasPrefix(prefix) ? cache?.serverID(of: id) : id
    }

    /// The server's ID, or the local one if the server has not confirmed the entity: a view may have the local one afterwards.
    static func current(_ id: String, in cache: LarderCache) -> String { cache.serverID(of: id) ?? id }

    /// The error of a change of an entity whose creation was not sent, or was rejected.
    static func notCreated(_ id: String) -> LarderError {
        LarderError(
            .invalidArgument,
            "\(id) was not created on the server. Send its creation again (Outbox.retry), or drop both."
        )
    }
}
