import LarderStorage
import LarderTime

/// An item to insert into a timeline: a new one from an event, or one that was created on this device.
struct NewestItem: Sendable {
    var key: EntityKey
    var isOwn: Bool
    /// Whether the item was just created. Only such an item may begin an empty timeline.
    var isNew = true
    /// When the request began whose reply has brought the item; nil: it was pushed or created here.
    var asked: Stamp?
    /// The order of the timeline: whether the item with the first identifier comes before the one with the second.
    /// Nil: the item is inserted at the front.
    var isNewer: (@Sendable (String, String) -> Bool)?

    /// Whether the item is older than all loaded items, as most changed items are.
    func isBehind(_ members: ListMembers, _ tail: RunList.Tail) -> Bool {
        guard let isNewer, tail.cursor != nil, let last = members.entries.last(where: { $0.key.type == key.type })?.key
        else { return false }
        return !isNewer(key.id, last.id)
    }

    /// Whether the list has the item as an own one whose place the server has not stated yet. An event about it states the place.
    func isWaiting(in members: ListMembers) -> Bool {
        guard !isOwn, isNewer == nil, let mark = members.mark(of: key) else { return false }
        return RunList.Insertion(mark: mark).isOwn
    }

    /// Inserts the item, unless the list contains it. An item within a gap or behind the loaded items is not inserted: the page that
    /// contains it inserts it.
    ///
    /// Cost: O(1) for an item at the front, and O(items before it) elsewhere.
    ///
    /// - Parameter isEnd: whether the oldest item is loaded.
    func insert(into members: inout ListMembers, at time: WallTime, isEnd: Bool) {
        let insertion = RunList.Insertion(insertedAt: time.nanosecondsSinceEpoch, isOwn: isOwn)
        if isWaiting(in: members) { members.remove(key) }
        guard !members.contains(key) else {
            // An item that no page has confirmed yet.
            guard isOwn, let known = members.mark(of: key) else { return }
            var insertion = RunList.Insertion(mark: known)
            insertion.isOwn = true
            return members.setMark(insertion.mark, of: key)
        }
        if let offset = place(in: members, isEnd: isEnd) {
            members.insert(ListMembers.Entry(key, mark: insertion.mark), at: offset)
        }
    }

    /// The offset at which the item belongs; nil if it is not inserted.
    private func place(in members: ListMembers, isEnd: Bool) -> Int? {
        guard let isNewer else {
            // Own items stay in front of all others until the server says where they are.
            return isOwn ? 0 : members.waitingCount
        }
        var (isAnyItem, isBehindGap) = (false, false)
        for (offset, entry) in members.entries.enumerated() {
            if let start = RunList.Start(entry.key) {
                isBehindGap = isBehindGap || start.gap != nil
                continue
            }
            isAnyItem = true
            if entry.key.type == key.type, isNewer(key.id, entry.key.id) { return isBehindGap ? nil : offset }
            isBehindGap = false
        }
        // Only an item that is certainly new may begin a list.
        guard isAnyItem else { return isNew || isOwn ? 0 : nil }
        return !isBehindGap && isEnd ? members.count : nil
    }

    /// The number of unconfirmed items above which no item of another user is inserted. The timeline becomes stale
    /// instead, and its reader fetches a page.
    static let unconfirmedMaximum = 100

    /// The number of items that a timeline has at most after a page of a feed. `PagedResource.itemsMaximum` applies to pages.
    static let fedMaximum = 5_000
}

extension ListMembers {
    /// Whether less than `NewestItem.unconfirmedMaximum` members are at places that the server has not stated.
    var hasRoomForUnconfirmed: Bool {
        entries.count { $0.mark.map { !RunList.Insertion(mark: $0).isPlaced } ?? false } < NewestItem.unconfirmedMaximum
    }

    /// The number of own items at the front, whose places the server has not stated yet.
    var waitingCount: Int {
        entries.prefix { entry in entry.mark.map { RunList.Insertion(mark: $0).isWaiting } ?? false }.count
    }
}
