/// Finds the positions of the members of a list by key.
///
/// A value in shards with shared storage: a change of a copy copies the references to the shards, and one shard of about 64 keys.
struct ListIndex: Sendable {
    private var shards: [[EntityKey: Int64]]
    private var count = 0
    /// How many members have the key of an earlier one, which alone is found.
    private(set) var repeatedCount = 0

    private static let shardUsual = 64

    init(capacity: Int) {
        var number = 1
        while number * Self.shardUsual < capacity { number *= 2 }
        shards = Array(repeating: [:], count: number)
    }

    private func shard(_ key: EntityKey) -> Int { key.hashValue & (shards.count - 1) }

    subscript(key: EntityKey) -> Int64? { shards[shard(key)][key] }

    mutating func insert(_ key: EntityKey, _ position: Int64) {
        let number = shard(key)
        guard shards[number][key] == nil else {
            repeatedCount += 1
            return
        }
        shards[number][key] = position
        count += 1
        if count > shards.count * Self.shardUsual * 2 { grow() }
    }

    mutating func remove(_ key: EntityKey) {
        if shards[shard(key)].removeValue(forKey: key) != nil { count -= 1 }
    }

    /// Notes a new position of a key that is there.
    mutating func move(_ key: EntityKey, to position: Int64) { shards[shard(key)][key] = position }

    private mutating func grow() {
        var new = ListIndex(capacity: shards.count * Self.shardUsual * 2)
        for shard in shards { for (key, position) in shard { new.insert(key, position) } }
        new.repeatedCount = repeatedCount
        self = new
    }
}
