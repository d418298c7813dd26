/// The eviction order of slots under one of three rules. The rule may change at any time; the slots then move step by step.
///
/// Slots are in three lists: `window` has the new ones, `probation` and `protected` those that proved themselves.
@usableFromInline struct EvictionOrder: ~Copyable {
    enum Rule: Int, CaseIterable {
        /// LRU: all slots are in the window, by their last use.
        case recency
        /// S3-FIFO: slots that were not used twice in the window, a tenth of all, leave first (Yang et al., SOSP 2023).
        case quickDemotion
        /// W-TinyLFU: a slot that leaves the window, a hundredth of all, stays if it was used more often than the one that would be
        /// evicted instead (Einziger, Eytan, Friedman and Manes: Adaptive Software Cache Management, Middleware 2018).
        case frequency
    }

    private static let window = 0
    private static let probation = 1
    private static let protected = 2
    /// The maximum number of slots that an event moves to another list after the rule has changed.
    private static let movesMaximum = 4

    var rule: Rule
    /// The number of slots.
    private(set) var count = 0
    /// The uses of each slot, up to 3.
    private var uses: Slab<UInt8>
    private var lists = SlotLists(count: 3)
    private var ghosts = GhostTable()
    /// Whether the rule may become `quickDemotion`, which needs to know what was evicted before.
    private let mayChange: Bool

    init(_ rule: Rule, mayChange: Bool) {
        self.rule = rule
        self.mayChange = mayChange
        uses = Slab(repeating: 0, count: 1)
    }

    /// Reserves room for slots up to a number.
    mutating func grow(to capacity: Int) {
        uses.grow(to: capacity, moving: uses.capacity)
        lists.grow(to: capacity)
    }

    // MARK: Events

    mutating func insert(_ slot: Int, hash: UInt32) {
        uses[slot] = 0
        count += 1
        let isReturning = rule == .quickDemotion && ghosts.remove(hash)
        lists.link(slot, to: isReturning ? Self.protected : Self.window, hash: hash)
        // A tier that is not full has room for all.
        if rule == .frequency { _ = shrinkWindow(to: windowMaximum) }
    }

    @inline(__always) mutating func touch(_ slot: Int) {
        let used = uses[slot]
        if used < 3 { uses[slot] = used + 1 }
        if rule != .quickDemotion { move(slot) }
    }

    private mutating func move(_ slot: Int) {
        guard rule == .frequency, lists.list(of: slot) != Self.window else { return lists.move(slot, to: Self.window) }
        lists.move(slot, to: Self.protected)
        shrinkProtected()
    }

    mutating func remove(_ slot: Int) {
        lists.unlink(slot)
        count -= 1
    }

    // MARK: Eviction

    /// The next slot to evict; nil if there is none. It stays until it is removed.
    mutating func victim(_ sketch: borrowing FrequencySketch) -> Int? {
        guard count > 0 else { return nil }
        switch rule {
        case .recency:
            // What another rule has left in the other lists was not used since.
            for list in [Self.probation, Self.protected] where lists.count(list) > 0 { return lists.oldest(list) }
            return lists.oldest(Self.window)
        case .quickDemotion: return quickDemotion()
        case .frequency: return frequency(sketch)
        }
    }

    private mutating func quickDemotion() -> Int {
        while true {
            if lists.count(Self.window) * 10 > count || lists.count(Self.window) == count {
                let slot = lists.oldest(Self.window)
                guard uses[slot] > 1 else {
                    ghosts.add(lists.hash(of: slot), capacity: count)
                    return slot
                }
                uses[slot] = 0
                lists.move(slot, to: Self.protected)
            } else {
                let slot = lists.oldest(lists.count(Self.probation) > 0 ? Self.probation : Self.protected)
                guard uses[slot] > 0 else { return slot }
                uses[slot] -= 1
                lists.move(slot, to: Self.protected)
            }
        }
    }

    private mutating func frequency(_ sketch: borrowing FrequencySketch) -> Int {
        // One less: the victim makes room for a slot that is inserted into the window.
        let candidate = shrinkWindow(to: windowMaximum - 1)
        shrinkProtected()
        guard lists.count(Self.probation) > 0 else {
            return lists.oldest(lists.count(Self.protected) > 0 ? Self.protected : Self.window)
        }
        let victim = lists.oldest(Self.probation)
        guard let candidate, candidate != victim else { return victim }
        let isBetter = sketch.estimate(lists.hash(of: candidate)) > sketch.estimate(lists.hash(of: victim))
        if isBetter { return victim }
        if mayChange { ghosts.add(lists.hash(of: candidate), capacity: count) }
        return candidate
    }

    private var windowMaximum: Int { max(1, count / 100) }

    /// Moves the oldest slots of the window to probation; returns the last of them.
    private mutating func shrinkWindow(to maximum: Int) -> Int? {
        var moved: Int?
        for _ in 0..<Self.movesMaximum where lists.count(Self.window) > maximum {
            let slot = lists.oldest(Self.window)
            lists.move(slot, to: Self.probation)
            moved = slot
        }
        return moved
    }

    /// Four fifths of the slots outside of the window are protected.
    private mutating func shrinkProtected() {
        let maximum = (count - windowMaximum) * 4 / 5
        for _ in 0..<Self.movesMaximum where lists.count(Self.protected) > maximum {
            lists.move(lists.oldest(Self.protected), to: Self.probation)
        }
    }
}
