/// A table of hashes of recently evicted keys: a key that returns soon was evicted too early.
///
/// A bucket is a cache line of eight words, each a hash and the time of eviction, counted in evictions. Nothing is linked and
/// nothing is cleaned up: entries that are too old are ignored. If more than eight keys share a bucket, the oldest is lost early.
@usableFromInline struct GhostTable: ~Copyable {
    private static let width = 8

    private var words: Slab<UInt64>
    private var mask: Int
    /// Never 0, so that a word is never 0 either.
    private var time: UInt32 = 1
    private var capacity: UInt32 = 1

    init() {
        words = Slab(repeating: 0, count: Self.width)
        mask = 0
    }

    /// Notes the eviction of a key.
    ///
    /// - Parameter capacity: the number of evictions for which a key is remembered.
    mutating func add(_ hash: UInt32, capacity: Int) {
        self.capacity = UInt32(clamping: max(1, min(capacity, 1 << 30)))
        // Twice the needed size, so that few buckets overflow.
        if Int(self.capacity) * 2 > words.capacity { grow() }
        time = time == .max ? 1 : time + 1
        place(UInt64(hash) << 32 | UInt64(time))
    }

    /// Whether a key was evicted recently; removes it from the table.
    @inline(__always) mutating func remove(_ hash: UInt32) -> Bool {
        let first = (Int(hash) & mask) * Self.width
        for position in first..<(first + Self.width) {
            let word = words[position]
            guard UInt32(truncatingIfNeeded: word >> 32) == hash, word != 0 else { continue }
            words[position] = 0
            return age(word) < capacity
        }
        return false
    }

    private func age(_ word: UInt64) -> UInt32 { time &- UInt32(truncatingIfNeeded: word) }

    private mutating func place(_ word: UInt64) {
        let first = (Int(truncatingIfNeeded: word >> 32) & mask) * Self.width
        var (oldest, greatest) = (first, UInt32(0))
        for position in first..<(first + Self.width) {
            if words[position] == 0 || words[position] >> 32 == word >> 32 {
                oldest = position
                break
            }
            let age = age(words[position])
            if age >= greatest { (oldest, greatest) = (position, age) }
        }
        words[oldest] = word
    }

    private mutating func grow() {
        var old = Slab<UInt64>(repeating: 0, count: 2 * words.capacity)
        swap(&old, &words)
        mask = words.capacity / Self.width - 1
        for position in 0..<old.capacity where old[position] != 0 { place(old[position]) }
    }
}
