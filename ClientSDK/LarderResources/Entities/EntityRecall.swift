import LarderStorage
import LarderTime

/// The lookups from which a list was assembled. While the index is the same and few of its entities have changed, only
/// those are looked up again.
struct EntityRecall: Sendable {
    /// The index, and its keys with pending changes applied.
    let stored: StoredQuery
    let keys: [EntityKey]
    let parts: Set<StoredKey>
    /// The costs of the entities against the memory limit when each was last looked up, in bytes.
    var costs: [EntityKey: Int] = [:]
    /// The results of the lookups, in call order; nil if an entity was missing.
    var found: [FoundEntities?] = []

    /// The maximum number of changed entities. Above it, a lookup of all entities takes no longer.
    static let changesMaximum = 8

    /// Creates a recall for an index that was just read.
    init(_ stored: StoredQuery, _ key: QueryKey, _ keys: [EntityKey]) {
        self.stored = stored
        self.keys = keys
        var parts: Set<StoredKey> = [.query(key)]
        parts.reserveCapacity(keys.count + 1)
        for key in keys { parts.insert(.entity(key)) }
        self.parts = parts
    }
}

/// The result of one lookup call: an array of entities, or a timeline.
struct FoundEntities: Sendable {
    /// Facts about an entity besides its value.
    struct Remark: Sendable {
        /// Its position among the entities of its type, or among the elements of the timeline.
        let place: Int
        let key: EntityKey
        /// The number of pending local changes.
        var pending = 0
        /// When its value was fetched, if the entity is invalidated; otherwise nil.
        var staleSince: WallTime?
        /// When it was last invalidated.
        var invalid = Stamp.never
        /// Whether it is no longer stored.
        var isMissing = false
        /// Whether the freshness of the whole value depends on it, and not only that of a page.
        var isCounted = true

        var isNotable: Bool { pending > 0 || staleSince != nil || isMissing }

        /// Notes whether the stored value is invalidated.
        mutating func note(_ stored: StoredEntity?) {
            guard let stored, stored.isInvalidated else { return }
            (staleSince, invalid) = (stored.times.fetchedAt, stored.invalid)
        }
    }

    /// `[E]` in the order of the index, or `FoundTimeline<E>`.
    var values: any Sendable
    var remarks: [Remark] = []
}
