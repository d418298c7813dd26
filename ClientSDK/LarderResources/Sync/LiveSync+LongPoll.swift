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
    ///   - read: asks for the changes since a token, as `ChangeFeed.read`, and lets the server wait.
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
    private let token: Mutex<String?>
    private let clock: any MonotonicClock & Sleeper
    private let timeout: Duration
    private let read: @Sendable (_ since: String?) async throws(LarderError) -> ChangeFeed.Batch

    init(
        _ since: String?,
        _ clock: any MonotonicClock & Sleeper,
        _ timeout: Duration,
        _ read: @escaping @Sendable (_ since: String?) async throws(LarderError) -> ChangeFeed.Batch
    ) {
        token = Mutex(since)
        self.clock = clock
        self.timeout = timeout
        self.read = read
    }

    func receive() async throws(LarderError) -> LiveSync.Message? {
        let since = token.withLock { $0 }
        let reason = RequestReason("live changes", cause: "a long poll", isLongPoll: true)
        let (read, timeout) = (read, timeout)
        let batch: ChangeFeed.Batch
        do {
            batch = try await within(timeout, clock: clock, sleeper: clock) {
                try await reason.around { () async throws(LarderError) in try await read(since) }
            }
        } catch is TimeLimitExceeded {
            throw LarderError(.timedOut, "The long poll was not answered within \(timeout).")
        } catch { throw LarderError(error) }
        // The next request asks for the changes after this page.
        token.withLock { $0 = batch.nextToken }
        guard let since else { return .hello(token: batch.nextToken) }
        return .page(batch, since: since)
    }
}
