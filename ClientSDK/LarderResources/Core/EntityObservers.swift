import LarderEvents
import Synchronization

/// The local queries that are observed, by the type of their entities. Costs an atomic load while there are none.
final class EntityObservers: Sendable {
    /// Ends an observation when it is released.
    final class Registration: Sendable {
        private let observers: EntityObservers
        private let id: UInt64
        let changes = Mailbox<Void>()

        fileprivate init(_ observers: EntityObservers, _ id: UInt64) {
            self.observers = observers
            self.id = id
        }

        deinit { observers.remove(id) }
    }

    private struct State {
        var mailboxes: [UInt64: (type: String, changes: Mailbox<Void>)] = [:]
        var lastID: UInt64 = 0
        var hasEnded = false
    }

    private let state = Mutex(State())
    private let count = Atomic<Int>(0)

    var isEmpty: Bool { count.load(ordering: .relaxed) == 0 }

    func add(_ type: String) -> Registration {
        let (registration, hasEnded) = state.withLock { state in
            state.lastID += 1
            let registration = Registration(self, state.lastID)
            state.mailboxes[state.lastID] = (type, registration.changes)
            count.store(state.mailboxes.count, ordering: .relaxed)
            return (registration, state.hasEnded)
        }
        if hasEnded { registration.changes.end() }
        return registration
    }

    private func remove(_ id: UInt64) {
        state.withLock { state in
            state.mailboxes[id] = nil
            count.store(state.mailboxes.count, ordering: .relaxed)
        }
    }

    /// Tells the observers of the types that entities have changed.
    func tell(_ hasChanged: (String) -> Bool) {
        guard !isEmpty else { return }
        let told = state.withLock { $0.mailboxes.values.filter { hasChanged($0.type) } }
        for (_, changes) in told { changes.put(()) }
    }

    /// Ends all observations: the cache was closed.
    func end() {
        let ended = state.withLock { state in
            state.hasEnded = true
            return Array(state.mailboxes.values)
        }
        for (_, changes) in ended { changes.end() }
    }
}
