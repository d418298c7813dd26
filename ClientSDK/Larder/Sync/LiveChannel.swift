import LarderTime
import Synchronization

/// How changes are told as they happen.
public enum LiveKind: String, Sendable, Hashable, CaseIterable {
    /// A WebSocket.
    case webSocket
    /// Server-sent events.
    case eventStream
    /// Requests that wait for a change.
    case longPoll
}

/// What a live channel gives.
public enum LiveMessage: Sendable {
    /// It tells everything from that token on.
    case hello(token: String)
    /// A change.
    case change(LiveChange)
    /// A page of the change feed, and the token that it follows on.
    case page(ChangeBatch, since: String)
}

/// An open live channel. Messages go to one reader; when nobody holds it any more it is closed.
public protocol LiveChannel: Sendable {
    /// The next message; nil when it has ended in order.
    func receive() async throws(LarderError) -> LiveMessage?
}

/// Opens live channels.
public struct LiveSource: Sendable {
    /// The kinds that there are, the best first. Without any there is no live channel: `LiveSync.run` returns at once.
    public let kinds: [LiveKind]
    /// Opens a channel of a kind.
    public let open: @Sendable (LiveKind, _ since: String?) async throws(LarderError) -> any LiveChannel

    /// A source of channels.
    public init(
        _ kinds: [LiveKind],
        open: @escaping @Sendable (LiveKind, _ since: String?) async throws(LarderError) -> any LiveChannel
    ) {
        self.kinds = kinds
        self.open = open
    }
}

/// Keeps a cache up to date with a change feed and a live channel: reconnects, changes the kind of channel where one does not
/// work, and reads from the feed what was missed in between.
///
/// While the network may not be used nothing is tried. When it returns (`LarderCache.networkReturned`) it goes on at once, however
/// long it would have paused. It adds no wait of its own to that: `NetworkMonitor.resumes` spreads those who return together.
/// Safe from any task.
public final class LiveSync: Sendable {
    /// How it stands.
    public enum State: Sendable, Hashable {
        /// Nobody has started it.
        case idle
        /// It tries to connect.
        case connecting(LiveKind)
        /// It is told of everything by a channel of that kind.
        case live(LiveKind)
        /// It waits before it tries again.
        case waiting(failures: Int)
        /// The network may not be used at present: it waits for its return.
        case offline
    }

    private let sync: ChangeSync
    private let source: LiveSource
    private let configuration: CacheConfiguration
    private let retry: RetryPolicy
    private let hub = EventHub<State>()
    private let present = Mutex(State.idle)
    private let returns = EventHub<Void>()
    private let returning: EventRegistration
    /// Where nobody says that the network is back, it is looked at this often. To look sends nothing.
    private static let look: Duration = .seconds(30)
    /// How long a channel must have told of everything to count as one that works.
    private static let settled: Duration = .seconds(10)

    /// Follows a feed live.
    public init(
        _ sync: ChangeSync,
        _ source: LiveSource,
        in cache: LarderCache,
        retry: RetryPolicy = RetryPolicy(base: .milliseconds(500), ceiling: .seconds(30))
    ) {
        self.sync = sync
        self.source = source
        configuration = cache.configuration
        self.retry = retry
        returning = cache.core.returns.add { [returns] _ in for wakeup in returns.post(()) { wakeup.resume() } }
    }

    /// How it stands.
    public var state: State { present.withLock { $0 } }

    /// How it stands, now and whenever that changes.
    public var states: EventSequence<State> {
        let sequence = hub.subscribe(limit: 16)
        become(nil)
        return sequence
    }

    /// Tells the state: a new one, or again the one that it is.
    private func become(_ state: State?) {
        let wakeups = present.withLock { present in
            present = state ?? present
            return hub.post(present)
        }
        for wakeup in wakeups { wakeup.resume() }
    }

    /// Follows until the calling task is cancelled; returns at once where the source has no kind of channel.
    public func run() async {
        guard !source.kinds.isEmpty else { return become(.idle) }
        var failures = 0
        var kind = 0
        let returns = returns.subscribe(limit: 1)
        while !Task.isCancelled {
            // A return that comes from here on is not missed: it ends the pause that is to come.
            _ = returns.takeAvailable()
            guard configuration.mayUseNetwork() else {
                become(.offline)
                await pause(Self.look, endedBy: returns)
                (failures, kind) = (0, 0)
                continue
            }
            let choice = source.kinds[kind % source.kinds.count]
            var since: MonotonicTime?
            do {
                become(.connecting(choice))
                try await follow(choice) { since = configuration.monotonicClock.uptime }
            } catch {
                // What is done about it is the same whatever it failed with, and the same as where the server has ended it in order:
                // who came back at once would be sent away again at once, for ever.
            }
            sync.lostLive()
            guard !Task.isCancelled else { break }
            if let since, configuration.monotonicClock.uptime - since >= Self.settled { (failures, kind) = (0, 0) }
            failures += 1
            // One that does not work here may work never: behind some proxies no WebSocket does. Each second failure in a row
            // changes the kind, and after a success the best is tried first again.
            if failures % 2 == 0 { kind += 1 }
            become(.waiting(failures: failures))
            let wait = retry.backoffMaximum(attempt: failures) * configuration.random()
            // Another network may let through what the one before did not.
            if await pause(wait, endedBy: returns) { (failures, kind) = (0, 0) }
        }
        become(.idle)
    }

    /// Waits for a time, or until the network returns: then true.
    @discardableResult
    private func pause(_ wait: Duration, endedBy returns: EventSequence<Void>) async -> Bool {
        let due = configuration.monotonicClock.uptime + wait
        return await returns.next(until: due, by: configuration.sleeper) != nil
    }

    /// Opens a channel. Where the history of the token is gone, the channel follows on the token that a resync brings.
    private func open(_ kind: LiveKind) async throws(LarderError) -> any LiveChannel {
        do {
            return try await source.open(kind, sync.token)
        } catch {
            guard error.isTokenGone else { throw error }
            try await sync.catchUp()
            return try await source.open(kind, sync.token)
        }
    }

    private func follow(_ kind: LiveKind, _ connected: () -> Void) async throws(LarderError) {
        // A token there must be before the channel: otherwise nobody would know what it follows on.
        if sync.token == nil { try await sync.catchUp() }
        let channel = try await open(kind)
        var isLive = false
        while true {
            let message: LiveMessage?
            do throws(LarderError) { message = try await channel.receive() } catch {
                // The next channel follows on the token that this gets.
                if error.isTokenGone { try await sync.catchUp() }
                throw error
            }
            guard let message else { return }
            switch message {
            case .hello(let token):
                // What happened before the channel tells is in the feed.
                if token != sync.token { try await sync.catchUp() }
            case .change(let change): try await sync.receive(change)
            case .page(let batch, let since): try await sync.receive(batch, since: since)
            }
            guard !isLive else { continue }
            isLive = true
            connected()
            become(.live(kind))
        }
    }
}
