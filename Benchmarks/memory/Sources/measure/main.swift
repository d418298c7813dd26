import Foundation
import LarderMemory
import Synchronization

// Compares the memory tier with a dictionary without a lock (the lower bound), a plain LRU (an index-linked list under a Mutex) and
// NSCache. Run it with `swift run -c release measure` in this directory.
//
// The subjects are interleaved, because the speed of a shared machine varies: medians are over all rounds, and ratios are computed
// within a round.

final class PlainLRU: Sendable {
    private struct Node {
        var key: String
        var value: Int
        var newer = -1
        var older = -1
    }

    private struct State {
        var index: [String: Int] = [:]
        var nodes: [Node] = []
        var newest = -1
        var oldest = -1
    }

    private let state = Mutex(State())
    private let maximum: Int

    init(_ maximum: Int) { self.maximum = maximum }

    func get(_ key: String) -> Int? {
        state.withLock { state in
            guard let slot = state.index[key] else { return nil }
            Self.unlink(slot, &state)
            Self.link(slot, &state)
            return state.nodes[slot].value
        }
    }

    func set(_ key: String, _ value: Int) {
        state.withLock { state in
            let slot: Int
            if state.nodes.count < maximum {
                slot = state.nodes.count
                state.nodes.append(Node(key: key, value: value))
            } else {
                slot = state.oldest
                Self.unlink(slot, &state)
                state.index[state.nodes[slot].key] = nil
                state.nodes[slot] = Node(key: key, value: value)
            }
            state.index[key] = slot
            Self.link(slot, &state)
        }
    }

    private static func unlink(_ slot: Int, _ state: inout State) {
        let (newer, older) = (state.nodes[slot].newer, state.nodes[slot].older)
        if newer >= 0 { state.nodes[newer].older = older } else { state.newest = older }
        if older >= 0 { state.nodes[older].newer = newer } else { state.oldest = newer }
    }

    private static func link(_ slot: Int, _ state: inout State) {
        state.nodes[slot].newer = -1
        state.nodes[slot].older = state.newest
        if state.newest >= 0 { state.nodes[state.newest].newer = slot } else { state.oldest = slot }
        state.newest = slot
    }
}

let count = 10_000
let rounds = 41
let keys = (0..<count).map { "/v1/posts/post_\($0)?view=full" }
let others = (0..<count).map { "/v1/profiles/user_\($0)" }
/// Equal to the keys, but with separate storage, as a caller has that has just built a key.
let copies = keys.map { String(decoding: Array($0.utf8), as: UTF8.self) }
let order = (0..<count).map { ($0 * 7_919) % count }
nonisolated(unsafe) var sink = 0

/// The time of one operation in nanoseconds. A first pass, which is not measured, warms the processor's caches.
func nanoseconds(_ operations: Int, passes: Int = 6, _ body: () -> Void) -> Double {
    body()
    let elapsed = ContinuousClock().measure { for _ in 0..<passes { body() } }
    return (Double(elapsed.components.attoseconds) / 1e9 + Double(elapsed.components.seconds) * 1e9)
        / Double(operations * passes)
}

func median(_ numbers: [Double]) -> Double { numbers.sorted()[numbers.count / 2] }

/// Measures interleaved subjects. The first is the baseline.
func compare(_ title: String, _ subjects: [(name: String, run: () -> Double)]) {
    var times = subjects.map { _ in [Double]() }
    for subject in subjects { _ = subject.run() }
    for _ in 0..<rounds {
        for (number, subject) in subjects.enumerated() { times[number].append(subject.run()) }
    }
    print("\(title), medians of \(rounds) rounds; ratio to the first, round by round:")
    for (number, subject) in subjects.enumerated() {
        let ratio = median(zip(times[number], times[0]).map { $0 / $1 })
        print(
            "    " + subject.name.padding(toLength: 44, withPad: " ", startingAt: 0),
            String(format: "%6.0f ns  (best %.0f)  %.2f", median(times[number]), times[number].min() ?? 0, ratio)
        )
    }
}

func tier() -> MemoryTier<String, Int> {
    let tier = MemoryTier<String, Int>(limits: .init(count: count))
    for key in keys { tier.store(1, for: key) }
    return tier
}

var dictionary: [String: Int] = [:]
for key in keys { dictionary[key] = 1 }
let plain = PlainLRU(count)
for key in keys { plain.set(key, 1) }
let cache = NSCache<NSString, NSNumber>()
let objects = keys.map { NSString(string: $0) }
for key in objects { cache.setObject(1, forKey: key) }

for (title, asked) in [("hit, identical strings", keys), ("hit, equal strings", copies)] {
    let tier = tier()
    let subjects: [(String, () -> Double)] = [
        ("dictionary, no lock", { nanoseconds(count) { for i in order { sink &+= dictionary[asked[i]] ?? 0 } } }),
        ("plain LRU under a Mutex", { nanoseconds(count) { for i in order { sink &+= plain.get(asked[i]) ?? 0 } } }),
        (
            "NSCache",
            { nanoseconds(count) { for i in order { sink &+= cache.object(forKey: objects[i])?.intValue ?? 0 } } }
        ),
        ("MemoryTier", { nanoseconds(count) { for i in order { sink &+= tier[asked[i]] ?? 0 } } }),
    ]
    compare(title, subjects)
}

/// The time of a store that evicts.
func inserts(_ name: String, _ store: @escaping (String) -> Void) -> (String, () -> Double) {
    var flip = false
    let run = {
        nanoseconds(count) {
            flip.toggle()
            for key in flip ? others : keys { store(key) }
        }
    }
    return (name, run)
}

let full = tier()
compare(
    "insert with eviction",
    [
        inserts("plain LRU under a Mutex") { plain.set($0, 1) },
        inserts("MemoryTier") { full.store(1, for: $0) },
    ]
)

/// Measures hits by several threads at once, each in its own order: the time per hit.
func threads(_ number: Int, _ read: @escaping @Sendable (Int) -> Void) -> Double {
    nanoseconds(20 * count * number, passes: 1) {
        let ends = DispatchSemaphore(value: 0)
        for thread in 0..<number {
            Thread.detachNewThread {
                for _ in 0..<20 { read(thread) }
                ends.signal()
            }
        }
        for _ in 0..<number { ends.wait() }
    }
}

let shared = tier()
let apart = [tier(), tier()]
let orders = [order, order.reversed()]
let ownKeys = [keys, copies]
@Sendable func read(_ tier: MemoryTier<String, Int>, _ thread: Int) {
    var sum = 0
    for i in orders[thread] { sum &+= tier[ownKeys[thread][i]] ?? 0 }
    precondition(sum == count)
}
@Sendable func readPlain(_ thread: Int) {
    var found = 0
    for i in orders[thread] where plain.get(ownKeys[thread][i]) != nil { found += 1 }
    precondition(found == count)
}
for key in keys { plain.set(key, 1) }
compare(
    "hit by one thread and by two at once, the time per hit",
    [
        ("one", { threads(1) { read(shared, $0) } }),
        ("two, one tier", { threads(2) { read(shared, $0) } }),
        ("two, one tier each (upper bound)", { threads(2) { read(apart[$0], $0) } }),
        ("plain LRU, one", { threads(1, readPlain) }),
        ("plain LRU, two", { threads(2, readPlain) }),
    ]
)
