/// The chapters of the tour, in their order.
enum TourName: String, CaseIterable {
    case tiers, reads, taps, invalidation, paging, eviction, features

    var title: String {
        switch self {
        case .tiers: "Memory, disk and network, and process death"
        case .reads: "Reads, step by step"
        case .taps: "One tap with three strategies"
        case .invalidation: "Lifetime, version and event"
        case .paging: "Pages by position and by cursor"
        case .eviction: "Eviction, step by step"
        case .features: "Clients and networks compared"
        }
    }
}
