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
            let awake = state.withLock { state -> [Pending<Void>] in
                if let element { state.elements.append(element) } else { state.hasEnded = true }
                let elements = state.elements
                let hasEnded = state.hasEnded
                // Called once per element, because the condition may depend on other state.
                var awake: [Pending<Void>] = []
                state.waiters.removeAll { waiter in
                    guard hasEnded || waiter.isEnough(elements) else { return false }
                    awake.append(waiter.isAwake)
                    return true
                }
                return awake
            }
            for pending in awake { pending.finish(()) }
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
        let isReady = log.state.withLock { state in
            if state.hasEnded || isEnough(state.elements) { return true }
            state.waiters.append((isEnough, isAwake))
            return false
        }
        if !isReady {
            await isAwake.value(ifCancelled: ()) { [log] in
                log.state.withLock { $0.waiters.removeAll { $0.isAwake === isAwake } }
            }
        }
        return elements
    }

    /// Waits for a number of elements, the end of the sequence, or cancellation of the calling task. Returns all elements.
    @discardableResult
    public func wait(for count: Int) async -> [Element] { await wait { $0.count >= count } }

    /// Waits for the end of the sequence, or cancellation of the calling task.
    public func waitForEnd() async { await wait { _ in false } }

    /// Stops recording.
    public func cancel() { task.cancel() }
}
