import Synchronization

/// Where elements of one kind are posted for everybody who listens. Safe from any thread.
///
/// Posting and waking are apart, so that an owner can post under its own lock, which keeps the order, and wake outside of it.
final class EventHub<Element: Sendable>: Sendable {
    private struct State {
        var mailboxes: [(id: UInt64, mailbox: EventMailbox<Element>)] = []
        var lastID: UInt64 = 0
    }

    private let state = Mutex(State())

    deinit {
        for (_, mailbox) in state.withLock({ $0.mailboxes }) { mailbox.finish() }
    }

    /// Listens from now on.
    ///
    /// - Parameters:
    ///   - limit: how many elements may wait; 1 keeps the newest only, which is right for states.
    ///   - first: an element that is there at once.
    ///   - onEnd: called when nobody can read the sequence any more.
    func subscribe(
        limit: Int,
        first: Element? = nil,
        onEnd: @escaping @Sendable () -> Void = {}
    ) -> EventSequence<Element> {
        let mailbox = EventMailbox<Element>(limit: limit)
        // Nobody waits in a new mailbox.
        if let first { _ = mailbox.post(first) }
        let id = state.withLock { state in
            state.lastID += 1
            state.mailboxes.append((state.lastID, mailbox))
            return state.lastID
        }
        let registration = EventRegistration { [weak self] in
            self?.remove(id)
            onEnd()
        }
        return EventSequence(mailbox: mailbox, registration: registration)
    }

    /// Puts an element into all mailboxes; who waited for one is to be resumed once no lock is held.
    func post(_ element: Element) -> [EventWakeup<Element>] {
        var wakeups: [EventWakeup<Element>] = []
        state.withLock { state in
            for (_, mailbox) in state.mailboxes {
                if let wakeup = mailbox.post(element) { wakeups.append(wakeup) }
            }
        }
        return wakeups
    }

    /// Whether anybody listens.
    var hasListeners: Bool { state.withLock { !$0.mailboxes.isEmpty } }

    /// How many elements those who listen now have missed.
    var droppedCount: Int { state.withLock { $0.mailboxes.reduce(0) { $0 + $1.mailbox.droppedCount } } }

    private func remove(_ id: UInt64) { state.withLock { $0.mailboxes.removeAll { $0.id == id } } }
}
