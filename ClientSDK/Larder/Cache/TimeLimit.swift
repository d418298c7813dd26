import LarderTime
import Synchronization

/// Runs something for no longer than a time, also where it does not notice that it was cancelled.
///
/// Both the work and the wait are cancelled when the other has ended, and when the calling task is.
func within<Result: Sendable>(
    _ limit: Duration?,
    clock: any MonotonicClock,
    sleeper: any Sleeper,
    _ work: @escaping @Sendable () async throws -> Result
) async throws -> Result {
    guard let limit else { return try await work() }
    let race = Race<Result>()
    let due = clock.uptime + limit
    return try await withTaskCancellationHandler {
        try await withCheckedThrowingContinuation { continuation in
            race.begin(continuation)
            race.add(
                Task {
                    do { race.finish(.success(try await work())) } catch { race.finish(.failure(error)) }
                }
            )
            race.add(
                Task {
                    do { try await sleeper.sleep(until: due) } catch { return }
                    race.finish(.failure(TimeLimitExceeded(limit: limit)))
                }
            )
        }
    } onCancel: {
        race.finish(.failure(CancellationError()))
    }
}

/// Something took longer than it might.
struct TimeLimitExceeded: Error {
    let limit: Duration
}

/// Several tasks of which the first that ends decides.
private final class Race<Result: Sendable>: Sendable {
    private struct State {
        var continuation: CheckedContinuation<Result, any Error>?
        var tasks: [Task<Void, Never>] = []
        var early: Swift.Result<Result, any Error>?
        var isOver = false
    }

    private let state = Mutex(State())

    func begin(_ continuation: CheckedContinuation<Result, any Error>) {
        let early = state.withLock { state -> Swift.Result<Result, any Error>? in
            if let early = state.early { return early }
            state.continuation = continuation
            return nil
        }
        if let early { continuation.resume(with: early) }
    }

    func add(_ task: Task<Void, Never>) {
        let isOver = state.withLock { state in
            if !state.isOver { state.tasks.append(task) }
            return state.isOver
        }
        if isOver { task.cancel() }
    }

    func finish(_ result: Swift.Result<Result, any Error>) {
        let (continuation, tasks) = state.withLock { state in
            defer {
                state.isOver = true
                state.tasks = []
            }
            if !state.isOver, state.continuation == nil { state.early = result }
            return (state.continuation.take(), state.tasks)
        }
        for task in tasks { task.cancel() }
        continuation?.resume(with: result)
    }
}
