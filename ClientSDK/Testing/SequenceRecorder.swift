import Synchronization

/// Writes down what an asynchronous sequence gives, in a task of its own, so that a test can wait for it and look at all of it.
///
/// Safe from any task. The sequence is cancelled when the recorder is released.
public final class SequenceRecorder<Element: Sendable>: Sendable {
    private struct State {
        var elements: [Element] = []
        var hasEnded = false
        var waiters: [(isEnough: @Sendable ([Element]) -> Bool, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private final class Log: Sendable {
        let state = Mutex(State())

        func note(_ element: Element?) {
            let awake = state.withLock { state -> [CheckedContinuation<Void, Never>] in
                if let element { state.elements.append(element) } else { state.hasEnded = true }
                let elements = state.elements
                let hasEnded = state.hasEnded
                // Asked once: what else it looks at may have changed when it is asked again.
                var awake: [CheckedContinuation<Void, Never>] = []
                state.waiters.removeAll { waiter in
                    guard hasEnded || waiter.isEnough(elements) else { return false }
                    awake.append(waiter.continuation)
                    return true
                }
                return awake
            }
            for continuation in awake { continuation.resume() }
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

    /// Waits until what has come is enough, or the sequence has ended; gives all of it.
    @discardableResult
    public func wait(until isEnough: @escaping @Sendable ([Element]) -> Bool) async -> [Element] {
        await withCheckedContinuation { continuation in
            let isReady = log.state.withLock { state in
                if state.hasEnded || isEnough(state.elements) { return true }
                state.waiters.append((isEnough, continuation))
                return false
            }
            if isReady { continuation.resume() }
        }
        return elements
    }

    /// Waits until so many have come, or the sequence has ended; gives all of it.
    @discardableResult
    public func wait(for count: Int) async -> [Element] { await wait { $0.count >= count } }

    /// Waits for the end.
    public func waitForEnd() async { await wait { _ in false } }

    /// Ends it.
    public func cancel() { task.cancel() }
}
