import LarderEvents
import LarderTime
import Synchronization

/// The delay of requests for a value or a page after failed ones: full jitter, and not before the server has asked for it.
struct BackOff: Sendable {
    /// The error of the last request; nil if it succeeded.
    private(set) var error: LarderError?
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
        self.error = error
        failures = error.failures(after: failures)
        guard !error.isLocal else {
            (retryAt, heldUntil) = (nil, nil)
            return
        }
        let held = [heldUntil, error.retryAfter.map { now + $0 }].compactMap(\.self).filter { $0 > now }.max()
        (retryAt, heldUntil) = ((held ?? now) + policy.backoffMaximum(attempt: failures) * jitter, held)
    }

    /// Ends the delay that the network has caused, and the next failure begins with the first delay: it may be that of a request from
    /// before. What the server has asked for stays.
    mutating func endNetworkDelay() { (failures, retryAt) = (heldUntil == nil ? 0 : 1, heldUntil) }
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

/// The delay of reads after failed requests. Not called under the node's lock.
extension Node {
    /// The error of a request that must not be sent yet, because the last one has failed; nil if it may be sent.
    ///
    /// A request that may be sent takes a token of the cache's retry budget; without one it is postponed again.
    func postponement(of place: TimelinePlace? = nil, at now: Moment) -> LarderError? {
        let requests = state.withLock { $0[place] }
        let known = requests.backOff
        guard requests.flight == nil, let error = known.error, var due = known.retryAt else { return nil }
        if due <= now.uptime {
            if core.readRetryBudget.withLock({ $0.withdraw(at: now.uptime) }) {
                // One reader has the token; others join its request.
                state.withLock { $0[place].backOff.retryAt = nil }
                return nil
            }
            let configuration = core.configuration
            let wait = configuration.readRetry.backoffMaximum(attempt: known.failures) * configuration.random()
            due = now.uptime + max(.milliseconds(1), wait)
            state.withLock { [due] state in state[place].backOff.retryAt = due }
        }
        return error.postponed(for: due - now.uptime)
    }

    /// Remembers that observers want a request as soon as one may be sent.
    func owe() {
        let replaced = state.withLock { state in
            state.owesRequest = true
            return plan(state.owedAt, &state)
        }
        replaced?.cancel()
    }
}

extension Node.State {
    /// When observers are owed a request; nil if they are not.
    var owedAt: MonotonicTime? { owesRequest ? own.backOff.retryAt : nil }
}

/// Reads that repeat themselves, because nothing can be shown in their place.
extension Node {
    /// Reads, and reads again after a 429 or 503 with a short `Retry-After` (RFC 9110 section 10.2.3).
    ///
    /// The limits are the time limit of the read, which covers all attempts and the waits between them, and those of
    /// `CacheConfiguration.readRetry`.
    ///
    /// - Parameter withdraws: whether a repetition takes a token of the retry budget here; a read by policy takes it itself.
    /// - Throws: the error of the last attempt.
    func repeating(
        _ options: ReadOptions,
        withdraws: Bool,
        _ read: (ReadOptions) async throws(LarderError) -> Snapshot<Value>
    ) async throws(LarderError) -> Snapshot<Value> {
        let policy = core.configuration.readRetry
        let start = core.now().uptime
        let limit = min(options.timeout ?? policy.elapsedMaximum, policy.elapsedMaximum)
        var options = options
        var attempt = 1
        while true {
            let due: MonotonicTime
            do { return try await read(options) } catch {
                guard attempt < policy.attemptsMaximum, error.asksForShortPause,
                    let time = state.withLock({ $0.flight == nil ? $0.own.backOff.retryAt : nil }),
                    time - start < limit,
                    !withdraws || core.readRetryBudget.withLock({ $0.withdraw(at: core.now().uptime) })
                else { throw error }
                due = time
            }
            do { try await core.configuration.monotonicClock.sleep(until: due) } catch { throw LarderError(error) }
            attempt += 1
            if let timeout = options.timeout { options.remaining = max(timeout - (core.now().uptime - start), .zero) }
        }
    }
}

extension LarderError {
    /// Whether the server itself has turned the request away, for a time that a caller can wait.
    var asksForShortPause: Bool {
        guard !isUnsent, status == 429 || status == 503, let retryAfter else { return false }
        return retryAfter <= Self.pauseMaximum
    }

    /// The longest `Retry-After` after which a read, a gate or an awaited write is repeated while its caller waits.
    private static let pauseMaximum: Duration = .seconds(5)
}
