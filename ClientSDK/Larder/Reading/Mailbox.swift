import Synchronization

/// A place for one element: a newer one takes the place of one that was not fetched. Safe from any thread; one task waits at it.
final class Mailbox<Element: Sendable>: Sendable {
    private struct State {
        var element: Element?
        var waiter: CheckedContinuation<Element?, Never>?
        var hasEnded = false
    }

    private let state = Mutex(State())

    /// Puts an element. After the end it is dropped.
    func put(_ element: Element) {
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

    /// Puts an element, unless a newer one waits to be fetched: for saying again what was said before.
    func putAgain(_ element: Element) {
        let waiter = state.withLock { state -> CheckedContinuation<Element?, Never>? in
            guard !state.hasEnded, state.element == nil else { return nil }
            guard let waiter = state.waiter.take() else {
                state.element = element
                return nil
            }
            return waiter
        }
        waiter?.resume(returning: element)
    }

    /// Ends it: who waits gets nil, and so does everyone after what is still there has been fetched.
    func end() {
        let waiter = state.withLock { state -> CheckedContinuation<Element?, Never>? in
            state.hasEnded = true
            return state.waiter.take()
        }
        waiter?.resume(returning: nil)
    }

    /// The newest element that was not fetched, or the next that comes; nil after the end, and when the task is cancelled.
    func next() async -> Element? {
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
