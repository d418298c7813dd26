extension Telemetry {
    /// Records what happens in a cache: for its `CacheConfiguration.onEvent`. A resource's name is the feature.
    public func record(_ event: CacheEvent) {
        switch event {
        case .hit(let resource, let tier):
            record(.tierHit(tier == .memory ? .memory : .disk, feature: resource))
        case .miss(let resource): record(.tierMiss(.disk, feature: resource))
        case .merged(let resource): record(.merged(feature: resource))
        case .fetched(let resource, let duration):
            record(.firstContent(feature: resource, from: .network, after: duration))
        case .revalidated(let resource, _): record(.revalidated(feature: resource, bytesSaved: 0))
        case .failed(let resource, let error): record(.note(name: "failed " + resource, detail: error.code.rawValue))
        case .gateRefused(let resource): record(.gateRefused(feature: resource, reason: "notValidated"))
        case .disk(let event): record(event)
        case .storageFailed(let error): record(.note(name: "storageFailed", detail: error.description))
        case .clockSetBack: record(.note(name: "clockSetBack"))
        case .operation(let name, let id, let end):
            switch end {
            case .accepted: record(.note(name: "accepted " + name, detail: id.description))
            case .refused(let error): record(.note(name: "refused " + name, detail: error.code.rawValue))
            case .postponed(_, let wait): record(.retry(feature: name, attempt: 2, delay: wait))
            }
        }
    }
}
