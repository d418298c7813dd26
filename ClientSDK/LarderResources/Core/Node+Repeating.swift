import LarderEvents
import LarderTime
import Synchronization

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
                    let time = state.withLock({ $0.flight == nil ? $0.backOff.retryAt : nil }), time - start < limit,
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
