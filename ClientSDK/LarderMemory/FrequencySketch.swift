/// Estimates how often keys were used, in four bits each (Einziger, Friedman and Manes: TinyLFU, ACM TOS 2017).
///
/// A count-min sketch: four counters for a key, all in one block of 64 bytes, and the smallest is the estimate. After ten uses for
/// each entry of the tier all counters are halved, so that formerly popular keys are forgotten.
struct FrequencySketch: ~Copyable {
    private static let blockWords = 8
    /// 512 KiB, so that halving all counters takes less than 0.1 ms.
    private static let wordsMaximum = 1 << 16

    /// Sixteen counters each.
    private var words: Slab<UInt64>
    private var mask: UInt64
    /// The number of counted uses, halved with the counters.
    private var uses = 0

    init() {
        words = Slab(repeating: 0, count: Self.blockWords)
        mask = UInt64(Self.blockWords - 1)
    }

    /// Adapts the size to a number of entries, which must be a power of two. Estimates are kept.
    mutating func grow(to entries: Int) {
        let count = min(max(entries, Self.blockWords), Self.wordsMaximum)
        guard count > words.capacity else { return }
        let old = words.capacity
        words.grow(to: count, moving: old)
        // A block is selected by the low bits: each new one begins as the copy of the one from which it takes over keys.
        for position in old..<count { words.fill(position, words[position & (old - 1)]) }
        mask = UInt64(count - 1)
    }

    private static func spread(_ hash: UInt32) -> UInt64 {
        let product = UInt64(hash) &* 0x9E37_79B9_7F4A_7C15
        return product ^ (product >> 32)
    }

    /// The word and the shift of the counters of a key: byte `n` of the second hash selects one in the `n`th pair of words.
    @inline(__always) private static func selectors(_ spread: UInt64) -> UInt64 {
        let product = spread &* 0xC2B2_AE3D_27D4_EB4F
        return product ^ (product >> 29)
    }

    /// Counts a use.
    mutating func add(_ hash: UInt32) {
        let spread = Self.spread(hash)
        let block = Int(spread & mask) & ~(Self.blockWords - 1)
        let selectors = Self.selectors(spread)
        var isChanged = false
        for number in 0..<4 {
            let selector = Int(truncatingIfNeeded: selectors >> UInt64(8 * number))
            let position = block + 2 * number + (selector & 1)
            let shift = UInt64(((selector >> 1) & 15) * 4)
            let word = words[position]
            if (word >> shift) & 15 < 15 {
                words[position] = word + (1 << shift)
                isChanged = true
            }
        }
        guard isChanged else { return }
        uses += 1
        if uses >= 10 * max(16, words.capacity) { age() }
    }

    /// The estimated number of uses, from 0 to 15. Collisions make it too high, never too low.
    func estimate(_ hash: UInt32) -> Int {
        let spread = Self.spread(hash)
        let block = Int(spread & mask) & ~(Self.blockWords - 1)
        let selectors = Self.selectors(spread)
        var least: UInt64 = 15
        for number in 0..<4 {
            let selector = Int(truncatingIfNeeded: selectors >> UInt64(8 * number))
            let word = words[block + 2 * number + (selector & 1)]
            least = min(least, (word >> UInt64(((selector >> 1) & 15) * 4)) & 15)
        }
        return Int(least)
    }

    private mutating func age() {
        for position in 0..<words.capacity { words[position] = (words[position] >> 1) & 0x7777_7777_7777_7777 }
        uses /= 2
    }
}
