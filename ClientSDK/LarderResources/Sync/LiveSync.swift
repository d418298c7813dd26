public import LarderEvents
public import LarderTime
import Synchronization

extension LiveSync {
    /// The kinds of live channels.
    public enum Kind: String, Sendable, Hashable, CaseIterable {
        case webSocket
        /// Server-sent events.
        case eventStream
        /// Long polling.
        case longPoll
    }

    /// A message of a live channel.
    public enum Message: Sendable {
        /// The channel delivers all changes after the token.
        case hello(token: String)
        /// Changes with their position in the feed: a page, or one change with the token after it, and the token before them.
        case page(ChangeFeed.Batch, since: String)
        /// A change of a backend without change tokens. If it throws, the messages count as missed (`afterGap`).
        case update(@Sendable (inout CacheUpdate) throws -> Void)
    }

    /// An open live channel for one reader. It is closed when it is released.
    public protocol Channel: Sendable {
        /// The next message; nil after a regular end.
        ///
        /// - Throws: an error whose `retryAfter` is the shortest wait before the next attempt; `.gone` without the status 410 if the
        ///   server has ended the channel for good: then the live sync ends.
        func receive() async throws(LarderError) -> LiveSync.Message?
    }

    /// Opens live channels.
    public struct Source: Sendable {
        /// The available kinds, the best first. If it is empty, `LiveSync.run` returns at once.
        public let kinds: [LiveSync.Kind]
        public let open: @Sendable (LiveSync.Kind, _ since: String?) async throws(LarderError) -> any LiveSync.Channel

        /// Creates a source of channels.
        public init(
            _ kinds: [LiveSync.Kind],
            open:
                @escaping @Sendable (LiveSync.Kind, _ since: String?) async throws(LarderError) -> any LiveSync.Channel
        ) {
            self.kinds = kinds
            self.open = open
        }
    }
}

/// Keeps a cache up to date with a live channel: it reconnects, falls back to another kind of channel, and makes up for missed
/// messages: by reading the change feed, or, if the backend has no change tokens, by marking as stale what the messages cover.
///
/// It does nothing while the network may not be used, and continues at once when it returns (`LarderCache.networkReturned`), but not before
/// a time that the server has asked for (`LarderError.retryAfter` of the source). A return adds no jitter: `DegradationPolicy.resumeWindow` spreads
/// the return of many clients. Safe from any task.
public final class LiveSync: Sendable {
    /// The state of a live sync.
    public enum State: Sendable, Hashable {
        /// It is not running.
        case idle
        /// It is connecting.
        case connecting(LiveSync.Kind)
        /// It receives all changes from a channel of this kind.
        case live(LiveSync.Kind)
        /// It waits before the next attempt.
        case waiting(failures: Int)
        /// The network may not be used: it waits for the network.
        case offline
    }

    /// What makes up for missed messages.
    private enum Repair: Sendable {
        case feed(ChangeSync)
        case invalidation(LarderCache, @Sendable (inout CacheUpdate) -> Void)
    }

    private struct Running {
        /// Whether `start` was called, and no `stop` since.
        var isWanted = false
        var isAllowed = true
        var task: Task<Void, Never>?
        /// The last task that was cancelled, which may not have ended yet.
        var cancelled: Task<Void, Never>?
    }

    private let repair: Repair
    private let source: LiveSync.Source
    private let core: CacheCore
    private var configuration: CacheConfiguration { core.configuration }
    private let retry: RetryPolicy
    private let running = Mutex(Running())
    private let hub = EventHub<State>()
    private let present = Mutex(State.idle)
    private let returns = EventHub<Void>()
    private let returning: EventRegistration
    /// How often it checks whether the network may be used. A check sends nothing.
    private static let look: Duration = .seconds(30)
    /// The longest wait that a server can ask for.
    private static let askedMaximum: Duration = .seconds(3_600)
    /// How long a channel must work to reset the back-off.
    private static let stableAfter: Duration = .seconds(10)

    /// The back-off between channels.
    public static let standardRetry = RetryPolicy(base: .milliseconds(500), ceiling: .seconds(30))

    /// Creates a live sync of a change feed.
    public convenience init(
        _ sync: ChangeSync,
        _ source: LiveSync.Source,
        in cache: LarderCache,
        retry: RetryPolicy = LiveSync.standardRetry
    ) {
        self.init(.feed(sync), source, cache, retry)
    }

    /// Creates a live sync for a backend without change tokens. Its channels send `Message.update`.
    ///
    /// - Parameters:
    ///   - source: opens the live channels.
    ///   - cache: the cache that is kept up to date.
    ///   - retry: the delays between attempts to connect: `base` and `ceiling`.
    ///   - afterGap: marks as stale what the messages cover. It is applied when a channel has been opened (a long poll: after its first
    ///     reply), the first one too, because messages may have been missed before, and when a message could not be applied. Observed
    ///     values are then fetched again, and others at their next read.
    public convenience init(
        _ source: LiveSync.Source,
        in cache: LarderCache,
        retry: RetryPolicy = LiveSync.standardRetry,
        afterGap: @escaping @Sendable (inout CacheUpdate) -> Void
    ) {
        self.init(.invalidation(cache, afterGap), source, cache, retry)
    }

    private init(_ repair: Repair, _ source: LiveSync.Source, _ cache: LarderCache, _ retry: RetryPolicy) {
        self.repair = repair
        self.source = source
        core = cache.core
        self.retry = retry
        returning = cache.core.returns.add { [returns] _ in returns.post(()) }
    }

    /// Runs in a task of its own until `stop`. Does nothing if it has been started. It waits for the end of a run that was stopped.
    public func start() { change { $0.isWanted = true } }

    /// Ends what `start` has begun. The next start makes up for missed messages.
    public func stop() { change { $0.isWanted = false } }

    /// Whether it may run after `start`; true at first. While it may not, nothing is sent. When it may again, it makes up for missed
    /// messages.
    package func setAllowed(_ isAllowed: Bool) { change { $0.isAllowed = isAllowed } }

    /// Whether a task runs that was not cancelled.
    var isRunning: Bool { running.withLock { $0.task != nil } }

    private func change(_ body: (inout Running) -> Void) {
        running.withLock { running in
            body(&running)
            guard running.isWanted, running.isAllowed else {
                guard let task = running.task.take() else { return }
                task.cancel()
                running.cancelled = task
                return
            }
            guard running.task == nil else { return }
            running.task = Task { [cancelled = running.cancelled.take()] in
                await cancelled?.value
                await self.run()
            }
        }
    }

    /// The current state.
    public var state: State { present.withLock { $0 } }

    /// The state, now and after each change.
    public var states: EventSequence<State> {
        let sequence = hub.subscribe(limit: 16)
        publish(nil)
        return sequence
    }

    /// Publishes the state: a new one, or the current one again.
    private func publish(_ state: State?) {
        present.withLock { present in
            present = state ?? present
            hub.post(present)
        }
    }

    /// Runs until the calling task is cancelled, the cache is closed or the server has ended the channel for good. Returns at once if the
    /// source has no kind of channel.
    public func run() async {
        if !source.kinds.isEmpty { await core.untilClosed { await self.keepConnected() } }
        publish(.idle)
    }

    private func keepConnected() async {
        var failures = 0
        var kind = 0
        let returns = returns.subscribe(limit: 1)
        while !Task.isCancelled {
            // A return of the network from here on is not missed: it ends the next pause.
            _ = returns.takeAvailable()
            guard configuration.mayUseNetwork() else {
                publish(.offline)
                await pause(Self.look, endedBy: returns)
                (failures, kind) = (0, 0)
                continue
            }
            let choice = source.kinds[kind % source.kinds.count]
            var since: MonotonicTime?
            var asked: Duration?
            do {
                publish(.connecting(choice))
                try await follow(choice) { since = configuration.monotonicClock.uptime }
            } catch {
                // Every error, and a regular end by the server, is followed by the same back-off: an immediate
                // reconnection could be rejected again at once, for ever.
                if error.code != .cancelled { configuration.onEvent(.failed(resource: "larder.live", error)) }
                if error.code == .gone, !error.isTokenGone {
                    lost()
                    break
                }
                asked = error.retryAfter.map { min($0, Self.askedMaximum) }
            }
            lost()
            guard !Task.isCancelled else { break }
            if let since, configuration.monotonicClock.uptime - since >= Self.stableAfter { (failures, kind) = (0, 0) }
            failures += 1
            // A kind may never work on this network: some proxies block WebSockets. Every second failure in a row
            // changes the kind, and after a success the best kind is tried first again.
            if failures % 2 == 0 { kind += 1 }
            publish(.waiting(failures: failures))
            let wait = retry.backoffMaximum(attempt: failures) * configuration.random()
            // What the server has asked for holds also when the network returns.
            if let asked, asked > .zero { await sleep(asked) }
            // Another network may allow what the one before blocked.
            if await pause(wait, endedBy: returns) { (failures, kind) = (0, 0) }
        }
    }

    /// Waits for a time, or until the task is cancelled.
    private func sleep(_ wait: Duration) async {
        let clock = configuration.monotonicClock
        do { try await clock.sleep(until: clock.uptime + wait) } catch {
            // The caller looks for the cancellation.
        }
    }

    /// Waits for a time or until the network returns; true in the latter case.
    @discardableResult
    private func pause(_ wait: Duration, endedBy returns: EventSequence<Void>) async -> Bool {
        let due = configuration.monotonicClock.uptime + wait
        return await returns.next(until: due, by: configuration.monotonicClock) != nil
    }

    private func lost() { if case .feed(let sync) = repair { sync.lostLive() } }

    private func follow(_ kind: LiveSync.Kind, _ connected: () -> Void) async throws(LarderError) {
        let channel: any LiveSync.Channel
        var isLive = false
        // From the time at which the channel is open, its messages cover a value that is fetched.
        func begin() async throws(LarderError) {
            if case .invalidation(let cache, let afterGap) = repair {
                try await cache.update(isTolerant: true, afterGap)
            }
            isLive = true
            connected()
            publish(.live(kind))
        }
        switch repair {
        case .feed(let sync):
            // A token must be stored before the channel opens: otherwise a gap before its first change could not be
            // detected.
            if sync.token == nil { try await sync.catchUp() }
            channel = try await open(kind, sync)
        case .invalidation:
            channel = try await source.open(kind, nil)
            // A long poll has not asked for anything yet.
            if kind != .longPoll { try await begin() }
        }
        while let message = try await next(of: channel) {
            try await receive(message)
            if !isLive { try await begin() }
        }
    }

    /// Opens a channel. If the token is no longer valid, the channel starts at the token of a resync.
    private func open(_ kind: LiveSync.Kind, _ sync: ChangeSync) async throws(LarderError) -> any LiveSync.Channel {
        do {
            return try await source.open(kind, sync.token)
        } catch {
            guard error.isTokenGone else { throw error }
            try await sync.catchUp()
            return try await source.open(kind, sync.token)
        }
    }

    private func next(of channel: any LiveSync.Channel) async throws(LarderError) -> LiveSync.Message? {
        do throws(LarderError) { return try await channel.receive() } catch {
            // The next channel starts at the token that this call stores.
            if error.isTokenGone, case .feed(let sync) = repair { try await sync.catchUp() }
            throw error
        }
    }

    private func receive(_ message: LiveSync.Message) async throws(LarderError) {
        switch (message, repair) {
        // Changes before the channel's token are in the feed.
        case (.hello(let token), .feed(let sync)): try await sync.receive(current: token)
        case (.page(let batch, let since), .feed(let sync)): try await sync.receive(batch, since: since)
        case (.update(let body), .feed(let sync)): try await sync.receive(body)
        case (.update(let body), .invalidation(let cache, let afterGap)):
            do throws(LarderError) { try await cache.update(isTolerant: true, body) } catch {
                // The message says that something has changed, and not what.
                configuration.onEvent(.failed(resource: "larder.live", error))
                try await cache.update(isTolerant: true, afterGap)
            }
        case (.hello, .invalidation): break
        case (.page(let batch, _), .invalidation(let cache, _)):
            try await cache.update(isTolerant: true) { update in for change in batch.changes { change.apply(&update) } }
        }
    }
}
