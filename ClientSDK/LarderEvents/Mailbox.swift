import Synchronization

/// A mailbox for the latest element: a newer one replaces an unread one. Safe from any thread; one task may wait.
package final class Mailbox<Element: Sendable>: Sendable {
    private struct State {
        var element: Element?
        var waiter: CheckedContinuation<Element?, Never>?
        var hasEnded = false
    }

    private let state = Mutex(State())

    package init() {}

    /// Sets the element. Has no effect after the end.
    package func put(_ element: Element) {
        let waiter = state.withLock { state -> CheckedContinuation<Element?, Never>? in
            guard !state.hasEnded else { return nil }
            guard let waiter = state.waiter else {
                state.element = element
                return nil
            }
            state.waiter = nil
            return waiter
        }
        waiter?.resume(returning: element)
    }

    /// Ends the mailbox. After the unread element `next` returns nil.
    package func end() {
        let waiter = state.withLock { state -> CheckedContinuation<Element?, Never>? in
            state.hasEnded = true
            return state.waiter.take()
        }
        waiter?.resume(returning: nil)
    }

    /// Returns the unread element or waits for one; nil after the end and for a cancelled task, which also ends the
    /// mailbox.
    package func next() async -> Element? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let (isReady, element) = state.withLock { state -> (Bool, Element?) in
                    if let element = state.element.take() { return (true, element) }
                    if state.hasEnded || Task.isCancelled { return (true, nil) }
                    state.waiter = continuation
                    return (false, nil)
                }
                if isReady { continuation.resume(returning: element) }
            }
        } onCancel: {
            end()
        }
    }
}
