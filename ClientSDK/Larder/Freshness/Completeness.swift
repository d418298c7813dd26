/// How much of what it could hold a value holds. It has nothing to do with freshness, and is never inferred from a list being empty.
public enum Completeness: Sendable, Hashable {
    /// All of it.
    case complete
    /// A part: what a list shows of an entity, or the first pages of a list. The step orders parts, from 0 up to below 100.
    case partial(step: Int)
    /// All but what lies in so many gaps.
    case gapped(Int)
    /// Nobody has said.
    case unknown

    /// A part without steps in between.
    public static let partial = Completeness.partial(step: 0)

    /// Whether everything is there.
    public var isComplete: Bool { self == .complete }

    var step: DiskEntity.Completeness {
        switch self {
        case .complete: .complete
        case .partial(let step): DiskEntity.Completeness(rawValue: min(max(step, 0), 99))
        case .gapped, .unknown: .partial
        }
    }

    init(_ step: DiskEntity.Completeness) {
        self = step >= .complete ? .complete : .partial(step: step.rawValue)
    }
}
