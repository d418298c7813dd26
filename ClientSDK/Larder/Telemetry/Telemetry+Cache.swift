public import LarderResources
import LarderTelemetry
import LarderTime

extension Telemetry {
    /// Records an event of a cache, for `CacheConfiguration.onEvent`. The name of the resource is the feature.
    public func record(_ event: CacheEvent) {
        switch event {
        case .hit(let resource, let tier, let bytes):
            // Memory was checked before.
            if tier == .disk { record(.tierMiss(.memory, feature: resource)) }
            record(.tierHit(tier, feature: resource, bytes: bytes))
        case .miss(let resource):
            record(.tierMiss(.memory, feature: resource))
            record(.tierMiss(.disk, feature: resource))
        case .merged(let resource): record(.merged(feature: resource))
        case .fetched(let resource, _): record(.tierHit(.network, feature: resource))
        case .revalidated(let resource, _, let bytes): record(.revalidated(feature: resource, bytesSaved: bytes))
        case .firstContent(let resource, let tier, let duration):
            record(.firstContent(feature: resource, from: tier, after: duration))
        case .evicted(let reason, let count, let bytes):
            record(.eviction(.memory, reason: reason, count: count, bytes: bytes))
        case .outbox(let step, let depth): record(TelemetryEvent.Kind.outbox(step, depth: depth))
        case .notStored(let resource): record(.note(name: "notStored " + resource, detail: "no-store"))
        case .failed(let resource, let error): record(.note(name: "failed " + resource, detail: error.code.rawValue))
        case .gateRejected(let resource): record(.gateRejected(feature: resource, reason: "notValidated"))
        case .disk(let event): record(event)
        case .storageFailed(let error): record(.note(name: "storageFailed", detail: error.description))
        case .clockSetBack: record(.note(name: "clockSetBack"))
        case .unregistered(let name, let count): record(.note(name: "unregistered " + name, detail: "\(count)"))
        case .accepted(let name, let id): record(.note(name: "accepted " + name, detail: id.description))
        case .rejected(let name, _, let error): record(.note(name: "rejected " + name, detail: error.code.rawValue))
        case .postponed(let name, _, _, let wait): record(.retry(feature: name, attempt: 2, delay: wait))
        }
    }
}
