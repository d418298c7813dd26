/// The eviction order of the entries of a part of a memory tier, by slot. A value without a lock.
@usableFromInline struct EvictionQueue: ~Copyable {
    private let policy: EvictionPolicy
    private var order = EvictionOrder(.quickDemotion, mayChange: true)
    private var sketch = FrequencySketch()
    private var selector = EvictionSelector()
    private var scores: ScoreOrder

    @usableFromInline init(_ policy: EvictionPolicy) {
        self.policy = policy
        scores = ScoreOrder(policy)
    }

    /// Reserves room for slots up to a number, which must be a power of two.
    @usableFromInline mutating func grow(to capacity: Int) {
        guard policy == .adaptive else { return scores.grow(to: capacity) }
        order.grow(to: capacity)
        sketch.grow(to: capacity)
        selector.grow(to: capacity)
    }

    // MARK: Events of entries

    /// - Parameters:
    ///   - hash: the hash of the key.
    ///   - score: the value of the entry for its size; used by `greedyDual` only.
    @usableFromInline mutating func insert(_ slot: Int, hash: UInt32, score: Double) {
        guard policy == .adaptive else { return scores.insert(slot, hash: hash, score: score) }
        order.insert(slot, hash: hash)
        count(hash)
    }

    /// The score of a slot at its insertion, as rounded by the policy.
    @usableFromInline func score(_ slot: Int) -> Double { policy == .adaptive ? 1 : scores.score(slot) }

    @usableFromInline mutating func touch(_ slot: Int, hash: UInt32) {
        guard policy == .adaptive else { return scores.touch(slot) }
        order.touch(slot)
        count(hash)
    }

    @usableFromInline mutating func remove(_ slot: Int) {
        if policy == .adaptive { order.remove(slot) } else { scores.remove(slot) }
    }

    /// The next slot to evict; nil if there is none. It stays until it is removed.
    @usableFromInline mutating func victim() -> Int? {
        guard policy == .adaptive else { return scores.victim() }
        selector.evicted(count: order.count)
        return order.victim(sketch)
    }

    /// Counts a use of a key, and changes the rule if another one is better now.
    @inline(__always) private mutating func count(_ hash: UInt32) {
        sketch.add(hash)
        if selector.samples(hash) { sample(hash) }
    }

    @inline(never) private mutating func sample(_ hash: UInt32) {
        guard let rule = selector.use(hash, count: order.count, order.rule, sketch) else { return }
        order.rule = rule
    }
}
