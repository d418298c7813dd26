import LarderEvents
import LarderTime
import Synchronization

/// The delay of requests for a value or a page after failed ones: full jitter, and not before the server has asked for it.
struct BackOff: Sendable {
    /// How many requests have failed in a row.
    private(set) var failures = 0
    /// When it may be asked for again; nil: at once.
    var retryAt: MonotonicTime?
    /// The part of `retryAt` that the server has asked for: it also holds when the network returns. A person's attempt that fails does not
    /// shorten it.
    private var heldUntil: MonotonicTime?

    /// Notes a failure.
    ///
    /// - Parameter jitter: from 0 to 1.
    mutating func fail(_ error: LarderError, _ policy: RetryPolicy, jitter: Double, at now: MonotonicTime) {
        failures = error.failures(after: failures)
        guard !error.isLocal else {
            (retryAt, heldUntil) = (nil, nil)
            return
        }
        let held = [heldUntil, error.retryAfter.map { now + $0 }].compactMap(\.self).filter { $0 > now }.max()
        (retryAt, heldUntil) = ((held ?? now) + policy.backoffMaximum(attempt: failures) * jitter, held)
    }

    /// Ends the delay that the network has caused. What the server has asked for stays.
    mutating func endNetworkDelay() { retryAt = heldUntil }
}

extension CacheCore {
    /// The error of a request that must not be sent yet, because the last one has failed; nil if it may be sent.
    ///
    /// A request that may be sent takes a token of the cache's retry budget; without one it is postponed again. Called without a lock.
    ///
    /// - Parameters:
    ///   - error: the error of the last request.
    ///   - postpone: sets `retryAt`.
    func postponement(
        _ known: BackOff,
        _ error: LarderError?,
        at now: MonotonicTime,
        _ postpone: (MonotonicTime?) -> Void
    ) -> LarderError? {
        guard known.failures > 0, let error, var due = known.retryAt else { return nil }
        if due <= now {
            if readRetryBudget.withLock({ $0.withdraw(at: now) }) {
                // One reader has the token; others join its request.
                postpone(nil)
                return nil
            }
            let wait = configuration.readRetry.backoffMaximum(attempt: known.failures) * configuration.random()
            due = now + max(.milliseconds(1), wait)
            postpone(due)
        }
        return error.postponed(for: due - now)
    }
}

extension LarderError {
    /// The number of failures in a row with this one. A request that was held until the host's pause ends has not failed again:
    /// otherwise two delays for one cause would double each other.
    fileprivate func failures(after earlier: Int) -> Int {
        isHeldBack ? max(1, earlier) : earlier + 1
    }

    /// Whether the request was not sent because the host has asked for a pause.
    var isHeldBack: Bool { isUnsent && retryAfter != nil }

    /// Whether the same request may succeed later by itself. One that lacks authorization needs a sign-in.
    var isTransient: Bool {
        if isLocal || code == .unauthorized || code == .gone { return false }
        guard let status, (400..<500).contains(status) else { return true }
        return status == 408 || status == 425 || status == 429
    }
}
