import Synchronization

/// The keys whose rows on the disk count no longer, because the disk did not take their changes.
///
/// Safe from any thread. Bounded: beyond 16,384 keys all content on the disk is hidden until the disk takes changes again.
final class HiddenRows: Sendable {
    struct State {
        /// With whether what is in memory in their place belongs on the disk.
        var keys: [StoredKey: Bool] = [:]
        var isAll = false
    }

    private static let countMaximum = 16_384
    private let hasAny = Atomic<Bool>(false)
    private let state = Mutex(State())

    func insert(_ key: StoredKey, belongsOnDisk: Bool) { change { $0.keys[key] = belongsOnDisk } }

    func remove(_ key: StoredKey) {
        if hasAny.load(ordering: .acquiring) { change { $0.keys[key] = nil } }
    }

    func contains(_ key: StoredKey) -> Bool {
        hasAny.load(ordering: .acquiring) && state.withLock { $0.keys[key] != nil }
    }

    /// Whether the row of a key is in memory although it belongs on the disk.
    func isDisplaced(_ key: StoredKey) -> Bool {
        hasAny.load(ordering: .acquiring) && state.withLock { $0.keys[key] ?? false }
    }

    /// Whether all content on the disk is hidden.
    var isAll: Bool { hasAny.load(ordering: .acquiring) && state.withLock { $0.isAll } }

    /// The keys; nil if all content is hidden.
    var keys: [StoredKey]? { state.withLock { $0.isAll ? nil : Array($0.keys.keys) } }

    /// Notes that the disk has no hidden row any more. What belongs on the disk is still in memory, until it changes or is fetched again.
    func caughtUp() {
        change { state in
            state.isAll = false
            state.keys = state.keys.filter(\.value)
        }
    }

    func removeAll() { change { $0 = State() } }

    /// The present state. A commit that fails puts it back.
    var saved: State { state.withLock { $0 } }

    func restore(_ saved: State) { change { $0 = saved } }

    private func change(_ body: (inout State) -> Void) {
        state.withLock { state in
            body(&state)
            if state.keys.count > Self.countMaximum { state.isAll = true }
            hasAny.store(!state.keys.isEmpty, ordering: .releasing)
        }
    }
}
