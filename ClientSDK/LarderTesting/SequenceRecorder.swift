import LarderTime
import Synchronization

/// Records the elements of an asynchronous sequence in its own task, so that a test can wait for them.
///
/// Safe from any task. The sequence is cancelled when the recorder is released.
public final class SequenceRecorder<Element: Sendable>: Sendable {
    private struct State {
        var elements: [Element] = []
        var hasEnded = false
        var waiters: [(isEnough: @Sendable ([Element]) -> Bool, isAwake: Pending<Void>)] = []
    }

    private final class Log: Sendable {
        let state = Mutex(State())

        func note(_ element: Element?) {
            let (elements, hasEnded, waiters) = state.withLock { state in
                if let element { state.elements.append(element) } else { state.hasEnded = true }
                return (state.elements, state.hasEnded, state.waiters)
            }
            // Conditions are called without the lock, because they may read this recorder.
            for waiter in waiters where hasEnded || waiter.isEnough(elements) { waiter.isAwake.finish(()) }
        }
    }

    private let log = Log()
    private let task: Task<Void, Never>

    /// Starts recording.
    public init<Sequence: AsyncSequence & Sendable>(_ sequence: Sequence)
    where Sequence.Element == Element, Sequence.Failure == Never {
        let log = log
        task = Task {
            for await element in sequence { log.note(element) }
            log.note(nil)
        }
    }

    deinit { task.cancel() }

    /// All elements so far.
    public var elements: [Element] { log.state.withLock { $0.elements } }

    /// Whether the sequence has ended.
    public var hasEnded: Bool { log.state.withLock { $0.hasEnded } }

    /// Waits until the condition holds, the sequence ends, or the calling task is cancelled. Returns all elements.
    @discardableResult
    public func wait(until isEnough: @escaping @Sendable ([Element]) -> Bool) async -> [Element] {
        let isAwake = Pending<Void>()
        // Added first, so that no element is missed.
        let (elements, hasEnded) = log.state.withLock { state in
            state.waiters.append((isEnough, isAwake))
            return (state.elements, state.hasEnded)
        }
        if !hasEnded, !isEnough(elements) { await isAwake.value(ifCancelled: ()) }
        return log.state.withLock { state in
            state.waiters.removeAll { $0.isAwake === isAwake }
            return state.elements
        }
    }

    /// Waits for a number of elements, the end of the sequence, or cancellation of the calling task. Returns all elements.
    @discardableResult
    public func wait(for count: Int) async -> [Element] { await wait { $0.count >= count } }

    /// Waits for the end of the sequence, or cancellation of the calling task.
    public func waitForEnd() async { await wait { _ in false } }

    /// Stops recording.
    public func cancel() { task.cancel() }
}
