import Foundation
import LarderResources
package import LarderStorage
package import LarderTime
import Synchronization

/// A temporary directory for a store, in memory if the system has such a file system.
package final class StoreDirectory: Sendable {
    package let path: String

    package init() {
        let parent = FileManager.default.fileExists(atPath: "/dev/shm") ? "/dev/shm" : NSTemporaryDirectory()
        path = "\(parent)/larder-disk-\(UUID().uuidString)"
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    package var database: String { path + "/store.sqlite" }

    /// The relative paths of all files, sorted.
    package var files: [String] { ((try? FileManager.default.subpathsOfDirectory(atPath: path)) ?? []).sorted() }

    package var setAside: [String] { files.filter { $0 == "store.damaged" } }

    package func bytes(_ name: String) -> [UInt8] {
        FileManager.default.contents(atPath: "\(path)/\(name)").map(Array.init) ?? []
    }

    /// Whether any file has these bytes. O(n) in the bytes of all files.
    package func contains(_ needle: [UInt8]) -> Bool { !files(with: needle).isEmpty }

    /// The files that have these bytes.
    package func files(with needle: [UInt8]) -> [String] {
        files.filter { name in
            FileManager.default.contents(atPath: "\(path)/\(name)")?.range(of: Data(needle)) != nil
        }
    }

    package func overwrite(_ name: String, at offset: Int, with bytes: [UInt8]) throws {
        let handle = try FileHandle(forUpdating: URL(fileURLWithPath: "\(path)/\(name)"))
        try handle.seek(toOffset: UInt64(offset))
        try handle.write(contentsOf: Data(bytes))
        try handle.close()
    }

    package func truncate(_ name: String, to count: Int) throws {
        let handle = try FileHandle(forUpdating: URL(fileURLWithPath: "\(path)/\(name)"))
        try handle.truncate(atOffset: UInt64(count))
        try handle.close()
    }
}

/// The events of a store.
package final class EventLog: Sendable {
    private let state = Mutex<[DiskStore.Event]>([])

    package init() {}

    package func note(_ event: DiskStore.Event) { state.withLock { $0.append(event) } }

    package var recoveries: [DiskStore.Recovery] {
        state.withLock { $0 }.compactMap { if case .recovered(let recovery) = $0 { recovery } else { nil } }
    }

    package var discarded: [String] {
        state.withLock { $0 }.compactMap { if case .discarded(let item, _, _) = $0 { item } else { nil } }
    }

    package var reasons: [String] {
        state.withLock { $0 }.compactMap { if case .discarded(_, let reason, _) = $0 { reason } else { nil } }
    }

    package var evicted: Int {
        state.withLock { $0 }.reduce(0) { if case .evicted(let count) = $1 { $0 + count } else { $0 } }
    }

    package var transformChanges: [String] {
        state.withLock { $0 }.compactMap {
            if case .transformChanged(let items, let operations) = $0 {
                "\(items) items, \(operations) operations"
            } else {
                nil
            }
        }
    }

    package var isEmpty: Bool { state.withLock { $0.isEmpty } }
}

/// A store with its own directory and a manual clock.
package struct DiskFixture {
    package let directory = StoreDirectory()
    package let clock = ManualClock()
    package let events = EventLog()

    package init() {}

    package func configuration(_ change: (inout DiskStore.Configuration) -> Void = { _ in }) -> DiskStore.Configuration
    {
        var configuration = DiskStore.Configuration(directory: directory.path, clock: clock)
        configuration.onEvent = { [events] event in events.note(event) }
        configuration.busyTimeout = .zero
        change(&configuration)
        return configuration
    }

    package func store(_ change: (inout DiskStore.Configuration) -> Void = { _ in }) throws -> DiskStore {
        try DiskStore(configuration(change))
    }

    package func entity(
        _ id: String,
        _ payload: [UInt8] = [1, 2, 3],
        version: Int64? = nil,
        entityTag: String? = nil,
        completeness: DiskEntity.Completeness = .complete
    ) -> DiskEntity {
        DiskEntity(
            EntityKey(type: "post", id: id),
            payload: payload,
            version: version,
            entityTag: entityTag,
            fetchedAt: clock.now,
            expiresAt: clock.now + .seconds(60),
            completeness: completeness
        )
    }

    package func record(_ key: String, _ payload: [UInt8] = [1], lifetime: Duration = .seconds(86_400)) -> DiskRecord {
        DiskRecord(key, payload: payload, recordedAt: clock.now, expiresAt: clock.now + lifetime)
    }

    package func key(_ id: String) -> EntityKey { EntityKey(type: "post", id: id) }
}

extension DiskEntity {
    package init(
        _ key: EntityKey,
        payload: [UInt8],
        version: Int64? = nil,
        entityTag: String? = nil,
        fetchedAt: WallTime,
        expiresAt: WallTime,
        completeness: Completeness = .complete
    ) {
        let times = RowTimes(fetchedAt: fetchedAt, expiresAt: expiresAt)
        self.init(key, payload: payload, version: version, entityTag: entityTag, times, completeness)
    }
}

extension DiskQuery {
    package init(
        _ key: QueryKey,
        ids: [EntityKey],
        isComplete: Bool,
        entityTag: String? = nil,
        fetchedAt: WallTime,
        expiresAt: WallTime,
        details: [UInt8] = []
    ) {
        let times = RowTimes(fetchedAt: fetchedAt, expiresAt: expiresAt)
        self.init(key, ListMembers(ids), isComplete: isComplete, entityTag: entityTag, times: times)
        self.details = details
    }
}

extension DiskStore {
    /// Stores an entity, unless the stored one is newer, or of the same version and more complete.
    @discardableResult
    package func put(_ entity: DiskEntity) throws(DiskError) -> PutOutcome {
        do { return try write { try $0.put(entity) } } catch { throw DiskError(error) }
    }

    /// Removes an entity. Lists still contain its key.
    package func remove(_ key: EntityKey) throws(DiskError) {
        do { try write { try $0.remove(.entity(key)) } } catch { throw DiskError(error) }
    }
}
