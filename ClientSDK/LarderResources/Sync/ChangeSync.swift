public import LarderEvents
import LarderStorage
import LarderTime
import Synchronization

/// Follows a change feed. A token commits together with the last of the changes that it covers, and after all others, so that no change
/// is skipped when the process dies.
///
/// Nothing is requested while the network may not be used. A synchronisation that failed without a network is repeated when it returns
/// (`LarderCache.networkReturned`). Safe from any task; calls run one after another.
public final class ChangeSync: Sendable {
    /// The state of a synchronisation.
    public struct Status: Sendable, Hashable {
        /// The number of changes that were applied in this process.
        public var applied = 0
        /// How often everything was invalidated because the token was no longer valid.
        public var resyncs = 0
        /// Whether it has caught up with the feed.
        public var isCaughtUp = false
        /// The error of the last attempt; nil if it succeeded.
        public var failure: String?
    }

    private let cache: LarderCache
    private let feed: ChangeFeed
    private let gate = SerialGate()
    private let state = Mutex(State())
    private let hub = EventHub<Status>()

    private struct State {
        var status = Status()
        /// The last tokens, to recognise repeated changes.
        var seen: [String] = []
        var followedSince: WallTime?
        /// Whether an attempt to catch up found no network.
        var isRetryPending = false
        var returning: EventRegistration?
        var makingUp: Task<Void, Never>?
    }

    private static let seenMaximum = 256
    /// How many changes are stored in one commit.
    public static let pieceMaximum = 25

    /// Follows a feed into a cache.
    public init(_ feed: ChangeFeed, into cache: LarderCache) {
        self.feed = feed
        self.cache = cache
        let registration = cache.core.returns.add { [weak self] _ in self?.retryAfterReturn() }
        state.withLock { $0.returning = registration }
    }

    deinit { state.withLock { $0.makingUp }?.cancel() }

    /// Repeats what failed without a network.
    private func retryAfterReturn() {
        state.withLock { state in
            if state.isRetryPending { retry(&state) }
        }
    }

    private func retry(_ state: inout State) {
        state.isRetryPending = false
        state.makingUp = Task { [weak self] in
            do { try await self?.catchUp() } catch {
                // `catchUp` has put the error into the status.
            }
        }
    }

    /// The current state.
    public var status: Status { state.withLock { $0.status } }

    /// The state, now and after each change.
    public var statuses: EventSequence<Status> {
        let sequence = hub.subscribe(limit: 1)
        change { _ in }
        return sequence
    }

    /// The token up to which changes are stored; nil before the first one, and if the store cannot be read.
    public var token: String? {
        do { return try readToken() } catch { return nil }
    }

    /// The token up to which changes are stored; nil before the first one, and if it was lost with a damaged store. A read error is not
    /// treated as a missing token, because starting again would skip changes.
    private func stored() async throws(LarderError) -> String? {
        try await cache.core.reading { () throws(LarderError) in try self.readToken() }
    }

    private func readToken() throws(LarderError) -> String? {
        guard let disk = cache.disk else { return state.withLock { $0.seen.last } }
        do {
            return try disk.token(feed.name)
        } catch {
            throw LarderError(error)
        }
    }

    private func change(_ body: (inout Status) -> Void) {
        // Changed and posted under one lock: otherwise an older status could be the last that observers get.
        state.withLock { state in
            body(&state.status)
            hub.post(state.status)
        }
    }

    /// Reads and stores changes until there are no more. Each page is stored in small commits, so that other changes wait only briefly.
    ///
    /// - Returns: the number of changes that were applied.
    /// - Throws: the error of the feed; pages that were stored stay.
    @discardableResult
    public func catchUp() async throws(LarderError) -> Int {
        let returns = cache.core.returnCount.load(ordering: .relaxed)
        do {
            let count = try await gate.run { () async throws(LarderError) in try await readAllIfAllowed() }
            state.withLock { $0.isRetryPending = false }
            change { $0.failure = nil }
            return count
        } catch {
            change { status in
                status.failure = error.description
                status.isCaughtUp = false
            }
            if [.offline, .timedOut, .untrusted].contains(error.code) {
                state.withLock { state in
                    state.isRetryPending = true
                    // It was sent over a connection from before the return.
                    if cache.core.returnCount.load(ordering: .relaxed) != returns { retry(&state) }
                }
            }
            throw error
        }
    }

    private func readAllIfAllowed() async throws(LarderError) -> Int {
        guard !cache.isClosed else { throw CacheCore.isClosedError }
        guard cache.configuration.mayUseNetwork() else {
            let text = "The network may not be used at present; feed \"\(feed.name)\" is read when it may."
            throw LarderError(.offline, text).marked(isUnsent: true)
        }
        return try await RequestReason(feed.name, cause: "the change feed may have changes").around {
            () async throws(LarderError) in try await readAll()
        }
    }

    private func readAll() async throws(LarderError) -> Int {
        var count = 0
        /// When the request for the last page began, or a little earlier.
        var asked: Moment?
        while true {
            let moment = cache.core.now()
            asked = moment
            guard !Task.isCancelled else { throw LarderError(CancellationError()) }
            guard let token = try await stored() else {
                // There was a token before: the store was replaced, and values that the token covers may be missing.
                let isAgain = !state.withLock({ $0.seen.isEmpty }) || followedSince != nil
                let batch = try await begin(isAgain: isAgain)
                count += batch.changes.count
                guard batch.hasMore || !isAgain && batch.changes.isEmpty else { break }
                continue
            }
            let page = PulledPage(asked: cache.core.stamps.next(), moment: moment)
            let batch: ChangeFeed.Batch
            do {
                batch = try await feed.read(token)
            } catch {
                guard error.isTokenGone else { throw error }
                let batch = try await begin(isAgain: true)
                count += batch.changes.count
                // The new token is the current one: no change follows it yet.
                guard batch.hasMore else { break }
                continue
            }
            try await store(batch.changes, of: page, token: batch.nextToken)
            count += batch.changes.count
            // A page that leads back to itself would be read for ever.
            guard batch.hasMore, batch.nextToken != token else { break }
            await Task.yield()
        }
        markCaughtUp(at: asked)
        return count
    }

    /// Begins the feed. Values that were requested before its token arrived are not covered by the feed, and expire by time.
    ///
    /// - Parameter isAgain: the token was lost. Everything is invalidated and stays visible until it is fetched again; pending operations
    ///   stay.
    /// - Returns: the page that begins the feed.
    private func begin(isAgain: Bool) async throws(LarderError) -> ChangeFeed.Batch {
        let asked = cache.core.stamps.next()
        let batch = try await feed.present()
        // What was requested before the token arrived may have been read before changes that precede the token. The page came with the token:
        // its values count from then on, so that the feed covers them.
        let now = cache.core.now()
        let since = now.wall
        let page = PulledPage(asked: asked, moment: now)
        let first = isAgain ? feed.invalidateAll : nil
        try await store(batch.changes, of: page, token: batch.nextToken, since: since, after: first)
        state.withLock { state in
            state.seen = [batch.nextToken]
            state.followedSince = since
        }
        if isAgain { change { $0.resyncs += 1 } }
        return batch
    }

    private var sinceKey: String { "larder.sync " + feed.name }

    /// Stores a page in small commits, so that other changes wait only briefly. The token is stored with the last of them: it covers
    /// nothing that is not stored, and after a death the page is read again.
    ///
    /// - Parameters:
    ///   - page: nil: it was pushed.
    ///   - since: the time from which on the feed covers values; nil: it stays.
    ///   - first: changes that precede those of the page.
    private func store(
        _ changes: [ChangeFeed.Change],
        of page: PulledPage?,
        token: String,
        since: WallTime? = nil,
        after first: (@Sendable (inout CacheUpdate) -> Void)? = nil
    ) async throws(LarderError) {
        var arrived = page
        arrived?.arrived = cache.core.stamps.next()
        try await cache.core.changing { [page = arrived] () throws(LarderError) in
            do throws(LarderError) { try self.commit(changes, page, token, since, first) } catch {
                throw try self.changeMemory(after: error) { update in
                    first?(&update)
                    update.apply(changes[...], of: page)
                }
            }
        }
        note(token)
        if !changes.isEmpty { change { $0.applied += changes.count } }
    }

    private func commit(
        _ changes: [ChangeFeed.Change],
        _ page: PulledPage?,
        _ token: String,
        _ since: WallTime?,
        _ first: ((inout CacheUpdate) -> Void)?
    ) throws(LarderError) {
        var rest = changes[...]
        if let first, rest.count > Self.pieceMaximum {
            try cache.updateBlocking { update in
                update.page = page
                first(&update)
            }
        }
        while rest.count > Self.pieceMaximum {
            let piece = rest.prefix(Self.pieceMaximum)
            try cache.updateBlocking { update in update.apply(piece, of: page) }
            rest = rest.dropFirst(Self.pieceMaximum)
        }
        try cache.updateBlocking { update in
            if changes.count == rest.count { first?(&update) }
            update.apply(rest, of: page)
            update.setToken(token, for: feed.name)
            if let since { update.setMetadata(Array("\(since.nanosecondsSinceEpoch)".utf8), for: sinceKey) }
        }
    }

    /// Changes memory, because the disk takes nothing. The token stays as it is, so that the feed repeats the changes.
    ///
    /// - Returns: the error of the disk, to be thrown.
    private func changeMemory(
        after error: LarderError,
        _ changes: (inout CacheUpdate) -> Void
    ) throws(LarderError) -> LarderError {
        if error.code == .storage { try cache.updateBlocking(isTolerant: true, changes) }
        return error
    }

    private func note(_ token: String) {
        state.withLock { state in
            state.seen.append(token)
            if state.seen.count > Self.seenMaximum { state.seen.removeFirst(Self.seenMaximum / 2) }
        }
    }

    /// Notes that the feed has no more changes.
    ///
    /// - Parameter moment: when the request began whose reply says so; nil: it was pushed.
    private func markCaughtUp(at moment: Moment? = nil) {
        if let since = followedSince {
            cache.noteCaughtUp(feed.name, followedSince: since, at: moment ?? cache.core.now())
        }
        change { ($0.isCaughtUp, $0.failure) = (true, nil) }
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
            // Without this time the feed covers nothing: values are judged as if no feed were followed.
            return nil
        }
    }

    // MARK: Live

    /// Receives the feed's present token from a live channel, and reads the changes up to it.
    func receive(current token: String) async throws(LarderError) {
        let isStored = try await gate.run { () async throws(LarderError) in
            guard try await stored() == token else { return false }
            markCaughtUp()
            return true
        }
        if !isStored { try await catchUp() }
    }

    /// Receives changes from a live channel: stores them if they follow the stored token, ignores them if they are stored already, and
    /// otherwise reads the missed changes.
    func receive(_ batch: ChangeFeed.Batch, since token: String) async throws(LarderError) {
        try await gate.run { () async throws(LarderError) in
            let stored = try await stored()
            guard token == stored else {
                // Another call has read further meanwhile: the page may be older than the stored values.
                if state.withLock({ $0.seen.contains(batch.nextToken) }), !batch.hasMore { return }
                _ = try await readAll()
                return
            }
            try await store(batch.changes, of: nil, token: batch.nextToken)
            if batch.hasMore, batch.nextToken != token { _ = try await readAll() } else { markCaughtUp() }
        }
    }

    /// Applies a change that has no token. The feed repeats it.
    func receive(_ body: @Sendable (inout CacheUpdate) throws -> Void) async throws(LarderError) {
        try await gate.run { () async throws(LarderError) in
            try await cache.update(isTolerant: true, body)
        }
    }

    /// Whether the changes up to a token are stored, as far as this process knows: a push notification that names it brings nothing new.
    public func hasApplied(_ token: String) -> Bool {
        if state.withLock({ $0.seen.contains(token) }) { return true }
        return self.token == token
    }

    /// Reports in the status that the sync has not caught up, after the live channel has ended.
    func lostLive() { change { $0.isCaughtUp = false } }
}

extension CacheUpdate {
    /// - Parameter page: nil: the changes were pushed.
    fileprivate mutating func apply(_ changes: ArraySlice<ChangeFeed.Change>, of page: PulledPage?) {
        self.page = page
        toleratesValues = true
        for change in changes { change.apply(&self) }
    }
}
