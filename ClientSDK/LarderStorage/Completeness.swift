/// The completeness of a value. It is independent of freshness, and never inferred from an empty list.
public enum Completeness: Sendable, Hashable {
    case complete
    /// A part: the fields of an entity that a list shows, or the first pages of a list. Steps order parts, from 0 up to below 100.
    case partial(step: Int)
    /// Complete except for a number of gaps.
    case gapped(Int)
    case unknown

    /// A part without steps.
    public static let partial = Completeness.partial(step: 0)

    /// Whether the value is complete.
    public var isComplete: Bool { self == .complete }

    package var step: DiskEntity.Completeness {
        switch self {
        case .complete: .complete
        case .partial(let step): DiskEntity.Completeness(rawValue: min(max(step, 0), 99))
        case .gapped, .unknown: .partial
        }
    }

    package init(_ step: DiskEntity.Completeness) {
        self = step >= .complete ? .complete : .partial(step: step.rawValue)
    }
}
