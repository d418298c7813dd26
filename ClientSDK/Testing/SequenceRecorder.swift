import LarderTime
import Synchronization

/// Writes down what an asynchronous sequence gives, in a task of its own, so that a test can wait for it and look at all of it.
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
                // Asked once: what else it looks at may have changed when it is asked again.
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

    /// Begins to record.
    public init<Sequence: AsyncSequence & Sendable>(_ sequence: Sequence)
    where Sequence.Element == Element, Sequence.Failure == Never {
        let log = log
        task = Task {
            for await element in sequence { log.note(element) }
            log.note(nil)
        }
    }

    deinit { task.cancel() }

    /// What has come so far.
    public var elements: [Element] { log.state.withLock { $0.elements } }

    /// Whether the sequence has ended.
    public var hasEnded: Bool { log.state.withLock { $0.hasEnded } }

    /// Waits until what has come is enough, the sequence has ended, or the waiting task is cancelled; gives all of it.
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

    /// Waits until so many have come, the sequence has ended, or the waiting task is cancelled; gives all of it.
    @discardableResult
    public func wait(for count: Int) async -> [Element] { await wait { $0.count >= count } }

    /// Waits for the end, or until the waiting task is cancelled.
    public func waitForEnd() async { await wait { _ in false } }

    /// Ends it.
    public func cancel() { task.cancel() }
}
