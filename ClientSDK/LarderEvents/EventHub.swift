import LarderTime
import Synchronization

/// Distributes elements to all its sequences. Safe from any thread: an owner posts under its lock, which keeps the order. A waiter that is
/// resumed there runs later: resuming only gives its job to its executor.
package final class EventHub<Element: Sendable>: Sendable {
    private struct State {
        var mailboxes: [(id: UInt64, mailbox: EventMailbox<Element>)] = []
        var lastID: UInt64 = 0
    }

    private let state = Mutex(State())

    package init() {}

    deinit {
        for (_, mailbox) in state.withLock({ $0.mailboxes }) { mailbox.finish() }
    }

    /// Adds a sequence.
    ///
    /// - Parameters:
    ///   - limit: the maximum number of waiting elements; 1 keeps the newest only, which suits states.
    ///   - first: the first element, available immediately.
    ///   - onEnd: called when the sequence and its iterators are released.
    package func subscribe(
        limit: Int,
        first: Element? = nil,
        onEnd: @escaping @Sendable () -> Void = {}
    ) -> EventSequence<Element> {
        let mailbox = EventMailbox<Element>(limit: limit)
        if let first { mailbox.post(first) }
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

    /// Posts an element to all mailboxes.
    package func post(_ element: Element) {
        state.withLock { state in
            for (_, mailbox) in state.mailboxes { mailbox.post(element) }
        }
    }

    /// Whether there are sequences.
    package var hasListeners: Bool { state.withLock { !$0.mailboxes.isEmpty } }

    /// The number of elements that the current sequences have dropped.
    package var droppedCount: Int { state.withLock { $0.mailboxes.reduce(0) { $0 + $1.mailbox.droppedCount } } }

    private func remove(_ id: UInt64) { state.withLock { $0.mailboxes.removeAll { $0.id == id } } }
}
