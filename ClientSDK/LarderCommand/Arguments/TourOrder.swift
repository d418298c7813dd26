/// Which chapters of the tour are run, and where the page goes.
struct TourOrder: Sendable {
    /// The chapters in their order.
    enum Name: String, CaseIterable {
        case tiers, death, reads, taps, lifetimes, invalidation, paging, policies, features

        var title: String {
            switch self {
            case .tiers: "Three tiers"
            case .death: "What a killed process leaves"
            case .reads: "A profile, read six times"
            case .taps: "One tap, two strategies"
            case .lifetimes: "A lifetime runs out"
            case .invalidation: "Lifetime, version or event"
            case .paging: "Pages by position and by cursor"
            case .policies: "What each read policy shows"
            case .features: "A visit, five networks, three clients"
            }
        }
    }

    var names: [Name]
    /// The file of the HTML page.
    var page: String?
}
