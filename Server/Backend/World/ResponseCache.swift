import LarderCoding
import Synchronization

/// Replies to reads that repeat, each good for exactly as long as nothing that it depends on has changed.
///
/// An entry carries the stamp of the state it was built from, taken while that state was held; it is served only while the
/// stamp is still the same, so a reply older than the last acknowledged write cannot be served (`CommitStamp`).
/// Bounded by bytes; when full, entries are dropped in the order of a clock hand that spares what was used since its last
/// turn. Safe from any thread; nothing is called while the lock is held.
final class ResponseCache: Sendable {
    /// What identifies a read: who asks, and for which target.
    struct Key: Hashable {
        let viewer: Int64
        let hash: UInt64
        let hash2: UInt64

        init(viewer: Int64, target: Span<UInt8>) {
            self.viewer = viewer
            (hash, hash2) = ContentHash.hash128(target)
        }

        static func == (left: Key, right: Key) -> Bool {
            left.hash == right.hash && left.hash2 == right.hash2 && left.viewer == right.viewer
        }

        func hash(into hasher: inout Hasher) {
            hasher.combine(hash)
            hasher.combine(viewer)
        }
    }

    private struct Entry {
        let key: Key
        let representation: Representation
        let stamp: UInt64
        var isRecent: Bool
    }

    private struct State {
        var index: [Key: Int] = [:]
        var entries: [Entry] = []
        var hand = 0
        var bytes = 0
        var hits: UInt64 = 0
        var misses: UInt64 = 0
    }

    private let state = Mutex(State())
    private let stamp: CommitStamp
    /// The most that entries may hold together, in bytes of heads and bodies. 0 turns the cache off.
    let bytesMaximum: Int

    init(stamp: CommitStamp, bytesMaximum: Int) {
        self.stamp = stamp
        self.bytesMaximum = bytesMaximum
    }

    var isEnabled: Bool { bytesMaximum > 0 }

    func find(_ key: Key) -> Representation? {
        state.withLock { state in
            guard let slot = state.index[key] else {
                state.misses &+= 1
                return nil
            }
            let representation = state.entries[slot].representation
            guard state.entries[slot].stamp == stamp.value(of: representation.dependencies) else {
                state.misses &+= 1
                return nil
            }
            state.entries[slot].isRecent = true
            state.hits &+= 1
            return representation
        }
    }

    /// Keeps a reply that was built while the state with this stamp was held.
    func store(_ representation: Representation, for key: Key, stamp: UInt64) {
        let cost = representation.byteCount
        guard cost <= bytesMaximum / 4 else { return }
        state.withLock { state in
            if let slot = state.index[key] {
                state.bytes += cost - state.entries[slot].representation.byteCount
                state.entries[slot] = Entry(key: key, representation: representation, stamp: stamp, isRecent: true)
            } else {
                state.index[key] = state.entries.count
                state.entries.append(Entry(key: key, representation: representation, stamp: stamp, isRecent: false))
                state.bytes += cost
            }
            while state.bytes > bytesMaximum { Self.evict(&state) }
        }
    }

    func removeAll() {
        state.withLock { state in
            state.index.removeAll()
            state.entries.removeAll()
            state.bytes = 0
            state.hand = 0
        }
    }

    /// How often a read was answered from here, and how often it was not.
    var counts: (hits: UInt64, misses: UInt64) { state.withLock { ($0.hits, $0.misses) } }

    private static func evict(_ state: inout State) {
        while true {
            if state.hand >= state.entries.count { state.hand = 0 }
            if state.entries[state.hand].isRecent {
                state.entries[state.hand].isRecent = false
                state.hand += 1
                continue
            }
            let removed = state.entries[state.hand]
            state.bytes -= removed.representation.byteCount
            state.index[removed.key] = nil
            // The last entry moves into the free place, so that entries stay contiguous.
            let last = state.entries.removeLast()
            if state.hand < state.entries.count {
                state.entries[state.hand] = last
                state.index[last.key] = state.hand
            }
            return
        }
    }
}
