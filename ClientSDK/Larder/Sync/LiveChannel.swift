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
}

/// An open live channel. Messages go to one reader; when nobody holds it any more it is closed.
public protocol LiveChannel: Sendable {
    /// The next message; nil when it has ended in order.
    func receive() async throws(LarderError) -> LiveMessage?
}

/// Opens live channels.
public struct LiveSource: Sendable {
    /// The kinds that there are, the best first.
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
    }

    private let sync: ChangeSync
    private let source: LiveSource
    private let configuration: CacheConfiguration
    private let retry: RetryPolicy
    private let hub = EventHub<State>()
    private let present = Mutex(State.idle)

    /// Follows a feed live.
    public init(
        _ sync: ChangeSync,
        _ source: LiveSource,
        in cache: LarderCache,
        retry: RetryPolicy = RetryPolicy(base: .milliseconds(500), ceiling: .seconds(30))
    ) {
        self.sync = sync
        self.source = source
        configuration = cache.core.configuration
        self.retry = retry
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

    /// Follows until the calling task is cancelled.
    public func run() async {
        var failures = 0
        var kind = 0
        while !Task.isCancelled {
            let choice = source.kinds[kind % max(1, source.kinds.count)]
            do {
                become(.connecting(choice))
                try await follow(choice) { failures = 0 }
                failures = 0
            } catch {
                if error.code == .cancelled, Task.isCancelled { break }
                failures += 1
                // One that does not work here may work never: behind some proxies no WebSocket does. Each second failure in a row
                // changes the kind, and after a success the best is tried first again.
                if failures % 2 == 0 { kind += 1 } else if failures == 1 { kind = 0 }
            }
            sync.lostLive()
            guard !Task.isCancelled else { break }
            if failures > 0 {
                become(.waiting(failures: failures))
                await pause(retry.backoffMaximum(attempt: failures) * configuration.random())
            }
        }
        become(.idle)
    }

    private func pause(_ wait: Duration) async {
        let due = configuration.monotonicClock.uptime + wait
        do { try await configuration.sleeper.sleep(until: due) } catch {
            // Nobody waits any more: the loop ends.
            return
        }
    }

    private func follow(_ kind: LiveKind, _ connected: () -> Void) async throws(LarderError) {
        // A token there must be before the channel: otherwise nobody would know what it follows on.
        if sync.token == nil { try await sync.catchUp() }
        let channel = try await source.open(kind, sync.token)
        var isLive = false
        while let message = try await channel.receive() {
            switch message {
            case .hello(let token):
                // What happened before the channel tells is in the feed.
                if token != sync.token { try await sync.catchUp() }
            case .change(let change): try await sync.receive(change)
            }
            guard !isLive else { continue }
            isLive = true
            connected()
            become(.live(kind))
        }
    }
}
