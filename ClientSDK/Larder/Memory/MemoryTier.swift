import Synchronization

/// The memory tier: the entries that were used last, up to a number of them. Safe from any thread; every operation is O(1).
///
/// Entries are nodes in one array, linked by index, so that neither a hit nor an insert with eviction allocates.
final class MemoryTier<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private struct Node {
        var key: Key
        var value: Value
        var newer: Int
        var older: Int
    }

    private struct State {
        var index: [Key: Int] = [:]
        var nodes: [Node] = []
        var newest = -1
        var oldest = -1
    }

    private let state = Mutex(State())
    private let countMaximum: Int

    /// - Parameter countMaximum: how many entries there may be; 0 keeps none.
    init(countMaximum: Int) { self.countMaximum = max(0, countMaximum) }

    subscript(key: Key) -> Value? {
        state.withLock { state in
            guard let slot = state.index[key] else { return nil }
            Self.unlink(slot, &state)
            Self.linkAsNewest(slot, &state)
            return state.nodes[slot].value
        }
    }

    func store(_ value: Value, for key: Key) {
        guard countMaximum > 0 else { return }
        // What is replaced or evicted is released after the lock: its end may run somebody's code.
        let released = state.withLock { state -> Value? in
            if let slot = state.index[key] {
                let old = state.nodes[slot].value
                state.nodes[slot].value = value
                Self.unlink(slot, &state)
                Self.linkAsNewest(slot, &state)
                return old
            }
            guard state.nodes.count == countMaximum else {
                state.nodes.append(Node(key: key, value: value, newer: -1, older: -1))
                let slot = state.nodes.count - 1
                state.index[key] = slot
                Self.linkAsNewest(slot, &state)
                return nil
            }
            let slot = state.oldest
            let old = state.nodes[slot].value
            Self.unlink(slot, &state)
            state.index[state.nodes[slot].key] = nil
            state.nodes[slot] = Node(key: key, value: value, newer: -1, older: -1)
            state.index[key] = slot
            Self.linkAsNewest(slot, &state)
            return old
        }
        _ = consume released
    }

    func removeAll() {
        let old = state.withLock { state in
            defer { state = State() }
            return state.nodes
        }
        _ = consume old
    }

    var count: Int { state.withLock { $0.nodes.count } }

    private static func unlink(_ slot: Int, _ state: inout State) {
        let (newer, older) = (state.nodes[slot].newer, state.nodes[slot].older)
        if newer >= 0 { state.nodes[newer].older = older } else { state.newest = older }
        if older >= 0 { state.nodes[older].newer = newer } else { state.oldest = newer }
    }

    private static func linkAsNewest(_ slot: Int, _ state: inout State) {
        state.nodes[slot].newer = -1
        state.nodes[slot].older = state.newest
        if state.newest >= 0 { state.nodes[state.newest].newer = slot } else { state.oldest = slot }
        state.newest = slot
    }
}
