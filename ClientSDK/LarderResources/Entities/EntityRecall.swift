import LarderStorage
import LarderTime

/// What a list was put together from: as long as the index is the same and few of its entities change, only those are looked at
/// again.
struct EntityRecall: Sendable {
    /// The index, and what it names with what is pending over it.
    let stored: StoredQuery
    let keys: [EntityKey]
    let parts: Set<StoredKey>
    /// What was looked up, call by call; nil where something was missing then.
    var found: [FoundEntities?] = []

    /// When more entities than this have changed, looking at all of them takes no longer.
    static let changesMaximum = 8

    /// Of an index that was just read.
    init(_ stored: StoredQuery, _ key: QueryKey, _ keys: [EntityKey]) {
        self.stored = stored
        self.keys = keys
        var parts: Set<StoredKey> = [.query(key)]
        parts.reserveCapacity(keys.count + 1)
        for key in keys { parts.insert(.entity(key)) }
        self.parts = parts
    }
}

/// All entities of one type that an index names, as they were found.
struct FoundEntities: Sendable {
    /// What is to be known of an entity besides its value, where there is anything.
    struct Remark: Sendable {
        /// Its place among those of its type.
        let place: Int
        let key: EntityKey
        /// How many changes to it are pending here.
        var pending = 0
        /// Since when its value is what it is, where it was declared stale.
        var staleSince: WallTime?
        /// Whether it is not stored any more.
        var isMissing = false

        var saysAnything: Bool { pending > 0 || staleSince != nil }
    }

    /// An array of them: none of those that the index names is left out.
    var values: any Sendable
    var remarks: [Remark] = []
}
