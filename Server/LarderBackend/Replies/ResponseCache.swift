import LarderCoding
import Synchronization

/// Cached replies to reads; each is valid until the next commit.
///
/// An entry carries the stamp of the state that it was built from, taken before that state was read. It is served only while
/// the stamp is current, so a reply older than the last acknowledged write cannot be served (`World.stamp`). Bounded by bytes;
/// evicts with the CLOCK algorithm. Safe from any thread; no callback runs under the lock.
final class ResponseCache: Sendable {
    /// The identity of a read: the viewer and the target.
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

    /// A read of one state of the world.
    struct Version {
        let key: Key
        /// Taken before the state is read: an entry with an older stamp is only rebuilt once more.
        let stamp: UInt64
    }

    private struct Entry {
        let key: Key
        let representation: Representation
        let stamp: UInt64
        /// The bytes that are counted for it; compressed replies are added when they are next seen.
        var cost: Int
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
    /// The maximum size of all entries in bytes of heads and bodies. 0 disables the cache.
    let bytesMaximum: Int

    init(bytesMaximum: Int) { self.bytesMaximum = bytesMaximum }

    var isEnabled: Bool { bytesMaximum > 0 }

    /// The reply that was built from the state with the version's stamp.
    func find(_ version: Version) -> Representation? {
        state.withLock { state in
            guard let slot = state.index[version.key] else {
                state.misses &+= 1
                return nil
            }
            let representation = state.entries[slot].representation
            guard state.entries[slot].stamp == version.stamp else {
                state.misses &+= 1
                return nil
            }
            state.entries[slot].isRecent = true
            state.hits &+= 1
            let cost = representation.byteCount
            if cost != state.entries[slot].cost {
                state.bytes += cost - state.entries[slot].cost
                state.entries[slot].cost = cost
                while state.bytes > bytesMaximum { Self.evict(&state) }
            }
            return representation
        }
    }

    /// Stores a reply that was built after the version's stamp was taken.
    func store(_ representation: Representation, for version: Version) {
        let (key, stamp) = (version.key, version.stamp)
        let cost = representation.byteCount
        guard cost <= bytesMaximum / 4 else { return }
        state.withLock { state in
            if let slot = state.index[key] {
                state.bytes += cost - state.entries[slot].cost
                state.entries[slot] = Entry(
                    key: key,
                    representation: representation,
                    stamp: stamp,
                    cost: cost,
                    isRecent: true
                )
            } else {
                state.index[key] = state.entries.count
                state.entries.append(
                    Entry(key: key, representation: representation, stamp: stamp, cost: cost, isRecent: false)
                )
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

    /// The numbers of hits and misses.
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
            state.bytes -= removed.cost
            state.index[removed.key] = nil
            // The last entry moves to the free place, so that entries stay contiguous.
            let last = state.entries.removeLast()
            if state.hand < state.entries.count {
                state.entries[state.hand] = last
                state.index[last.key] = state.hand
            }
            return
        }
    }
}
