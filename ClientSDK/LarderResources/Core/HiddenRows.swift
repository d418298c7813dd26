import LarderStorage
import Synchronization

/// The keys whose rows on the disk count no longer, because the disk did not take their changes.
///
/// Safe from any thread. A commit changes a copy, which replaces the state when it has succeeded. Bounded: beyond 16,384 keys all content on
/// the disk is hidden until the disk takes changes again.
final class HiddenRows: Sendable {
    struct State: Sendable {
        struct Entry: Sendable {
            /// Whether what is in memory in its place belongs on the disk.
            let belongsOnDisk: Bool
            /// That of the change that the disk lacks. A later row on the disk is another process's.
            let stamp: Stamp
        }

        private(set) var keys: [StoredKey: Entry] = [:]
        private(set) var isAll = false
        private static let countMaximum = 16_384

        var isEmpty: Bool { keys.isEmpty && !isAll }

        /// Whether the row of a key is in memory although it belongs on the disk.
        func isDisplaced(_ key: StoredKey) -> Bool { keys[key]?.belongsOnDisk ?? false }

        mutating func insert(_ key: StoredKey, belongsOnDisk: Bool, at stamp: Stamp) {
            keys[key] = Entry(belongsOnDisk: belongsOnDisk, stamp: stamp)
            isAll = isAll || keys.count > Self.countMaximum
        }

        mutating func remove(_ key: StoredKey) { keys[key] = nil }

        /// Notes that the disk has no hidden row any more. What belongs on it is still in memory, until it changes or is fetched again.
        mutating func noteCaughtUp() {
            isAll = false
            keys = keys.filter(\.value.belongsOnDisk)
        }
    }

    private let hasAny = Atomic<Bool>(false)
    private let known = Mutex(State())

    var isEmpty: Bool { !hasAny.load(ordering: .acquiring) }
    var state: State { isEmpty ? State() : known.withLock { $0 } }

    func contains(_ key: StoredKey) -> Bool { !isEmpty && known.withLock { $0.keys[key] != nil } }

    func isDisplaced(_ key: StoredKey) -> Bool { !isEmpty && known.withLock { $0.isDisplaced(key) } }

    /// Whether all content on the disk is hidden.
    var isAll: Bool { !isEmpty && known.withLock { $0.isAll } }

    func replace(_ state: State) {
        guard !isEmpty || !state.isEmpty else { return }
        known.withLock { known in
            known = state
            hasAny.store(!state.isEmpty, ordering: .releasing)
        }
    }

    func removeAll() { replace(State()) }
}
