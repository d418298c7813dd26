import LarderStorage
import LarderTime

/// Items to insert into a timeline, oldest first: new items from events, and items that were created on this device.
struct NewestItems: Sendable {
    struct Item: Sendable {
        var key: EntityKey
        var isOwn: Bool
        /// Whether the item was just created. Only such an item may begin an empty timeline.
        var isNew = true
        /// The order of the timeline: whether the item with the first identifier comes before the one with the second.
        /// Nil: the item is inserted at the front.
        var isNewer: (@Sendable (String, String) -> Bool)?

        /// Whether the item is older than all loaded items, as most changed items are.
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

    /// The number of unconfirmed items above which no item of another user is inserted. The timeline becomes stale
    /// instead, and its reader fetches a page.
    static let unconfirmedMaximum = 100
}
