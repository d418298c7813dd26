import Foundation
import Larder
import LarderTime
import Synchronization

/// A directory for a store that is gone when the test is; in memory where the system has such a place.
final class StoreDirectory: Sendable {
    let path: String

    init() {
        let parent = FileManager.default.fileExists(atPath: "/dev/shm") ? "/dev/shm" : NSTemporaryDirectory()
        path = "\(parent)/larder-disk-\(UUID().uuidString)"
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    var database: String { path + "/store.sqlite" }

    /// The paths of all files below, relative and sorted.
    var files: [String] { ((try? FileManager.default.subpathsOfDirectory(atPath: path)) ?? []).sorted() }

    var blobs: [String] { files.filter { $0.hasPrefix("blobs/") && $0.utf8.count > 60 } }

    var setAside: [String] { files.filter { $0.hasPrefix("store.damaged-") && !$0.contains("-wal") } }

    func bytes(_ name: String) -> [UInt8] {
        FileManager.default.contents(atPath: "\(path)/\(name)").map(Array.init) ?? []
    }

    func overwrite(_ name: String, at offset: Int, with bytes: [UInt8]) throws {
        let handle = try FileHandle(forUpdating: URL(fileURLWithPath: "\(path)/\(name)"))
        try handle.seek(toOffset: UInt64(offset))
        try handle.write(contentsOf: Data(bytes))
        try handle.close()
    }

    func truncate(_ name: String, to count: Int) throws {
        let handle = try FileHandle(forUpdating: URL(fileURLWithPath: "\(path)/\(name)"))
        try handle.truncate(atOffset: UInt64(count))
        try handle.close()
    }
}

/// What a store has told.
final class EventLog: Sendable {
    private let state = Mutex<[DiskEvent]>([])

    func note(_ event: DiskEvent) { state.withLock { $0.append(event) } }

    var recoveries: [DiskRecovery] {
        state.withLock { $0 }.compactMap { if case .recovered(let recovery) = $0 { recovery } else { nil } }
    }

    var discarded: [DiskEvent.Item] {
        state.withLock { $0 }.compactMap { if case .discarded(let item, _) = $0 { item } else { nil } }
    }

    var reasons: [DiskEvent.DiscardReason] {
        state.withLock { $0 }.compactMap { if case .discarded(_, let reason) = $0 { reason } else { nil } }
    }

    var evicted: Int {
        state.withLock { $0 }.reduce(0) { if case .evicted(let count) = $1 { $0 + count } else { $0 } }
    }

    var isEmpty: Bool { state.withLock { $0.isEmpty } }
}

/// A store in a directory of its own, with a clock that is moved by hand.
struct DiskFixture {
    let directory = StoreDirectory()
    let clock = ManualClock()
    let events = EventLog()

    func configuration(_ change: (inout DiskStore.Configuration) -> Void = { _ in }) -> DiskStore.Configuration {
        var configuration = DiskStore.Configuration(directory: directory.path, clock: clock)
        configuration.onEvent = { [events] event in events.note(event) }
        configuration.busyTimeout = .zero
        change(&configuration)
        return configuration
    }

    func store(_ change: (inout DiskStore.Configuration) -> Void = { _ in }) throws -> DiskStore {
        try DiskStore(configuration(change))
    }

    func entity(
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

    func record(_ key: String, _ payload: [UInt8] = [1], lifetime: Duration = .seconds(86_400)) -> DiskRecord {
        DiskRecord(key, payload: payload, recordedAt: clock.now, expiresAt: clock.now + lifetime)
    }

    func key(_ id: String) -> EntityKey { EntityKey(type: "post", id: id) }
}
