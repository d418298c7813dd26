import Foundation
import LarderEvents
package import LarderResources
package import LarderStorage
package import LarderTime
package import Synchronization

/// A cache with a manual clock and a temporary directory.
package final class CacheScene: Sendable {
    package let path = FileManager.default.temporaryDirectory.appendingPathComponent("larder-\(UUID().uuidString)").path
    package let clock = ManualClock()
    /// The directory of the outbox's store.
    package var outboxPath: String { path + "/outbox" }
    package let isOnline = Mutex(true)
    package let events = Mutex<[CacheEvent]>([])

    package init() {}

    deinit { try? FileManager.default.removeItem(atPath: path) }

    package func configuration(inMemory: Bool = false) -> CacheConfiguration {
        var configuration = CacheConfiguration(inMemory ? .memory : .directory(path))
        configuration.wallClock = clock
        configuration.monotonicClock = clock
        configuration.random = { 0.5 }
        configuration.mayUseNetwork = { [weak self] in self?.isOnline.withLock { $0 } ?? true }
        configuration.onEvent = { [weak self] event in self?.events.withLock { $0.append(event) } }
        return configuration
    }

    package func cache(inMemory: Bool = false) throws -> LarderCache {
        try LarderCache(configuration(inMemory: inMemory))
    }
}

extension CacheConfiguration {
    /// Changes the settings of the store that the cache opens.
    package mutating func editStore(_ edit: (inout DiskStore.Configuration) -> Void) {
        guard case .disk(var settings) = storage else { return }
        edit(&settings)
        storage = .disk(settings)
    }
}

package struct Note: CacheEntity {
    package static let entityType = "note"
    package var id: String
    package var text: String
    package var revision: Int64?

    package init(id: String, text: String, revision: Int64? = nil) {
        self.id = id
        self.text = text
        self.revision = revision
    }

    package var entityVersion: Int64? { revision }
}

package struct Broken: Error, Equatable {
    package init() {}
}

extension Snapshot {
    /// A short form of the state: value, freshness, source, activity, error.
    package func line(_ show: (Value) -> String) -> String {
        let value = value.map(show) ?? "–"
        let freshness =
            switch freshness {
            case .fresh: "fresh"
            case .missing: "missing"
            case .stale(let reason): "stale(\(reason.rawValue))"
            }
        let error = refreshError.map { " !\($0.code.rawValue)" } ?? ""
        return
            "\(value) \(freshness)\(source.map { " \($0.rawValue)" } ?? "")\(isFetching ? " …" : "")\(error)"
    }
}
