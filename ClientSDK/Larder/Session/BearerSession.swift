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
///
/// ```swift
/// try await client.session.use(token: "dev-ana", userID: "user_1")
/// for await state in client.session.states { print(state) }
/// ```
public final class BearerSession: HTTPSource.Authorizer {
    /// The state of a session.
    public enum State: Sendable, Hashable {
        /// There are no tokens. Public resources and stored values can be read.
        case signedOut
        /// The user with this ID is signed in.
        case signedIn(userID: String)
        /// The user with this ID must sign in again. Stored values can be read.
        case expired(userID: String)

        var isSignedIn: Bool { if case .signedIn = self { true } else { false } }
    }

    struct Current {
        var tokens: Tokens?
        /// A grant that could not be stored yet, and the tokens that it replaces.
        var unstored: (tokens: Tokens, old: Tokens)?
        var renewal: SingleFlight<Void, Void, LarderError>?
        /// The user whose content the cache has, as far as this process knows. With a disk, the owner is in the outbox's store (`ownerKey`).
        var owner: String?
        /// Whether the account was signed out with its content: no later sign-in is stored.
        var hasEnded = false
    }

    /// The name of the session in events.
    static let key = "larder.session"
    /// The metadata of the outbox's store that contains the ID of the first user who has signed in. It is erased with the store.
    static let ownerKey = "larder.session.owner"
    /// The delays between checks whether another process has finished its renewal.
    static let lockRetry = RetryPolicy(base: .milliseconds(50), ceiling: .milliseconds(500))
    /// The maximum time to wait for another process.
    static let lockWaitMaximum: Duration = .seconds(60)
    let cache: LarderCache
    /// Held by the process that renews the tokens; nil if no other process can access the store.
    let renewalLock: FileProcessLock?
    /// Held while tokens are compared with the stored ones and replaced.
    let storingLock: FileProcessLock?
    let storing = SerialGate()
    /// The place of the tokens; nil if they are only in memory.
    let secrets: (any SecretStore)?
    let source: HTTPSource
    let endpoints: Endpoints
    let cookies: CookieJar?
    let clock: any WallClock
    let current: Mutex<Current>
    private let hub = EventHub<State>()

    /// Reads the stored tokens.
    ///
    /// - Parameters:
    ///   - cache: the account's cache.
    ///   - source: sends sign-in, renewal and revocation. It must have no authorizer. Sign-in and revocation are requests of a person
    ///     (`TransportRequest.isUserInitiated`), and so is a renewal that a person's refresh needs.
    ///   - endpoints: the endpoints for renewal and revocation.
    ///   - secrets: the place of the tokens; nil: a file beside the outbox, or memory if the cache has none.
    ///   - cookies: emptied by a sign-out.
    /// - Throws: `.storage` if the tokens cannot be read.
    public init(
        _ cache: LarderCache,
        _ source: HTTPSource,
        _ endpoints: Endpoints,
        secrets: (any SecretStore)? = nil,
        cookies: CookieJar? = nil
    ) async throws(LarderError) {
        self.cache = cache
        self.source = source
        self.endpoints = endpoints
        self.cookies = cookies
        self.secrets = secrets ?? cache.outboxDisk.map { FileSecretStore(disk: $0, core: cache.core) }
        clock = cache.configuration.wallClock
        let directory = cache.outboxDisk?.configuration.directory
        renewalLock = directory.map { FileProcessLock(path: $0 + "/store.session") }
        storingLock = directory.map { FileProcessLock(path: $0 + "/store.session-change") }
        let tokens = try await Self.stored(in: self.secrets, reportedTo: cache)
        current = Mutex(Current(tokens: tokens, owner: tokens?.userID))
        await restoreOwner()
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

    /// Posts the state under the lock, so that observers receive states in order.
    func announce() { current.withLock { hub.post(Self.state($0.tokens)) } }
}
