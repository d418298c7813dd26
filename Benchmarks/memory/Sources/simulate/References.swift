// Plain implementations of the policies from their papers, to compare with. They count entries and have no lock.

/// Doubly linked lists of slots, each with a key.
struct LinkedSlots {
    private var newer: [Int]
    private var older: [Int]
    private var own: [Int]
    private(set) var key: [Int]
    private(set) var counts: [Int]
    private var newest: [Int]
    private var oldest: [Int]
    private var free: [Int]

    init(capacity: Int, lists: Int) {
        newer = Array(repeating: -1, count: capacity)
        (older, own, key) = (newer, newer, newer)
        counts = Array(repeating: 0, count: lists)
        newest = Array(repeating: -1, count: lists)
        oldest = newest
        free = Array((0..<capacity).reversed())
    }

    func list(of slot: Int) -> Int { own[slot] }

    func oldest(_ list: Int) -> Int { oldest[list] }

    func newest(_ list: Int) -> Int { newest[list] }

    mutating func add(_ key: Int, to list: Int) -> Int {
        let slot = free.removeLast()
        self.key[slot] = key
        link(slot, list)
        return slot
    }

    mutating func drop(_ slot: Int) {
        unlink(slot)
        free.append(slot)
    }

    mutating func move(_ slot: Int, to list: Int) {
        unlink(slot)
        link(slot, list)
    }

    private mutating func link(_ slot: Int, _ list: Int) {
        (newer[slot], older[slot], own[slot]) = (-1, newest[list], list)
        if newest[list] >= 0 { newer[newest[list]] = slot } else { oldest[list] = slot }
        newest[list] = slot
        counts[list] += 1
    }

    private mutating func unlink(_ slot: Int) {
        let list = own[slot]
        if newer[slot] >= 0 { older[newer[slot]] = older[slot] } else { newest[list] = older[slot] }
        if older[slot] >= 0 { newer[older[slot]] = newer[slot] } else { oldest[list] = newer[slot] }
        counts[list] -= 1
    }
}

protocol Reference {
    /// Uses a key and stores it if it is not there. Returns whether it was.
    mutating func use(_ key: Int) -> Bool
}

struct LRU: Reference {
    private let maximum: Int
    private var slots: [Int: Int] = [:]
    private var lists: LinkedSlots

    init(_ maximum: Int) {
        self.maximum = maximum
        lists = LinkedSlots(capacity: maximum, lists: 1)
    }

    mutating func use(_ key: Int) -> Bool {
        if let slot = slots[key] {
            lists.move(slot, to: 0)
            return true
        }
        if slots.count == maximum {
            let victim = lists.oldest(0)
            slots[lists.key[victim]] = nil
            lists.drop(victim)
        }
        slots[key] = lists.add(key, to: 0)
        return false
    }
}

/// Yang et al., SOSP 2023: a small queue of a tenth, a main queue, and ghosts of as many keys as there are entries.
struct S3FIFO: Reference {
    private let maximum: Int
    private var slots: [Int: Int] = [:]
    private var lists: LinkedSlots
    private var uses: [Int]
    private var ghosts: [Int: Int] = [:]
    private var evictions = 0

    init(_ maximum: Int) {
        self.maximum = maximum
        lists = LinkedSlots(capacity: maximum, lists: 2)
        uses = Array(repeating: 0, count: maximum)
    }

    mutating func use(_ key: Int) -> Bool {
        if let slot = slots[key] {
            uses[slot] = min(3, uses[slot] + 1)
            return true
        }
        if slots.count == maximum { evict() }
        let isGhost = ghosts.removeValue(forKey: key).map { evictions - $0 < maximum } ?? false
        let slot = lists.add(key, to: isGhost ? 1 : 0)
        uses[slot] = 0
        slots[key] = slot
        return false
    }

    private mutating func evict() {
        while true {
            if lists.counts[0] * 10 > maximum || lists.counts[1] == 0 {
                let slot = lists.oldest(0)
                if uses[slot] > 1 {
                    uses[slot] = 0
                    lists.move(slot, to: 1)
                    continue
                }
                evictions += 1
                ghosts[lists.key[slot]] = evictions
                if ghosts.count > 4 * maximum { ghosts = ghosts.filter { evictions - $0.value < maximum } }
                return drop(slot)
            }
            let slot = lists.oldest(1)
            if uses[slot] == 0 { return drop(slot) }
            uses[slot] -= 1
            lists.move(slot, to: 1)
        }
    }

    private mutating func drop(_ slot: Int) {
        slots[lists.key[slot]] = nil
        lists.drop(slot)
    }
}

/// Einziger, Eytan, Friedman and Manes, 2018: a window of a hundredth, and a segmented LRU that admits by frequency. The frequencies
/// are exact, up to 15, and halved after ten uses for each entry.
struct WTinyLFU: Reference {
    private let maximum: Int
    private let window: Int
    private var slots: [Int: Int] = [:]
    private var lists: LinkedSlots
    private var frequencies: [Int: Int] = [:]
    private var uses = 0

    init(_ maximum: Int) {
        self.maximum = maximum
        window = max(1, maximum / 100)
        lists = LinkedSlots(capacity: maximum + 1, lists: 3)
    }

    mutating func use(_ key: Int) -> Bool {
        count(key)
        if let slot = slots[key] {
            if lists.list(of: slot) == 0 {
                lists.move(slot, to: 0)
            } else {
                lists.move(slot, to: 2)
                if lists.counts[2] > (maximum - window) * 4 / 5 { lists.move(lists.oldest(2), to: 1) }
            }
            return true
        }
        slots[key] = lists.add(key, to: 0)
        guard lists.counts[0] > window else { return false }
        let candidate = lists.oldest(0)
        lists.move(candidate, to: 1)
        guard slots.count > maximum else { return false }
        let victim = lists.oldest(1)
        drop(frequency(candidate) > frequency(victim) ? victim : candidate)
        return false
    }

    private func frequency(_ slot: Int) -> Int { frequencies[lists.key[slot]] ?? 0 }

    private mutating func count(_ key: Int) {
        frequencies[key] = min(15, (frequencies[key] ?? 0) + 1)
        uses += 1
        guard uses >= 10 * maximum else { return }
        uses /= 2
        frequencies = frequencies.compactMapValues { $0 > 1 ? $0 / 2 : nil }
    }

    private mutating func drop(_ slot: Int) {
        slots[lists.key[slot]] = nil
        lists.drop(slot)
    }
}
