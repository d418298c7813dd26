import LarderStorage
import LarderTime
import Synchronization

/// Holds a process lock of an outbox while anything that it covers is being sent, so that one process sends it at a time.
///
/// Safe from any thread.
final class SendLock: Sendable {
    private struct State {
        var users = 0
        /// How often in a row it could not be used, and until when it is not requested again.
        var failures = 0
        var retryAt: MonotonicTime?

        func isDue(at now: MonotonicTime) -> Bool { retryAt.map { $0 <= now } ?? true }

        mutating func postpone(at now: MonotonicTime, jitter: Double) {
            failures += 1
            let longest = SendLock.retry.backoffMaximum(attempt: failures)
            // At least half of the delay is certain, so that the lock is never requested without a pause.
            retryAt = now + longest / 2 + longest / 2 * jitter
        }
    }

    private static let retry = RetryPolicy(base: .milliseconds(100), ceiling: .seconds(5))

    private let lock: (any ProcessLock)?
    private let random: @Sendable () -> Double
    private let state = Mutex(State())

    /// - Parameters:
    ///   - lock: nil if no other process can open the outbox.
    ///   - random: returns numbers in 0..<1 for jitter.
    init(_ lock: (any ProcessLock)?, _ random: @escaping @Sendable () -> Double) {
        (self.lock, self.random) = (lock, random)
    }

    deinit { if state.withLock({ $0.users > 0 }) { lock?.release() } }

    /// When it is requested again, after it was held by another process, or the store has failed; nil: at once.
    var retryAt: MonotonicTime? { state.withLock { $0.retryAt } }

    func isDue(at now: MonotonicTime) -> Bool { state.withLock { $0.isDue(at: now) } }

    /// Adds a user of the lock and takes the lock for the first one; false if another process holds it, or has held it just now.
    func enter(at now: MonotonicTime) throws -> Bool {
        let jitter = random()
        return try state.withLock { state in
            guard state.isDue(at: now) else { return false }
            if state.users == 0, let lock, try !lock.take() {
                state.postpone(at: now, jitter: jitter)
                return false
            }
            state.users += 1
            return true
        }
    }

    /// Adds a user of a lock that is held.
    func share() { state.withLock { $0.users += 1 } }

    /// Removes a user; the last one releases the lock.
    func leave() {
        state.withLock { state in
            state.users -= 1
            if state.users == 0 { lock?.release() }
        }
    }

    /// Delays the next request, because the store has failed.
    func postpone(at now: MonotonicTime) {
        let jitter = random()
        state.withLock { $0.postpone(at: now, jitter: jitter) }
    }

    func clearDelay() { state.withLock { ($0.failures, $0.retryAt) = (0, nil) } }

    /// Releases the lock, as process death would: operations in flight are marked and in doubt. The cache is closed, so nobody enters later.
    func close() { state.withLock { _ in lock?.release() } }
}
