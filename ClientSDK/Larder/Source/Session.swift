import Foundation
import LarderHTTP
public import LarderModels
import LarderTime
import Synchronization

/// Who is signed in: keeps the tokens, puts them into requests, and renews them, one renewal at a time however many need it.
///
/// The tokens are in the account's store, which only its owner can read, and never in a log. Several processes may share the store:
/// one of them renews at a time, and the others use what it has stored. New tokens are stored before they are used. Only the API's
/// problem `invalid-refresh-token` ends the session; after any other failure the token is kept, and the
/// next request that needs it tries again. Safe from any task.
public final class Session: RequestAuthorizer {
    /// Whether somebody is signed in.
    public enum State: Sendable, Hashable {
        /// Nobody: reads of what is public work, and of what is stored.
        case signedOut
        /// The person with this identifier.
        case signedIn(userID: String)
        /// The person with this identifier has to sign in again: what is stored can be read, and nothing asked for.
        case expired(userID: String)
    }

    private struct Tokens: Codable, Sendable, Equatable {
        var access: String
        var refresh: String
        var userID: String
        var expiresAt: Int64
        var isExpired = false
    }

    private struct Kept {
        var tokens: Tokens?
        /// The number of the store's transaction that `tokens` came from.
        var number: UInt64 = 0
        var lastNumber: UInt64 = 0
        /// A grant that could not be stored yet, and the tokens that it takes the place of.
        var unstored: (tokens: Tokens, old: Tokens)?
        var renewal: Flight?

        mutating func nextNumber() -> UInt64 {
            lastNumber += 1
            return lastNumber
        }
    }

    private static let key = "larder.session"
    /// How long to wait between looks whether another process has ended its renewal.
    private static let turnRetry = RetryPolicy(base: .milliseconds(50), ceiling: .milliseconds(500))
    /// How long to wait for another process in all.
    private static let turnMaximum: Duration = .seconds(60)
    private let cache: LarderCache
    /// Held by the process that renews the account's tokens; nil where no other process can reach them.
    private let turn: FileOutboxLock?
    private let source: HTTPSource
    private let clock: any WallClock
    private let kept: Mutex<Kept>
    private let hub = EventHub<State>()

    /// Whoever is signed in, as an account's store knows it.
    ///
    /// - Parameters:
    ///   - cache: the account's: the tokens are in its store.
    ///   - server: where the API is: `http://127.0.0.1:8080`.
    /// - Throws: `.storage`.
    public init(_ cache: LarderCache, _ server: String, _ transport: any Transport) throws(LarderError) {
        self.cache = cache
        source = HTTPSource(server, transport: transport)
        clock = cache.configuration.wallClock
        turn = cache.disk.map { FileOutboxLock(path: $0.configuration.directory + "/store.session") }
        do {
            kept = Mutex(Kept(tokens: Self.tokens(try cache.disk?.metadata(Self.key))))
        } catch {
            throw LarderError(error)
        }
    }

    /// The tokens as they are stored. Bytes that cannot be decoded count as none: the person signs in again.
    private static func tokens(_ bytes: [UInt8]?) -> Tokens? {
        bytes.flatMap { try? JSONDecoder().decode(Tokens.self, from: Data($0)) }
    }

    /// Whether somebody is signed in.
    public var state: State { kept.withLock { Self.state($0.tokens) } }

    /// Whether somebody is signed in, now and whenever that changes.
    public var states: EventSequence<State> {
        let sequence = hub.subscribe(limit: 1)
        announce()
        return sequence
    }

    private static func state(_ tokens: Tokens?) -> State {
        guard let tokens else { return .signedOut }
        return tokens.isExpired ? .expired(userID: tokens.userID) : .signedIn(userID: tokens.userID)
    }

    /// The identifier of who is signed in, or was until it expired.
    public var userID: String? { kept.withLock { $0.tokens?.userID } }

    // MARK: Signing in

    private struct Credentials: Encodable, Sendable {
        var handle: String
        var password: String
    }

    /// Signs a person in.
    ///
    /// - Throws: `.refused` where name or password are wrong, `.offline`, `.storage`.
    @discardableResult
    public func signIn(handle: String, password: String) async throws(LarderError) -> Profile {
        let asked = clock.now
        let grant = try await source.send(
            .post,
            "/v1/sessions",
            Credentials(handle: handle, password: password),
            as: SessionGrant.self
        ).value
        try keep(Self.tokens(grant, asked))
        cache.updateIfPossible { $0.put(grant.user) }
        return grant.user
    }

    /// Takes a token that was got otherwise, and that cannot be renewed: a developer's token.
    public func use(token: String, userID: String) throws(LarderError) {
        try keep(Tokens(access: token, refresh: "", userID: userID, expiresAt: .max))
    }

    /// Tells the server, if it can be reached, that the tokens are not needed any more, and forgets them in memory. What is stored
    /// goes with the account's cache: `LarderClient.signOut`.
    public func signOut() async {
        guard let tokens = kept.withLock({ $0.tokens }) else { return }
        defer {
            kept.withLock { $0.tokens = nil }
            announce()
        }
        guard mayUseNetwork() else { return }
        var request = TransportRequest(method: .delete, url: source.url("/v1/sessions/current"))
        request.fields.set(.authorization, "Bearer \(tokens.access)")
        // Where it cannot be told, the tokens expire by themselves: signing out must not depend on a network.
        do { _ = try await source.transport.send(request) } catch {}
    }

    private func mayUseNetwork() -> Bool { cache.configuration.mayUseNetwork() }

    private static func tokens(_ grant: SessionGrant, _ asked: WallTime) -> Tokens {
        Tokens(
            access: grant.accessToken,
            refresh: grant.refreshToken,
            userID: grant.user.id,
            expiresAt: (asked + .seconds(grant.expiresIn)).nanosecondsSinceEpoch
        )
    }

    /// Stores tokens, and uses them from then on.
    ///
    /// - Parameter old: the tokens that they replace. Where others are used or stored by now, nothing happens. Nil: any.
    /// - Returns: whether they are used now.
    /// - Throws: `.storage`, `.encoding`, `.closed`. Then nothing has changed.
    @discardableResult
    private func keep(_ tokens: Tokens, inPlaceOf old: Tokens? = nil) throws(LarderError) -> Bool {
        guard let number = try store(tokens, inPlaceOf: old) else { return false }
        let isUsed = kept.withLock { kept in
            // A later transaction may have been faster to get here, and whoever has signed out stays signed out.
            guard number > kept.number, old == nil || kept.tokens == old else { return false }
            kept.number = number
            kept.tokens = tokens
            kept.unstored = nil
            return true
        }
        if isUsed { announce() }
        return isUsed
    }

    /// Stores tokens; gives the number of the transaction, or nil where they are too late.
    private func store(_ tokens: Tokens, inPlaceOf old: Tokens?) throws(LarderError) -> UInt64? {
        guard cache.disk != nil else { return kept.withLock { $0.nextNumber() } }
        let bytes: [UInt8]
        do { bytes = Array(try JSONEncoder().encode(tokens)) } catch {
            throw LarderError(.encoding, "The session's tokens could not be encoded: \(error)", cause: error)
        }
        let number = Mutex<UInt64?>(nil)
        try cache.update { update in
            update.steps.append(
                .disk { [self] transaction in
                    if let old {
                        let stored = try transaction.read { reading in try reading.metadata(Self.key) }
                        // Nothing is stored where the store was damaged and replaced.
                        guard stored == nil || Self.tokens(stored) == old else { return }
                        guard kept.withLock({ $0.tokens == old }) else { return }
                    }
                    try transaction.setMetadata(bytes, for: Self.key)
                    // The numbers have the order of the transactions.
                    number.withLock { $0 = kept.withLock { $0.nextNumber() } }
                }
            )
        }
        return number.withLock { $0 }
    }

    /// Uses what another process has stored in place of `tokens`.
    ///
    /// - Returns: false where nothing else is stored.
    private func adoptStored(inPlaceOf tokens: Tokens) throws(LarderError) -> Bool {
        let stored: Tokens?
        do { stored = Self.tokens(try cache.disk?.metadata(Self.key)) } catch { throw LarderError(error) }
        guard let stored, stored != tokens else { return false }
        let isUsed = kept.withLock { kept in
            guard kept.tokens == tokens else { return false }
            kept.tokens = stored
            kept.unstored = nil
            return true
        }
        if isUsed { announce() }
        return true
    }

    /// Tells the state; looked at and told in one go, so that an older one is never the last that is heard.
    private func announce() {
        let wakeups = kept.withLock { hub.post(Self.state($0.tokens)) }
        for wakeup in wakeups { wakeup.resume() }
    }

    // MARK: Authorising

    /// Puts the access token into a request; renews it before where its time is over.
    public func authorize(_ request: inout TransportRequest) async throws(LarderError) {
        guard let tokens = kept.withLock({ $0.tokens }) else { return }
        var access = tokens.access
        // By this clock only as a hint: what counts is what the server answers.
        if !tokens.isExpired, clock.now.nanosecondsSinceEpoch >= tokens.expiresAt, !tokens.refresh.isEmpty {
            try await renewed()
            access = kept.withLock { $0.tokens?.access } ?? access
        }
        request.fields.set(.authorization, "Bearer \(access)")
    }

    /// Renews the tokens, unless that has happened since the request was made, here or in another process.
    public func renew(after request: TransportRequest) async throws(LarderError) -> Bool {
        guard let tokens = kept.withLock({ $0.tokens }) else { return false }
        guard request.fields[.authorization] == "Bearer \(tokens.access)" else { return !tokens.isExpired }
        // A developer's token cannot be renewed, nor one that was refused: but somebody may have signed in elsewhere.
        guard !tokens.refresh.isEmpty, !tokens.isExpired else {
            guard try adoptStored(inPlaceOf: tokens) else { return false }
            return kept.withLock { $0.tokens.map { !$0.isExpired } ?? false }
        }
        try await renewed()
        return true
    }

    /// The access token that is good now, for what cannot carry a header field.
    public func accessToken() async throws(LarderError) -> String? {
        var request = TransportRequest(url: "")
        try await authorize(&request)
        return request.fields[.authorization].map { String($0.dropFirst("Bearer ".count)) }
    }

    private func renewed() async throws(LarderError) {
        let moment = cache.core.now()
        let (flight, isNew) = kept.withLock { kept in
            if let running = kept.renewal { return (running, false) }
            // It serves all who wait, and as nobody leaves it, it is not cancelled with the last of them.
            let flight = Flight(order: 0, moment: moment) { _ in }
            kept.renewal = flight
            return (flight, true)
        }
        if isNew { flight.run(Task { flight.finish(await self.carryOutRenewal()) }) }
        try await flight.wait()
    }

    private func carryOutRenewal() async -> Result<Void, LarderError> {
        defer { kept.withLock { $0.renewal = nil } }
        do throws(LarderError) {
            guard let tokens = kept.withLock({ $0.tokens }) else { return .success(()) }
            guard mayUseNetwork() else {
                // The request that needs it fails as it would without: what waits goes on when the network is back.
                let text = "The session is renewed when the network may be used again."
                throw LarderError(TransportError(.unreachable, text))
            }
            guard try await takeTurn(tokens) else { return .success(()) }
            defer { turn?.release() }
            // The process that had the turn before may have renewed them.
            if try adoptStored(inPlaceOf: tokens) { return .success(()) }
            try await exchange(tokens)
            return .success(())
        } catch {
            return .failure(error)
        }
    }

    /// Waits until no other process renews the account's tokens.
    ///
    /// - Returns: false where another process has stored others meanwhile, which are used now.
    /// - Throws: `.offline` where the other process does not end; `.storage`.
    private func takeTurn(_ tokens: Tokens) async throws(LarderError) -> Bool {
        guard let turn else { return true }
        let configuration = cache.configuration
        let end = configuration.monotonicClock.uptime + Self.turnMaximum
        var looks = 0
        while true {
            do { if try turn.take() { return true } } catch { throw LarderError(error) }
            if try adoptStored(inPlaceOf: tokens) { return false }
            let now = configuration.monotonicClock.uptime
            guard now < end else {
                let text = "Another process has been renewing the session for \(Self.turnMaximum). Try again."
                throw LarderError(TransportError(.unreachable, text))
            }
            looks += 1
            let pause = Self.turnRetry.backoffMaximum(attempt: looks)
            do { try await configuration.sleeper.sleep(until: now + pause) } catch { throw LarderError(error) }
        }
    }

    /// Exchanges the refresh token for new tokens, stores them and uses them.
    private func exchange(_ tokens: Tokens) async throws(LarderError) {
        let new: Tokens
        if let (unstored, old) = kept.withLock({ $0.unstored }), old == tokens {
            // The server has given them already; only the store had failed.
            new = unstored
        } else {
            do throws(LarderError) {
                new = try await grant(tokens)
            } catch {
                guard error.code == .unauthorized else { throw error }
                return try end(tokens, error)
            }
        }
        do throws(LarderError) {
            // Whoever has signed out meanwhile stays signed out, and whoever has signed in stays who it is.
            if try !keep(new, inPlaceOf: tokens) { _ = try adoptStored(inPlaceOf: tokens) }
        } catch {
            kept.withLock { $0.unstored = (new, tokens) }
            throw error
        }
    }

    /// Asks the server for new tokens, and once more where the reply was lost: the server accepts the token that it has just
    /// replaced for a while (RFC 9700 §4.14.2).
    ///
    /// - Throws: `.unauthorized` where the API itself refuses the token.
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
            let grant = try await source.send(
                .post,
                "/v1/sessions/refresh",
                ["refreshToken": tokens.refresh],
                as: SessionGrant.self
            ).value
            return Self.tokens(grant, asked)
        } catch {
            guard error.isFromAPI, error.problem?.split(separator: "/").last == "invalid-refresh-token" else {
                throw error
            }
            throw LarderError(
                .unauthorized,
                "The session has ended. Sign in again.",
                cause: error,
                status: 401,
                problem: error.problem
            )
        }
    }

    /// The refresh token is refused: the session is over, unless another process has stored newer tokens.
    private func end(_ tokens: Tokens, _ refusal: LarderError) throws(LarderError) {
        if try adoptStored(inPlaceOf: tokens) { return }
        var expired = tokens
        expired.isExpired = true
        // Of tokens that are not used any more nobody needs to know.
        guard try keep(expired, inPlaceOf: tokens) else { return }
        throw refusal
    }
}
