import LarderTime

/// A value as it is kept: its bytes, its validator and its times.
struct StoredRecord: Sendable, Hashable {
    var payload: [UInt8]
    var entityTag: String?
    var freshness: Freshness
}

/// Replies by URL in a `DiskStore`. Safe from any thread.
final class DiskTier: Sendable {
    private static let type = "http"

    private let store: DiskStore

    /// Opens the store in a directory, and makes both if they are not there.
    init(directory: String, clock: any WallClock) throws(LarderError) {
        do {
            store = try DiskStore(DiskStore.Configuration(directory: directory, clock: clock))
        } catch {
            throw LarderError(.storage, error.description, cause: error)
        }
    }

    func find(_ key: String) throws(LarderError) -> StoredRecord? {
        let entity: DiskEntity?
        do {
            entity = try store.entity(EntityKey(type: Self.type, id: key))
        } catch {
            throw LarderError(.storage, error.description, cause: error)
        }
        return entity.map {
            StoredRecord(
                payload: $0.payload,
                entityTag: $0.entityTag,
                freshness: Freshness(fetchedAt: $0.fetchedAt, validatedAt: $0.validatedAt, expiresAt: $0.expiresAt)
            )
        }
    }

    func store(_ record: StoredRecord, for key: String) throws(LarderError) {
        let entity = DiskEntity(
            EntityKey(type: Self.type, id: key),
            payload: record.payload,
            entityTag: record.entityTag,
            fetchedAt: record.freshness.fetchedAt,
            validatedAt: record.freshness.validatedAt,
            expiresAt: record.freshness.expiresAt
        )
        do {
            try store.put(entity)
        } catch {
            throw LarderError(.storage, error.description, cause: error)
        }
    }

    /// Renews the times of a record that the server said is current; its bytes are not written again.
    func renew(_ key: String, _ freshness: Freshness) throws(LarderError) {
        do {
            try store.touch(
                EntityKey(type: Self.type, id: key),
                validatedAt: freshness.validatedAt,
                expiresAt: freshness.expiresAt
            )
        } catch {
            throw LarderError(.storage, error.description, cause: error)
        }
    }

    func removeAll() throws(LarderError) {
        do {
            try store.removeAllItems()
        } catch {
            throw LarderError(.storage, error.description, cause: error)
        }
    }
}
