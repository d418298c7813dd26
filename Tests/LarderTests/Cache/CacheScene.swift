import Foundation
import Larder
import LarderTesting
import LarderTime
import Synchronization

/// A cache on a clock that is moved by hand, with a directory that is gone when the test is.
final class CacheScene: Sendable {
    let path = FileManager.default.temporaryDirectory.appendingPathComponent("larder-\(UUID().uuidString)").path
    let clock = ManualClock()
    let isOnline = Mutex(true)
    let events = Mutex<[CacheEvent]>([])

    deinit { try? FileManager.default.removeItem(atPath: path) }

    func configuration(inMemory: Bool = false) -> CacheConfiguration {
        var configuration = CacheConfiguration(directory: inMemory ? nil : path)
        configuration.wallClock = clock
        configuration.monotonicClock = clock
        configuration.sleeper = clock
        configuration.random = { 0.5 }
        configuration.mayUseNetwork = { [weak self] in self?.isOnline.withLock { $0 } ?? true }
        configuration.onEvent = { [weak self] event in self?.events.withLock { $0.append(event) } }
        return configuration
    }

    func cache(inMemory: Bool = false) throws -> LarderCache { try LarderCache(configuration(inMemory: inMemory)) }
}

struct Note: Entity {
    static let entityType = "note"
    var id: String
    var text: String
    var revision: Int64?
    var entityVersion: Int64? { revision }
}

struct Broken: Error, Equatable {}

extension Snapshot {
    /// The state in short: value, freshness, source, activity, error.
    func line(_ show: (Value) -> String) -> String {
        let value = value.map(show) ?? "–"
        let freshness =
            switch freshness {
            case .fresh: "fresh"
            case .missing: "missing"
            case .stale(let reason): "stale(\(reason.rawValue))"
            }
        let error = refreshError.map { " !\($0.code.rawValue)" } ?? ""
        return
            "\(value) \(freshness)\(source.map { " \($0.rawValue)" } ?? "")\(activity == .fetching ? " …" : "")\(error)"
    }
}
