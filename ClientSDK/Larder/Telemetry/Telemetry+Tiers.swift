package import LarderStorage
import LarderTelemetry

extension Telemetry {
    /// Records an event of a disk store, for its `Configuration.onEvent`.
    package func record(_ event: DiskStore.Event) {
        switch event {
        case .recovered(let recovery):
            let (kept, isWhole) = (recovery.outboxSaved, recovery.isOutboxWhole)
            record(.storeRecovered(store: "disk", kept: kept, isOutboxWhole: isWhole))
        case .discarded(_, let reason, let cause):
            record(.eviction(.disk, reason: reason))
            if let cause { record(.note(name: reason, detail: cause)) }
        case .evicted(let count): record(.eviction(.disk, reason: "budget", count: count))
        case .expired(let count): record(.eviction(.disk, reason: "expired", count: count))
        case .transformChanged(let items, let operations):
            record(
                .note(name: "transformChanged", detail: "\(items) items removed, \(operations) operations unreadable")
            )
        case .purged: record(.note(name: "purged"))
        case .transformFailed(let error): record(.note(name: "transformFailed", detail: error.description))
        case .cleaningFailed(let error): record(.note(name: "cleaningFailed", detail: error.description))
        }
    }
}
