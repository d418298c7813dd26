/// The chapters of the tour, in their order.
enum TourName: String, CaseIterable {
    case tiers, death, reads, taps, invalidation, paging, eviction, policies, budgets, pressure, features

    var title: String {
        switch self {
        case .tiers: "Memory, disk and network"
        case .death: "Process death"
        case .reads: "Reads, step by step"
        case .taps: "One tap with three strategies"
        case .invalidation: "Lifetime, version and event"
        case .paging: "Pages by position and by cursor"
        case .eviction: "Eviction, step by step"
        case .policies: "Read policies"
        case .budgets: "One budget for pictures, or two"
        case .pressure: "Memory guard and clearing alone"
        case .features: "Clients and networks compared"
        }
    }
}
