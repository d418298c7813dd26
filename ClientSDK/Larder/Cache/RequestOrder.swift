import Synchronization

/// The order in which requests began, and what came of them while older ones are still on their way.
///
/// A reply that was overtaken must not replace what a later request brought. Versions tell that for entities that have them;
/// for all others it is known here, for exactly as long as an older request could still be answered. Safe from any thread.
final class RequestOrder: Sendable {
    private struct State {
        var last: UInt64 = 0
        var active: Set<UInt64> = []
        var applied: [StoredKey: UInt64] = [:]
        var invalidated: [StoredKey: UInt64] = [:]
        var edits: [QueryKey: [QueryEdit]] = [:]
    }

    /// A change to a list that has happened beside requests: an event that names a new item.
    struct QueryEdit: Sendable {
        let order: UInt64
        let change: @Sendable (inout DiskQuery) -> Void
    }

    /// How many changes to one list are kept: whoever was away for more is asked again.
    private static let editsMaximum = 1_024

    private let state = Mutex(State())

    /// Begins a request.
    func begin() -> UInt64 {
        state.withLock { state in
            state.last += 1
            state.active.insert(state.last)
            return state.last
        }
    }

    /// A place in the order for something that has already happened, such as an event.
    func now() -> UInt64 {
        state.withLock { state in
            state.last += 1
            return state.last
        }
    }

    /// Ends a request: what only it could have undone is forgotten.
    func end(_ order: UInt64) {
        state.withLock { state in
            state.active.remove(order)
            guard !state.applied.isEmpty || !state.invalidated.isEmpty || !state.edits.isEmpty else { return }
            guard let oldest = state.active.min() else {
                state.applied.removeAll()
                state.invalidated.removeAll()
                state.edits.removeAll()
                return
            }
            // Looking through all of them at each end would cost more than it saves.
            guard state.applied.count + state.invalidated.count > 512 else { return }
            state.applied = state.applied.filter { $0.value > oldest }
            state.invalidated = state.invalidated.filter { $0.value > oldest }
        }
    }

    /// Whether something newer than a request of that order was applied to a key.
    func isOvertaken(_ key: StoredKey, by order: UInt64) -> Bool {
        state.withLock { ($0.applied[key] ?? 0) > order }
    }

    /// Whether a key was declared stale after a request of that order had begun.
    func isInvalidated(_ key: StoredKey, since order: UInt64) -> Bool {
        state.withLock { ($0.invalidated[key] ?? 0) > order }
    }

    func noteApplied(_ key: StoredKey, _ order: UInt64) {
        state.withLock { state in
            guard !state.active.isEmpty else { return }
            state.applied[key] = max(order, state.applied[key] ?? 0)
        }
    }

    /// What has happened to a list since a request of that order began: its answer need not know of it.
    func edits(of key: QueryKey, since order: UInt64) -> [QueryEdit] {
        state.withLock { $0.edits[key]?.filter { $0.order > order } ?? [] }
    }

    func noteEdited(_ key: QueryKey, _ order: UInt64, _ change: @escaping @Sendable (inout DiskQuery) -> Void) {
        state.withLock { state in
            guard let oldest = state.active.min() else { return }
            var edits = state.edits[key] ?? []
            if edits.count >= Self.editsMaximum {
                edits.removeAll { $0.order < oldest }
                if edits.count >= Self.editsMaximum {
                    edits.removeFirst(Self.editsMaximum / 2)
                    state.invalidated[.query(key)] = max(order, state.invalidated[.query(key)] ?? 0)
                }
            }
            edits.append(QueryEdit(order: order, change: change))
            state.edits[key] = edits
        }
    }

    func noteInvalidated(_ key: StoredKey, _ order: UInt64) {
        state.withLock { state in
            guard !state.active.isEmpty else { return }
            state.invalidated[key] = max(order, state.invalidated[key] ?? 0)
        }
    }
}

/// What something in the store is called, whichever kind it is.
enum StoredKey: Hashable, Sendable {
    case entity(EntityKey)
    case query(QueryKey)
}
