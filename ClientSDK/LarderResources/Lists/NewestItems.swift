import LarderStorage
import LarderTime

/// What was told of and belongs in front of a timeline, the oldest first.
struct NewestItems: Sendable {
    struct Item: Sendable {
        var key: EntityKey
        var isOwn: Bool
        /// Whether it was just made: only then may a timeline begin with it.
        var isNew = true
        /// Whether the first identifier's item comes before the second's; nil: it belongs in front of all.
        var isNewer: (@Sendable (String, String) -> Bool)?

        /// Whether it belongs behind all that is loaded: most of what changes was made long ago.
        func isBehind(_ query: DiskQuery) -> Bool {
            guard let isNewer, query.nextCursor != nil, let last = query.ids.last(where: { $0.type == key.type })
            else { return false }
            return !isNewer(key.id, last.id)
        }

        func insert(into layout: inout TimelineLayout, at time: WallTime) {
            let time = time.nanosecondsSinceEpoch
            guard let isNewer else { return layout.insertNewest(key, at: time, isOwn: isOwn) }
            layout.insert(key, at: time, isOwn: isOwn, begins: isNew || isOwn) {
                $1.type == key.type && isNewer($0.id, $1.id)
            }
        }
    }

    var timeline: QueryKey
    var items: [Item]

    /// So many items of others' may stand in front that no page has confirmed. Beyond, the timeline is stale instead: its reader asks
    /// for a page rather than keeping thousands that were told of while nobody looked.
    static let unconfirmedMaximum = 100
}
