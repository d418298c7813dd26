import LarderTime
import Synchronization

/// A call in flight that several callers share. It is cancelled when its last holder has left.
///
/// `info` is what the owner knows about the call. Safe from any thread.
package final class SingleFlight<Info: Sendable, Success: Sendable, Failure: Error>: Sendable {
    private struct State {
        var holders = 1
        var waiters: [Pending<Result<Success, Failure>>] = []
        var result: Result<Success, Failure>?
        /// Whether its result is being stored: it is not abandoned any more.
        var isClaimed = false
        var task: Task<Void, Never>?
    }

    package let info: Info
    private let state = Mutex(State())
    private let cancellation: @Sendable () -> Failure
    private let onAbandoned: @Sendable (SingleFlight) -> Void

    /// The caller is the first holder.
    ///
    /// - Parameters:
    ///   - cancellation: makes the error of a waiter that is cancelled.
    ///   - onAbandoned: called when the last holder leaves before there is a result.
    package init(
        _ info: Info,
        cancellation: @escaping @Sendable () -> Failure,
        onAbandoned: @escaping @Sendable (SingleFlight) -> Void = { _ in }
    ) {
        self.info = info
        self.cancellation = cancellation
        self.onAbandoned = onAbandoned
    }

    /// Sets the task that carries the call out. It must end with `finish`.
    package func run(_ task: Task<Void, Never>) {
        let isAbandoned = state.withLock { state in
            state.task = task
            return state.holders == 0
        }
        if isAbandoned { task.cancel() }
    }

    /// Adds a holder; false if the call was abandoned before.
    package func hold() -> Bool {
        state.withLock { state in
            guard state.holders > 0 else { return false }
            state.holders += 1
            return true
        }
    }

    /// Removes a holder.
    package func leave() {
        let abandoned = state.withLock { state -> Task<Void, Never>?? in
            state.holders -= 1
            guard state.holders == 0, state.result == nil, !state.isClaimed else { return nil }
            state.result = .failure(cancellation())
            return .some(state.task)
        }
        guard let abandoned else { return }
        abandoned?.cancel()
        onAbandoned(self)
    }

    /// Waits for the result, as a holder.
    ///
    /// - Throws: the call's error, or `cancellation` as soon as the calling task is cancelled.
    package func wait() async throws(Failure) -> Success {
        let waiter = Pending<Result<Success, Failure>>()
        state.withLock { state in
            guard let result = state.result else { return state.waiters.append(waiter) }
            waiter.finish(result)
        }
        let result = await waiter.value(ifCancelled: .failure(cancellation())) {
            state.withLock { $0.waiters.removeAll { $0 === waiter } }
        }
        return try result.get()
    }

    /// The number of tasks that wait for the result.
    var waiterCount: Int { state.withLock { $0.waiters.count } }

    package var isFinished: Bool { state.withLock { $0.result != nil } }

    /// The task that carries the call out; nil before `run`.
    package var task: Task<Void, Never>? { state.withLock { $0.task } }

    /// Cancels the task although others may still wait for it.
    package func cancel() { task?.cancel() }

    /// Claims the right to store the result: from then on the call is not abandoned.
    ///
    /// - Returns: false if the call was abandoned or has ended. Its result must be dropped then: a later call may have stored a newer one.
    package func claim() -> Bool {
        state.withLock { state in
            guard state.result == nil else { return false }
            state.isClaimed = true
            return true
        }
    }

    /// Ends the call for all waiters. Only the first result counts.
    package func finish(_ result: Result<Success, Failure>) {
        let waiters = state.withLock { state in
            guard state.result == nil else { return [Pending<Result<Success, Failure>>]() }
            state.result = result
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.finish(result) }
    }
}
