import LarderEvents
import LarderTime
import Synchronization

extension LiveSync {
    /// A channel of requests that the server answers when there is a change, or after a time without one.
    ///
    /// ```swift
    /// // `changes` asks the server, which waits for at most 30 seconds.
    /// typealias Changes = @Sendable (_ since: String?, _ seconds: Int) async throws(LarderError) -> ChangeFeed.Batch
    /// func polling(_ cache: LarderCache, _ changes: @escaping Changes) -> LiveSync.Source {
    ///     LiveSync.Source([.longPoll]) { _, since throws(LarderError) in
    ///         LiveSync.longPoll(since: since, in: cache) { since throws(LarderError) in try await changes(since, 30) }
    ///     }
    /// }
    /// ```
    /// - Parameters:
    ///   - since: the token with which the channel was opened.
    ///   - cache: the cache that is kept up to date; its clock measures the timeout.
    ///   - timeout: the limit of a request; longer than the server's.
    ///   - read: asks for the changes since a token, as `ChangeFeed.read`, and lets the server wait; nil: for the present token, at once. After
    ///     an empty page that came at once the next request waits, longer each time, up to 30 seconds.
    public static func longPoll(
        since: String?,
        in cache: LarderCache,
        timeout: Duration = .seconds(60),
        read: @escaping @Sendable (_ since: String?) async throws(LarderError) -> ChangeFeed.Batch
    ) -> any LiveSync.Channel {
        LongPollChannel(since, cache.configuration.monotonicClock, timeout, read)
    }
}

/// The change feed itself: each request waits until there is a page.
private final class LongPollChannel: LiveSync.Channel {
    private struct State {
        var token: String?
        /// How many replies in a row were empty and came at once, and when the next request may be sent because of that.
        var idleReplies = 0
        var due: MonotonicTime?
    }

    /// A server that waits for changes takes longer for an empty page.
    private static let waitMinimum: Duration = .seconds(1)
    private static let pauses = RetryPolicy(base: .seconds(1), ceiling: .seconds(30))

    private let state: Mutex<State>
    private let clock: any MonotonicClock
    private let timeout: Duration
    private let read: @Sendable (_ since: String?) async throws(LarderError) -> ChangeFeed.Batch

    init(
        _ since: String?,
        _ clock: any MonotonicClock,
        _ timeout: Duration,
        _ read: @escaping @Sendable (_ since: String?) async throws(LarderError) -> ChangeFeed.Batch
    ) {
        state = Mutex(State(token: since))
        self.clock = clock
        self.timeout = timeout
        self.read = read
    }

    func receive() async throws(LarderError) -> LiveSync.Message? {
        let (since, due) = state.withLock { ($0.token, $0.due) }
        let reason = RequestReason("live changes", cause: "a long poll", isLongPoll: true)
        let (read, timeout) = (read, timeout)
        let batch: ChangeFeed.Batch
        let start: MonotonicTime
        do {
            if let due { try await clock.sleep(until: due) }
            start = clock.uptime
            batch = try await within(timeout, clock: clock, sleeper: clock) {
                try await reason.around { () async throws(LarderError) in try await read(since) }
            }
        } catch is TimeLimitExceeded {
            throw LarderError(.timedOut, "The long poll was not answered within \(timeout).")
        } catch { throw LarderError(error) }
        let now = clock.uptime
        let hasProgress = batch.nextToken != since && (!batch.changes.isEmpty || batch.hasMore)
        let isIdle = since != nil && !hasProgress && now - start < Self.waitMinimum
        state.withLock { state in
            // The next request asks for the changes after this page.
            state.token = batch.nextToken
            state.idleReplies = isIdle ? state.idleReplies + 1 : 0
            state.due = isIdle ? now + Self.pauses.backoffMaximum(attempt: state.idleReplies) : nil
        }
        guard let since else { return .hello(token: batch.nextToken) }
        return .page(batch, since: since)
    }
}
