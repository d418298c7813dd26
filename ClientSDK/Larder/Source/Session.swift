import Foundation
import LarderHTTP
public import LarderModels
import LarderTime
import Synchronization

/// Who is signed in: keeps the tokens, puts them into requests, and renews them, one renewal at a time however many need it.
///
/// The tokens are in the account's store, which only its owner can read, and never in a log. Safe from any task.
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
        var renewal: Flight?
    }

    private static let key = "larder.session"
    private let cache: LarderCache
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
        do {
            let bytes = try cache.disk?.metadata(Self.key)
            // What cannot be read is as good as nobody signed in: the person signs in again.
            kept = Mutex(Kept(tokens: bytes.flatMap { try? JSONDecoder().decode(Tokens.self, from: Data($0)) }))
        } catch {
            throw LarderError(error)
        }
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

    /// Uses tokens from now on, and stores them.
    ///
    /// - Parameter old: the tokens whose place they take; where others are there by now, or none, nothing happens. Nil: whatever
    ///   is there.
    /// - Returns: whether they are used now.
    @discardableResult
    private func keep(_ tokens: Tokens, inPlaceOf old: Tokens? = nil) throws(LarderError) -> Bool {
        let (isKept, before) = kept.withLock { kept -> (Bool, Tokens?) in
            guard old == nil || kept.tokens == old else { return (false, nil) }
            defer { kept.tokens = tokens }
            return (true, kept.tokens)
        }
        guard isKept else { return false }
        do {
            // Once more where others have come meanwhile: what is stored in the end is what is used.
            var next: Tokens? = tokens
            while let present = next {
                let bytes = Array(try JSONEncoder().encode(present))
                try cache.update { $0.setMetadata(bytes, for: Self.key) }
                next = kept.withLock { $0.tokens == present ? nil : $0.tokens }
            }
        } catch {
            kept.withLock { if $0.tokens == tokens { $0.tokens = before } }
            announce()
            throw LarderError(error)
        }
        announce()
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

    /// Renews the tokens, unless that has happened since the request was made.
    public func renew(after request: TransportRequest) async throws(LarderError) -> Bool {
        guard let tokens = kept.withLock({ $0.tokens }), !tokens.refresh.isEmpty, !tokens.isExpired else {
            return false
        }
        guard request.fields[.authorization] == "Bearer \(tokens.access)" else { return true }
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
        guard let tokens = kept.withLock({ $0.tokens }) else { return .success(()) }
        guard mayUseNetwork() else {
            // The request that needs it fails as it would without: what waits goes on when the network is back.
            let text = "The session is renewed when the network may be used again."
            return .failure(LarderError(TransportError(.unreachable, text)))
        }
        let asked = clock.now
        do throws(LarderError) {
            let grant = try await source.send(
                .post,
                "/v1/sessions/refresh",
                ["refreshToken": tokens.refresh],
                as: SessionGrant.self
            ).value
            // Whoever has signed out meanwhile stays signed out, and whoever has signed in stays who it is.
            try keep(Self.tokens(grant, asked), inPlaceOf: tokens)
            return .success(())
        } catch {
            guard error.code == .refused, error.status == 401 || error.status == 400 else { return .failure(error) }
            var expired = tokens
            expired.isExpired = true
            do throws(LarderError) {
                // Of tokens that are not used any more nobody needs to know.
                guard try keep(expired, inPlaceOf: tokens) else { return .success(()) }
            } catch { return .failure(error) }
            return .failure(
                LarderError(
                    .refused,
                    "The session has ended. Sign in again.",
                    cause: error,
                    status: 401,
                    problem: error.problem
                )
            )
        }
    }
}
