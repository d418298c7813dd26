/// The kinds of entity that a reader of the change feed requested.
struct ChangeFilter: OptionSet, Hashable, Sendable {
    let rawValue: UInt16

    init(rawValue: UInt16) { self.rawValue = rawValue }

    init(_ kind: EntityKind) { self.init(rawValue: 1 << UInt16(truncatingIfNeeded: kind.rawValue)) }

    /// All kinds that the feed contains.
    static let all = ChangeFilter(EntityKind.inChangeFeed.map { ChangeFilter($0) })

    func includes(_ kind: EntityKind) -> Bool { contains(ChangeFilter(kind)) }
}
