/// Doubly linked lists of slots. A value without a lock.
///
/// Slots are linked by index: no operation allocates once there is room for them, and each is O(1).
@usableFromInline struct SlotLists: ~Copyable {
    @usableFromInline struct Links {
        var newer: Int32 = -1
        var older: Int32 = -1
        /// The hash of the key, by which evicted keys are remembered and frequencies are estimated.
        var hash: UInt32 = 0
        var list: Int32 = 0
    }

    @usableFromInline struct List {
        var newest: Int32 = -1
        var oldest: Int32 = -1
        var count = 0
    }

    private var links: Slab<Links>
    private var lists: Slab<List>

    init(count: Int) {
        links = Slab(repeating: Links(), count: 1)
        lists = Slab(repeating: List(), count: count)
    }

    /// Reserves room for slots up to a number.
    mutating func grow(to capacity: Int) { links.grow(to: capacity, moving: links.capacity) }

    func count(_ list: Int) -> Int { lists[list].count }

    /// The oldest slot of a list; -1 if it is empty.
    func oldest(_ list: Int) -> Int { Int(lists[list].oldest) }

    /// The newest slot of a list; -1 if it is empty.
    func newest(_ list: Int) -> Int { Int(lists[list].newest) }

    func list(of slot: Int) -> Int { Int(links[slot].list) }

    func hash(of slot: Int) -> UInt32 { links[slot].hash }

    /// Adds a slot to a list, as its newest.
    mutating func link(_ slot: Int, to list: Int, hash: UInt32) {
        let newest = lists[list].newest
        links[slot] = Links(older: newest, hash: hash, list: Int32(list))
        if newest >= 0 { links[Int(newest)].newer = Int32(slot) } else { lists[list].oldest = Int32(slot) }
        lists[list].newest = Int32(slot)
        lists[list].count += 1
    }

    /// Removes a slot from its list; returns the hash of its key.
    @discardableResult mutating func unlink(_ slot: Int) -> UInt32 {
        let own = links[slot]
        let list = Int(own.list)
        if own.newer >= 0 { links[Int(own.newer)].older = own.older } else { lists[list].newest = own.older }
        if own.older >= 0 { links[Int(own.older)].newer = own.newer } else { lists[list].oldest = own.newer }
        lists[list].count -= 1
        return own.hash
    }

    /// Makes a slot the newest of a list.
    mutating func move(_ slot: Int, to list: Int) {
        guard lists[list].newest != Int32(slot) else { return }
        let hash = unlink(slot)
        link(slot, to: list, hash: hash)
    }
}
