package import LarderTime

/// Runs `body`, but not beyond `deadline`.
///
/// At the deadline `body` is cancelled; this function returns when `body` has ended. If the caller is cancelled, `body` is too,
/// and its result is returned.
///
/// - Returns: nil if the deadline came first.
package func until<Value: Sendable>(
    _ deadline: MonotonicTime,
    by sleeper: any MonotonicClock,
    _ body: @escaping @Sendable () async -> Value
) async -> Value? {
    await withTaskGroup(of: DeadlineEnd<Value>.self) { group in
        group.addTask { .done(await body()) }
        group.addTask {
            do {
                try await sleeper.sleep(until: deadline)
                return .late
            } catch {
                return .cancelled
            }
        }
        defer { group.cancelAll() }
        while let end = await group.next() {
            switch end {
            case .done(let value): return value
            case .late: return nil
            case .cancelled: continue
            }
        }
        return nil
    }
}

private enum DeadlineEnd<Value: Sendable>: Sendable {
    case done(Value)
    case late
    case cancelled
}

/// Runs `work`, which may ignore its cancellation, for at most `limit`; nil: without a limit, until it has ended.
///
/// At the limit, and when the caller is cancelled before it, `work` is cancelled and its result is ignored.
///
/// - Throws: `TimeLimitExceeded`, `CancellationError`, or the error of `work`.
package func within<Value: Sendable>(
    _ limit: Duration?,
    clock: any MonotonicClock,
    sleeper: any MonotonicClock,
    _ work: @escaping @Sendable () async throws -> Value
) async throws -> Value {
    guard let limit else { return try await work() }
    let end = Pending<Result<Value, any Error>>()
    let deadline = clock.uptime + limit
    let running = Task {
        do { end.finish(.success(try await work())) } catch { end.finish(.failure(error)) }
    }
    defer { running.cancel() }
    let result = await until(deadline, by: sleeper) { await end.value(ifCancelled: .failure(CancellationError())) }
    guard let result else { throw TimeLimitExceeded(limit: limit) }
    return try result.get()
}

package struct TimeLimitExceeded: Error {
    package let limit: Duration
}
