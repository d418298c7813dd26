import Foundation
public import LarderEvents
import LarderHTTP
public import LarderResources
import LarderStorage
import LarderTime
public import LarderTransport
import Synchronization

/// Stores the bearer tokens of one account (RFC 6750), adds them to requests, and renews them. All requests that need new tokens share
/// one renewal.
///
/// The tokens are in a `SecretStore`, by default a file that only its owner can read, and never in a log. Several processes may share
/// an account: one of them renews at a time, and the others use the tokens that it has stored. New tokens are stored before they are used.
/// `Endpoints.endsSession` decides which failures of a renewal end the session; after any other failure the tokens are kept, and the
/// next request that needs them tries again. Safe from any task.
public final class BearerSession: HTTPSource.Authorizer {
    /// The state of a session.
    public enum State: Sendable, Hashable {
        /// There are no tokens. Public resources and stored values can be read.
        case signedOut
        /// The user with this ID is signed in.
        case signedIn(userID: String)
        /// The user with this ID must sign in again. Stored values can be read.
        case expired(userID: String)
    }

    private struct Current {
        var tokens: Tokens?
        /// A grant that could not be stored yet, and the tokens that it replaces.
        var unstored: (tokens: Tokens, old: Tokens)?
        var renewal: SingleFlight<Void, Void, LarderError>?
    }

    /// The name of the session in events.
    private static let key = "larder.session"
    /// The delays between checks whether another process has finished its renewal.
    private static let lockRetry = RetryPolicy(base: .milliseconds(50), ceiling: .milliseconds(500))
    /// The maximum time to wait for another process.
    private static let lockWaitMaximum: Duration = .seconds(60)
    private let cache: LarderCache
    /// Held by the process that renews the tokens; nil if no other process can access the store.
    private let renewalLock: FileProcessLock?
    /// Held while tokens are compared with the stored ones and replaced.
    private let storingLock: FileProcessLock?
    private let storing = SerialGate()
    /// The place of the tokens; nil if they are only in memory.
    private let secrets: (any SecretStore)?
    private let source: HTTPSource
    private let endpoints: Endpoints
    private let clock: any WallClock
    private let current: Mutex<Current>
    private let hub = EventHub<State>()

    /// Reads the stored tokens.
    ///
    /// - Parameters:
    ///   - cache: the account's cache.
    ///   - source: sends sign-in, renewal and revocation. It must have no authorizer. Sign-in and revocation are requests of a person
    ///     (`TransportRequest.isUserInitiated`), and so is a renewal that a person's refresh needs.
    ///   - endpoints: the endpoints for renewal and revocation.
    ///   - secrets: the place of the tokens; nil: a file beside the outbox, or memory if the cache has none.
    /// - Throws: `.storage` if the tokens cannot be read.
    public init(
        _ cache: LarderCache,
        _ source: HTTPSource,
        _ endpoints: Endpoints,
        secrets: (any SecretStore)? = nil
    ) async throws(LarderError) {
        self.cache = cache
        self.source = source
        self.endpoints = endpoints
        self.secrets = secrets ?? cache.outboxDisk.map { FileSecretStore(disk: $0) }
        clock = cache.configuration.wallClock
        let directory = cache.outboxDisk?.configuration.directory
        renewalLock = directory.map { FileProcessLock(path: $0 + "/store.session") }
        storingLock = directory.map { FileProcessLock(path: $0 + "/store.session-change") }
        current = Mutex(Current(tokens: try await Self.stored(in: self.secrets, reportedTo: cache)))
    }

    public var state: State { current.withLock { Self.state($0.tokens) } }

    /// The current state, and every change of it.
    public var states: EventSequence<State> {
        let sequence = hub.subscribe(limit: 1)
        announce()
        return sequence
    }

    private static func state(_ tokens: Tokens?) -> State {
        guard let tokens else { return .signedOut }
        return tokens.isExpired ? .expired(userID: tokens.userID) : .signedIn(userID: tokens.userID)
    }

    /// The ID of the user who is signed in or whose session has expired.
    public var userID: String? { current.withLock { $0.tokens?.userID } }

    // MARK: Signing in

    /// Signs in: stores the granted tokens, uses them from then on, and lets the cache send what has waited for a session.
    ///
    /// Stored values stay as they are, also those that were read without a session: see the `account` of `APIClient.init`.
    ///
    /// - Parameter request: sends the credentials, without authorization.
    /// - Throws: the error of the request; `.storage`, `.encoding` or `.closed` if the tokens could not be stored.
    public func signIn(_ request: (HTTPSource) async throws(LarderError) -> Grant) async throws(LarderError) {
        let asked = clock.now
        let reason = RequestReason("session", cause: "a sign-in", isUserInitiated: true)
        let grant = try await reason.around { () async throws(LarderError) in try await request(source) }
        try await keep(Self.tokens(grant, asked))
        cache.networkReturned()
    }

    /// Uses a token that cannot be renewed, such as a personal access token, as after `signIn`.
    public func use(token: String, userID: String) async throws(LarderError) {
        try await keep(Tokens(access: token, refresh: "", userID: userID, expiresAt: .max))
        cache.networkReturned()
    }

    /// Revokes the tokens at the server if it can be reached, and deletes them from memory and from their place.
    ///
    /// A failed revocation is reported as `CacheEvent.failed` and ends nothing: the tokens expire on the server. A failed deletion is
    /// reported as `CacheEvent.storageFailed`. It is carried out also if the calling task is cancelled.
    public func signOut() async {
        if let tokens = current.withLock({ $0.tokens }) {
            let reason = RequestReason("session", cause: "a sign-out", isUserInitiated: true)
            do throws(LarderError) {
                try await reason.around { () async throws(LarderError) in
                    if mayUseNetwork() { try await endpoints.revoke(source, tokens.access) }
                }
            } catch {
                cache.configuration.onEvent(.failed(resource: Self.key, error))
            }
        }
        current.withLock { current in
            current.tokens = nil
            current.unstored = nil
        }
        announce()
        // In a task of its own, so that a cancelled caller does not leave the tokens behind.
        await Task { await deleteStored() }.value
    }

    private func deleteStored() async {
        do throws(LarderError) {
            // After a change that is being stored. A sign-in since then has put its tokens in place.
            try await storing.run { () async throws(LarderError) in
                guard current.withLock({ $0.tokens == nil }) else { return }
                try await secrets?.delete(Self.secretName)
            }
        } catch {
            cache.configuration.onEvent(.storageFailed(error))
        }
    }

    private func mayUseNetwork() -> Bool { cache.configuration.mayUseNetwork() }

    private static func tokens(_ grant: Grant, _ asked: WallTime) -> Tokens {
        Tokens(
            access: grant.accessToken,
            refresh: grant.refreshToken,
            userID: grant.userID,
            expiresAt: (asked + grant.lifetime).nanosecondsSinceEpoch
        )
    }

    /// Stores tokens and uses them from then on.
    ///
    /// - Parameter old: the tokens to be replaced; if other tokens are in use or stored, nothing happens. Nil: replaces any.
    /// - Returns: whether the new tokens are in use.
    /// - Throws: `.storage`, `.encoding`, `.closed`, `.cancelled`. Then nothing has changed.
    @discardableResult
    private func keep(_ tokens: Tokens, inPlaceOf old: Tokens? = nil) async throws(LarderError) -> Bool {
        let bytes: [UInt8]
        do { bytes = Array(try JSONEncoder().encode(tokens)) } catch {
            throw LarderError(.encoding, "The tokens of the session could not be encoded: \(error)", cause: error)
        }
        let isUsed = try await storing.run { () async throws(LarderError) in
            guard try await store(bytes, inPlaceOf: old) else { return false }
            return current.withLock { current in
                // A sign-out must not be undone: it deletes what was stored after this.
                guard old == nil || current.tokens == old else { return false }
                current.tokens = tokens
                current.unstored = nil
                return true
            }
        }
        if isUsed { announce() }
        return isUsed
    }

    /// Stores tokens; false if other tokens were stored first.
    private func store(_ bytes: [UInt8], inPlaceOf old: Tokens?) async throws(LarderError) -> Bool {
        guard let secrets else { return true }
        guard !cache.isClosed else { throw LarderError(.closed, "The cache was closed or erased.") }
        try await acquire(storingLock) { false }
        defer { storingLock?.release() }
        if let old {
            // A rebuilt place contains no tokens.
            if let stored = try await Self.stored(in: secrets, reportedTo: cache), stored != old { return false }
            guard current.withLock({ $0.tokens == old }) else { return false }
        }
        try await secrets.save(bytes, as: Self.secretName)
        return true
    }

    /// Uses the tokens that another process has stored in place of `tokens`.
    ///
    /// - Returns: false if no other tokens are stored.
    private func adoptStored(inPlaceOf tokens: Tokens) async throws(LarderError) -> Bool {
        guard let stored = try await Self.stored(in: secrets, reportedTo: cache), stored != tokens else { return false }
        let isUsed = current.withLock { current in
            guard current.tokens == tokens else { return false }
            current.tokens = stored
            current.unstored = nil
            return true
        }
        if isUsed { announce() }
        return true
    }

    /// Posts the state under the lock, so that observers receive states in order.
    private func announce() {
        let wakeups = current.withLock { hub.post(Self.state($0.tokens)) }
        for wakeup in wakeups { wakeup.resume() }
    }

    // MARK: Authorising

    /// Adds the access token to a request, and renews it before if it has expired.
    ///
    /// - Throws: `.unauthorized` for a write after the session has ended: the server would reject it again. A read is sent, because its
    ///   resource may be public.
    public func authorize(_ request: inout TransportRequest) async throws(LarderError) {
        guard var tokens = current.withLock({ $0.tokens }) else { return }
        if tokens.isExpired, !request.method.isSafe {
            // Another process may have signed in.
            guard try await adoptStored(inPlaceOf: tokens), let new = current.withLock({ $0.tokens }), !new.isExpired
            else {
                throw LarderError(
                    .unauthorized,
                    "The session has ended; \(HTTPURL.redacted(request.url)) was not requested. Sign in again."
                )
            }
            tokens = new
        }
        var access = tokens.access
        // The local clock is only a hint; the server decides.
        if !tokens.isExpired, clock.now.nanosecondsSinceEpoch >= tokens.expiresAt, !tokens.refresh.isEmpty {
            try await renewed()
            access = current.withLock { $0.tokens?.access } ?? access
        }
        request.fields.set(.authorization, "Bearer \(access)")
    }

    /// Renews the tokens, unless they were renewed after the request was authorized, here or in another process.
    public func renew(after request: TransportRequest) async throws(LarderError) -> Bool {
        guard let tokens = current.withLock({ $0.tokens }) else { return false }
        guard request.fields[.authorization] == "Bearer \(tokens.access)" else { return !tokens.isExpired }
        // Neither an expired session nor a token without refresh token can be renewed, but another process may have signed in.
        guard !tokens.refresh.isEmpty, !tokens.isExpired else {
            guard try await adoptStored(inPlaceOf: tokens) else { return false }
            return current.withLock { $0.tokens.map { !$0.isExpired } ?? false }
        }
        try await renewed()
        return true
    }

    /// A valid access token, for protocols without header fields; nil if no user is signed in.
    public func accessToken() async throws(LarderError) -> String? {
        var request = TransportRequest(url: "")
        try await authorize(&request)
        return request.fields[.authorization].map { String($0.dropFirst("Bearer ".count)) }
    }

    private func renewed() async throws(LarderError) {
        let (flight, isNew) = current.withLock { current in
            if let running = current.renewal { return (running, false) }
            // No holder leaves it, so it is not cancelled with the last waiter.
            let flight = SingleFlight<Void, Void, LarderError>(())
            current.renewal = flight
            return (flight, true)
        }
        if isNew { flight.run(Task { flight.finish(await self.carryOutRenewal()) }) }
        try await flight.wait()
    }

    private func carryOutRenewal() async -> Result<Void, LarderError> {
        defer { current.withLock { $0.renewal = nil } }
        do throws(LarderError) {
            guard let tokens = current.withLock({ $0.tokens }) else { return .success(()) }
            guard mayUseNetwork() else {
                // The request fails as offline and is retried when the network is back.
                let text = "The session cannot be renewed while the network may not be used."
                throw LarderError(TransportError(.unreachable, text))
            }
            guard try await acquireLock(tokens) else { return .success(()) }
            defer { renewalLock?.release() }
            // The process that held the lock before may have renewed the tokens.
            if try await adoptStored(inPlaceOf: tokens) { return .success(()) }
            try await RequestReason("session", cause: "the access token must be renewed").around {
                () async throws(LarderError) in try await exchange(tokens)
            }
            return .success(())
        } catch {
            return .failure(error)
        }
    }

    /// Waits until no other process renews the tokens.
    ///
    /// - Returns: false if another process has stored new tokens, which are now in use.
    /// - Throws: `.offline` if the other process does not finish in `lockWaitMaximum`; `.storage`.
    private func acquireLock(_ tokens: Tokens) async throws(LarderError) -> Bool {
        try await acquire(renewalLock) { () async throws(LarderError) in try await adoptStored(inPlaceOf: tokens) }
    }

    /// Waits for a lock that another process may hold.
    ///
    /// - Parameter isDone: whether the lock is not needed any more.
    /// - Returns: whether the lock is held.
    @discardableResult
    private func acquire(
        _ lock: FileProcessLock?,
        unless isDone: () async throws(LarderError) -> Bool
    ) async throws(LarderError) -> Bool {
        guard let lock else { return true }
        let configuration = cache.configuration
        let end = configuration.monotonicClock.uptime + Self.lockWaitMaximum
        var attempts = 0
        while true {
            do { if try lock.take() { return true } } catch { throw LarderError(error) }
            if try await isDone() { return false }
            let now = configuration.monotonicClock.uptime
            guard now < end else {
                let text = "Another process has been renewing the session for \(Self.lockWaitMaximum). Try again later."
                throw LarderError(TransportError(.unreachable, text))
            }
            attempts += 1
            let pause = Self.lockRetry.backoffMaximum(attempt: attempts)
            do { try await configuration.monotonicClock.sleep(until: now + pause) } catch { throw LarderError(error) }
        }
    }

    /// Exchanges the refresh token for new tokens, stores them and uses them.
    private func exchange(_ tokens: Tokens) async throws(LarderError) {
        let new: Tokens
        if let (unstored, old) = current.withLock({ $0.unstored }), old == tokens {
            // The server has granted these tokens before, but storing them had failed.
            new = unstored
        } else {
            do throws(LarderError) {
                new = try await grant(tokens)
            } catch {
                guard error.code == .unauthorized else { throw error }
                return try await end(tokens, error)
            }
        }
        do throws(LarderError) {
            // A sign-out or a sign-in during the renewal wins.
            if try await !keep(new, inPlaceOf: tokens) { _ = try await adoptStored(inPlaceOf: tokens) }
        } catch {
            current.withLock { $0.unstored = (new, tokens) }
            throw error
        }
    }

    /// Requests new tokens, and once more if the reply was lost: the server accepts the replaced refresh token for a grace period
    /// (RFC 9700 §4.14.2).
    ///
    /// - Throws: `.unauthorized` if `endsSession` says that the server has rejected the token.
    private func grant(_ tokens: Tokens) async throws(LarderError) -> Tokens {
        do throws(LarderError) { return try await askOnce(tokens) } catch {
            let isLost = (error.cause as? TransportError)?.code == .interrupted || error.isUnreadableAcceptance
            guard isLost, mayUseNetwork() else { throw error }
            return try await askOnce(tokens)
        }
    }

    private func askOnce(_ tokens: Tokens) async throws(LarderError) -> Tokens {
        let asked = clock.now
        do throws(LarderError) {
            return Self.tokens(try await endpoints.renew(source, tokens.refresh), asked)
        } catch {
            guard endpoints.endsSession(error) else { throw error }
            throw LarderError(
                .unauthorized,
                "The session has ended. Sign in again.",
                cause: error,
                status: 401,
                problem: error.problem
            )
        }
    }

    /// Ends the session after a rejected refresh token, unless another process has stored newer tokens.
    private func end(_ tokens: Tokens, _ rejection: LarderError) async throws(LarderError) {
        if try await adoptStored(inPlaceOf: tokens) { return }
        var expired = tokens
        expired.isExpired = true
        // The tokens are not in use any more.
        guard try await keep(expired, inPlaceOf: tokens) else { return }
        throw rejection
    }
}
