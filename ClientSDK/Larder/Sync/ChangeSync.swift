import LarderTime
import Synchronization

/// Follows a change feed: the token and what it covers commit together, so that nothing is skipped and nothing harmful is done
/// twice, whenever the process dies.
///
/// While the network may not be used nothing is asked for. A synchronisation that failed for want of a network is made up for when
/// it returns (`LarderCache.networkReturned`). Safe from any task; calls are carried out one after another.
public final class ChangeSync: Sendable {
    /// How a synchronisation stands.
    public struct Status: Sendable, Hashable {
        /// How many changes were applied in all, in this process.
        public var applied = 0
        /// How often everything had to be declared stale because the token was not good any more.
        public var resyncs = 0
        /// Whether it has caught up with the feed, as far as it knows.
        public var isCaughtUp = false
        /// What the last attempt failed with; nil after one that did not.
        public var failure: String?
    }

    private let cache: LarderCache
    private let feed: ChangeFeed
    private let gate = SerialGate()
    private let state = Mutex(State())
    private let hub = EventHub<Status>()

    private struct State {
        var status = Status()
        /// The last tokens that were reached: a change that comes twice is known by its own.
        var seen: [String] = []
        var followedSince: WallTime?
        /// Somebody wanted to catch up, and there was no network.
        var isOwed = false
        var returning: EventRegistration?
        var makingUp: Task<Void, Never>?
    }

    private static let seenMaximum = 256

    /// Follows a feed into a cache.
    public init(_ feed: ChangeFeed, into cache: LarderCache) {
        self.feed = feed
        self.cache = cache
        let registration = cache.core.returns.add { [weak self] _ in self?.makeUp() }
        state.withLock { $0.returning = registration }
    }

    deinit { state.withLock { $0.makingUp }?.cancel() }

    /// The network has returned: what failed for want of it is done now.
    private func makeUp() {
        state.withLock { state in
            guard state.isOwed else { return }
            state.isOwed = false
            // What it fails with is in the status, as with any other.
            state.makingUp = Task { [weak self] in do { try await self?.catchUp() } catch {} }
        }
    }

    /// How it stands.
    public var status: Status { state.withLock { $0.status } }

    /// How it stands, now and whenever that changes.
    public var statuses: EventSequence<Status> {
        let sequence = hub.subscribe(limit: 1)
        change { _ in }
        return sequence
    }

    /// The token up to which everything is stored; nil before the first, and where the store cannot be read.
    public var token: String? {
        do { return try stored() } catch { return nil }
    }

    /// The token up to which everything is stored; nil before the first, and where it was dropped with a damaged store. What cannot be
    /// read is not taken for one that is not there: to begin anew would skip what has changed since.
    private func stored() throws(LarderError) -> String? {
        guard let disk = cache.disk else { return state.withLock { $0.seen.last } }
        do {
            return try disk.token(feed.name)
        } catch {
            throw LarderError(error)
        }
    }

    private func change(_ body: (inout Status) -> Void) {
        // Changed and told in one go: otherwise an older status could be the last that is heard.
        let wakeups = state.withLock { state in
            body(&state.status)
            return hub.post(state.status)
        }
        for wakeup in wakeups { wakeup.resume() }
    }

    /// Reads and stores what has changed, until there is no more. Each part is a commit of its own, so that reads are never kept
    /// waiting for long.
    ///
    /// - Returns: how many changes were applied.
    /// - Throws: what the feed failed with; what was stored before stays.
    @discardableResult
    public func catchUp() async throws(LarderError) -> Int {
        do {
            let count = try await gate.run { () async throws(LarderError) in
                guard cache.configuration.mayUseNetwork() else {
                    let text = "The network may not be used at present; «\(feed.name)» is read when it may."
                    throw LarderError(TransportError(.unreachable, text))
                }
                return try await readAll()
            }
            state.withLock { $0.isOwed = false }
            change { $0.failure = nil }
            return count
        } catch {
            if error.code == .offline || error.code == .timedOut { state.withLock { $0.isOwed = true } }
            change { status in
                status.failure = error.description
                status.isCaughtUp = false
            }
            throw error
        }
    }

    private func readAll() async throws(LarderError) -> Int {
        var count = 0
        while true {
            guard !Task.isCancelled else { throw LarderError(CancellationError()) }
            guard let token = try stored() else {
                // There was one: the store was replaced, and not all that the token covers was saved.
                if !state.withLock({ $0.seen.isEmpty }) || followedSince != nil {
                    try await resync()
                    break
                }
                try await begin()
                continue
            }
            let batch: ChangeBatch
            do {
                batch = try await feed.read(token)
            } catch {
                guard error.isTokenGone else { throw error }
                try await resync()
                // The token is that of now: there is nothing behind it yet.
                break
            }
            try store(batch.changes, token: batch.nextToken)
            count += batch.changes.count
            // A page that leads back to itself would be read for ever.
            guard batch.hasMore, batch.nextToken != token else { break }
            await Task.yield()
        }
        vouch()
        return count
    }

    /// The token of now, before anything is read otherwise: what changes after it is told.
    private func begin() async throws(LarderError) {
        let since = cache.core.now().wall
        let token = try await feed.present()
        try cache.update { update in
            update.setToken(token, for: feed.name)
            update.setMetadata(Array("\(since.nanosecondsSinceEpoch)".utf8), for: sinceKey)
        }
        state.withLock { state in
            state.seen = [token]
            state.followedSince = since
        }
    }

    /// The token is lost: everything is stale, and stays on the screen until it comes anew. What is pending here is not touched.
    private func resync() async throws(LarderError) {
        let since = cache.core.now().wall
        let token = try await feed.present()
        let invalidateAll = feed.invalidateAll
        try cache.update { update in
            invalidateAll(&update)
            update.setToken(token, for: feed.name)
            update.setMetadata(Array("\(since.nanosecondsSinceEpoch)".utf8), for: sinceKey)
        }
        state.withLock { state in
            state.seen = [token]
            state.followedSince = since
        }
        change { $0.resyncs += 1 }
    }

    private var sinceKey: String { "larder.sync " + feed.name }

    private func store(_ changes: [RemoteChange], token: String) throws(LarderError) {
        let name = feed.name
        try cache.update { update in
            for change in changes { change.apply(&update) }
            update.setToken(token, for: name)
        }
        note(token)
        if !changes.isEmpty { change { $0.applied += changes.count } }
    }

    private func note(_ token: String) {
        state.withLock { state in
            state.seen.append(token)
            if state.seen.count > Self.seenMaximum { state.seen.removeFirst(Self.seenMaximum / 2) }
        }
    }

    /// The feed has no more: it vouches for what it covers.
    private func vouch() {
        if let since = followedSince { cache.noteCaughtUp(feed.name, followedSince: since) }
        change { $0.isCaughtUp = true }
    }

    private var followedSince: WallTime? {
        if let known = state.withLock({ $0.followedSince }) { return known }
        do {
            guard let bytes = try cache.disk?.metadata(sinceKey),
                let time = Int64(String(decoding: bytes, as: UTF8.self))
            else { return nil }
            let since = WallTime(nanosecondsSinceEpoch: time)
            state.withLock { $0.followedSince = since }
            return since
        } catch {
            // Nothing is vouched for then: what is stored is asked about as if no feed were followed.
            return nil
        }
    }

    // MARK: Live

    /// Takes a change from a live channel: stores it where it follows on what is stored, leaves it where it is stored already, and
    /// otherwise reads what was missed.
    public func receive(_ live: LiveChange) async throws(LarderError) {
        try await gate.run { () async throws(LarderError) in
            if state.withLock({ $0.seen.contains(live.token) }) { return }
            if live.previousToken == (try stored()) {
                try store([live.change], token: live.token)
                return vouch()
            }
            _ = try await readAll()
        }
    }

    /// Takes a page of the feed from a live channel, as `receive(_:)` does a change.
    func receive(_ batch: ChangeBatch, since token: String) async throws(LarderError) {
        try await gate.run { () async throws(LarderError) in
            guard token == (try stored()) else {
                // Somebody has read on meanwhile: what the page has may be older than what is stored.
                if state.withLock({ $0.seen.contains(batch.nextToken) }), !batch.hasMore { return }
                _ = try await readAll()
                return
            }
            try store(batch.changes, token: batch.nextToken)
            if batch.hasMore, batch.nextToken != token { _ = try await readAll() } else { vouch() }
        }
    }

    /// The live channel has ended: until it is back, or the feed was read, nothing is vouched for.
    func lostLive() { change { $0.isCaughtUp = false } }
}
