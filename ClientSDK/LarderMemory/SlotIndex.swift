/// A map from hash to slot: an open-addressing table with linear probing. The owner compares the keys.
///
/// A bucket is one word, the hash in its upper half and the slot in its lower: eight per cache line, and nothing else is touched
/// before the hashes are equal. Removal closes the gap, so there are no tombstones.
@usableFromInline struct SlotIndex: ~Copyable {
    @usableFromInline var buckets: Slab<UInt64>
    @usableFromInline var mask: Int
    @usableFromInline var count = 0

    @inlinable init() {
        buckets = Slab(repeating: 0, count: 16)
        mask = 15
    }

    /// The slot of a bucket that is not empty.
    @inlinable static func slot(_ bucket: UInt64) -> Int { Int(bucket & 0xFFFF_FFFF) - 1 }

    @inlinable static func hash(_ bucket: UInt64) -> UInt32 { UInt32(truncatingIfNeeded: bucket >> 32) }

    @inlinable static func bucket(_ slot: Int, _ hash: UInt32) -> UInt64 {
        UInt64(hash) << 32 | UInt64(truncatingIfNeeded: slot + 1)
    }

    /// Adds a slot. It must not be in the table.
    @inlinable mutating func insert(_ slot: Int, hash: UInt32) {
        if (count + 1) * 3 > (mask + 1) * 2 { grow() }
        place(Self.bucket(slot, hash))
        count += 1
    }

    @inlinable mutating func place(_ bucket: UInt64) {
        var position = Int(Self.hash(bucket)) & mask
        while buckets[position] != 0 { position = (position + 1) & mask }
        buckets[position] = bucket
    }

    /// Removes a slot. It must be in the table.
    @inlinable mutating func remove(_ slot: Int, hash: UInt32) {
        let bucket = Self.bucket(slot, hash)
        var gap = Int(hash) & mask
        while buckets[gap] != bucket {
            assert(buckets[gap] != 0, "The removed slot must be in the index.")
            gap = (gap + 1) & mask
        }
        var position = (gap + 1) & mask
        while buckets[position] != 0 {
            // Entries that would no longer be found move up.
            let home = Int(Self.hash(buckets[position])) & mask
            if (position - home) & mask >= (position - gap) & mask {
                buckets[gap] = buckets[position]
                gap = position
            }
            position = (position + 1) & mask
        }
        buckets[gap] = 0
        count -= 1
    }

    @usableFromInline mutating func grow() {
        var old = Slab<UInt64>(repeating: 0, count: 2 * (mask + 1))
        swap(&old, &buckets)
        mask = buckets.capacity - 1
        for position in 0..<old.capacity where old[position] != 0 { place(old[position]) }
    }
}
