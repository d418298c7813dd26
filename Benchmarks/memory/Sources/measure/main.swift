import Foundation
import Larder
import Synchronization

// Times of the memory tier beside NSCache and the attainable LRU: an index-linked list under a Mutex and nothing else.

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
let keys = (0..<count).map { "/v1/posts/post_\($0)?view=full" }
let others = (0..<count).map { "/v1/profiles/user_\($0)" }
let order = (0..<count).map { ($0 * 7_919) % count }

func nanoseconds(_ rounds: Int, _ body: () -> Void) -> Double {
    let times = (0..<7).map { _ -> Double in
        let start = ContinuousClock.now
        body()
        let elapsed = ContinuousClock.now - start
        return Double(elapsed.components.attoseconds) / 1e9 + Double(elapsed.components.seconds) * 1e9
    }
    return times.sorted()[3] / Double(rounds)
}

func show(_ name: String, _ value: Double) {
    print(name + String(repeating: " ", count: max(1, 52 - name.count)) + "\(Int(value.rounded())) ns")
}

var sink = 0
let plain = PlainLRU(count)
for key in keys { plain.set(key, 1) }
show("hit, plain LRU under a Mutex", nanoseconds(count) { for i in order { sink &+= plain.get(keys[i]) ?? 0 } })
let cache = NSCache<NSString, NSNumber>()
let objects = keys.map { NSString(string: $0) }
for key in objects { cache.setObject(1, forKey: key) }
show("hit, NSCache", nanoseconds(count) { for i in order { sink &+= cache.object(forKey: objects[i])?.intValue ?? 0 } })
for policy in EvictionPolicy.allCases {
    let tier = MemoryTier<String, Int>(limits: .init(count: count), policy: policy)
    for key in keys { tier.store(1, for: key) }
    show("hit, \(policy.rawValue)", nanoseconds(count) { for i in order { sink &+= tier[keys[i]] ?? 0 } })
}
var flip = false
show(
    "insert with eviction, plain LRU",
    nanoseconds(count) {
        flip.toggle()
        for key in flip ? others : keys { plain.set(key, 1) }
    }
)
for policy in EvictionPolicy.allCases {
    let tier = MemoryTier<String, Int>(limits: .init(count: count), policy: policy)
    for key in keys { tier.store(1, for: key) }
    var flip = false
    show(
        "insert with eviction, \(policy.rawValue)",
        nanoseconds(count) {
            flip.toggle()
            for key in flip ? others : keys { tier.store(1, for: key) }
        }
    )
}
let shared = MemoryTier<String, Int>(limits: .init(count: count))
for key in keys { shared.store(1, for: key) }
@Sendable func read() -> Int {
    var sum = 0
    for _ in 0..<20 { for i in order { sum &+= shared[keys[i]] ?? 0 } }
    return sum
}
let one = nanoseconds(20 * count) { sink &+= read() }
var pairs: [Double] = []
for _ in 0..<7 {
    let start = ContinuousClock.now
    await withTaskGroup(of: Int.self) { group in
        for _ in 0..<2 { group.addTask { read() } }
        for await sum in group { sink &+= sum }
    }
    let elapsed = ContinuousClock.now - start
    pairs.append(
        (Double(elapsed.components.attoseconds) / 1e9 + Double(elapsed.components.seconds) * 1e9) / Double(40 * count)
    )
}
let two = pairs.sorted()[3]
show("hit, one thread", one)
show("hit, two threads at once, time for each of all hits", two)
print(sink == 0 ? "" : " ")
