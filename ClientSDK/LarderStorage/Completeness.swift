/// The completeness of a value. It is independent of freshness, and never inferred from an empty list.
public enum Completeness: Sendable, Hashable {
    case complete
    /// A part: the fields of an entity that a list shows, or the first pages of a list.
    case partial
    /// Complete except for a number of gaps.
    case gapped(Int)
    case unknown

    /// Whether the value is complete.
    public var isComplete: Bool { self == .complete }

    package var ofEntity: DiskEntity.Completeness { isComplete ? .complete : .partial }

    package init(_ entity: DiskEntity.Completeness) { self = entity == .complete ? .complete : .partial }
}
