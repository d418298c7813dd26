/// The kinds of entity that a reader of the change feed requested.
struct ChangeFilter: OptionSet, Hashable, Sendable {
    let rawValue: UInt8

    init(rawValue: UInt8) { self.rawValue = rawValue }

    init(_ kind: EntityKind) { self.init(rawValue: 1 << UInt8(truncatingIfNeeded: kind.rawValue)) }

    /// All kinds that the feed contains.
    static let all = ChangeFilter(EntityKind.inChangeFeed.map { ChangeFilter($0) })

    func includes(_ kind: EntityKind) -> Bool { contains(ChangeFilter(kind)) }
}
