public import Larder
public import LarderModels

/// A client of the demo backend for one account: `APIClient` with a feature for each part of the API and live updates.
///
/// Stored values can be read while the server is unreachable, and each snapshot states its freshness. Safe from any task. Releasing the
/// client ends everything that it has started.
public final class LarderClient: Sendable {
    /// The settings of a client.
    public struct Configuration: Sendable {
        /// The transport of all requests.
        public var transport: any Transport
        /// The client of the live WebSocket; see `APIClient.Configuration`.
        public var webSockets: WebSocketClient?
        /// The settings of the cache. The account's directory replaces `directory`.
        public var cache: CacheConfiguration
        /// The kinds of live channel to try, the best first; none: no live updates.
        public var liveKinds: [LiveSync.Kind]
        /// The maximum size of the HTTP cache of `http`; see `APIClient.Configuration`.
        public var httpCacheBytesMaximum = 50 << 20
        /// The maximum size of the pictures on disk in bytes; nil: as that of the cache.
        public var imageBytesMaximum: Int64?
        /// Whether live updates start as soon as a user is signed in.
        public var followsLive = true
        /// The network monitor, the memory guard, telemetry and flags.
        public var services = APIClient.Services.standard
        /// The URL of a `larder-server` whose dashboard shows this client, and its control token; see `APIClient.Configuration`.
        public var inspector: String?
        public var inspectorToken: String?
        /// Makes the place of the tokens of an account; nil: a file in the account's directory.
        public var secrets: (@Sendable (_ account: String) -> any SecretStore)?
        /// The parent directory of what the system may remove at any time; see `APIClient.Configuration`.
        public var purgeableDirectory: String?

        /// - Parameter transport: sends the requests; `SocketTransport.Configuration.tls` has the settings of https.
        public init(transport: any Transport = SocketTransport()) {
            self.transport = transport
            cache = CacheConfiguration()
            liveKinds = LiveSync.Kind.allCases
        }
    }

    /// The client without the features of the demo backend.
    public let base: APIClient
    /// User profiles.
    public let profiles: Profiles
    /// The feed and its posts.
    public let feed: Feed
    /// Likes: optimistic and sent in batches.
    public let likes: Likes
    /// Accounts and transfers.
    public let bank: Bank
    /// Conversations and messages.
    public let chat: Chat
    /// The tasks of the team.
    public let tasks: Tasks
    /// Search in posts and people.
    public let search: Search
    /// Delta synchronisation from the change feed.
    public let sync: ChangeSync
    /// Live updates; falls back from WebSocket to server-sent events to long polling.
    public let live: LiveSync
    /// The bearer session of the account.
    public var session: BearerSession { base.session }
    /// The image pipeline, with its own store.
    public var images: ImagePipeline { base.images }
    /// The account's cache.
    public var cache: LarderCache { base.cache }
    /// Sends requests to the server, authorized by `session`.
    public var source: HTTPSource { base.source }
    /// Counters and events; `Telemetry.off` if telemetry is off.
    public var telemetry: Telemetry { base.telemetry }
    /// The network monitor; nil if it is off.
    public var network: NetworkMonitor? { base.network }
    /// The memory guard; nil if it is off.
    public var memory: MemoryGuard? { base.memory }
    /// The feature flags; nil if they are off.
    public var flags: FeatureFlags? { base.flags }
    /// Delays decoding of pictures that are not visible while the user interacts; see `APIClient.idle`.
    public var idle: IdleScheduler? { base.idle }
    /// Sends any other request, through the account's HTTP cache.
    public var http: APIClient.HTTPClient { base.http }
    private let followsLive: Bool

    /// Opens the client of an account. Cost: several milliseconds of disk work.
    ///
    /// - Parameters:
    ///   - server: the URL of the server: `http://127.0.0.1:8080`.
    ///   - account: the name of the account on this device, which one user signs in with; see `APIClient.init`. The server does not need
    ///     to know it.
    ///   - directory: the directory of all accounts. The system must not purge it, because it contains unsent changes.
    ///   - configuration: the settings of transport, cache, live updates and services.
    /// - Throws: `.storage` if the account's directory cannot be used.
    public init(
        server: String,
        account: String,
        directory: String,
        _ configuration: Configuration = Configuration()
    ) async throws(LarderError) {
        var settings = APIClient.Configuration(transport: configuration.transport)
        settings.cache = configuration.cache
        settings.session = .demo
        settings.secrets = configuration.secrets
        settings.purgeableDirectory = configuration.purgeableDirectory
        settings.services = configuration.services
        settings.inspector = configuration.inspector
        settings.inspectorToken = configuration.inspectorToken
        settings.webSockets = configuration.webSockets
        settings.httpCacheBytesMaximum = configuration.httpCacheBytesMaximum
        settings.imageBytesMaximum = configuration.imageBytesMaximum
        settings.probePath = "/healthz"
        settings.feature = { Self.feature(of: $0) }
        settings.operations = { source, cache in
            [
                Likes.operation(source), Feed.operation(source, cache), Bank.operation(source),
                Chat.operation(source, cache), Tasks.operation(source, cache),
            ]
        }
        base = try await APIClient(server: server, account: account, directory: directory, settings)
        let (cache, source, session) = (base.cache, base.source, base.session)
        likes = Likes(cache, source)
        profiles = Profiles(cache, source, isCached: base.isCached("profiles"))
        feed = Feed(cache, source, session, isCached: base.isCached("feed"))
        bank = Bank(cache, source, isCached: base.isCached("bank"))
        chat = Chat(cache, source, session, isCached: base.isCached("chat"))
        tasks = Tasks(cache, source, session, isCached: base.isCached("tasks"))
        search = Search(cache, source, isCached: base.isCached("search"))
        sync = ChangeSync(.demo(source), into: cache)
        live = LiveSync(
            sync,
            .demo(base, configuration.liveKinds),
            in: cache
        )
        followsLive = configuration.followsLive
        base.count(sync)
        base.limitToSession(live)
        start()
    }

    /// The path segments after the API version, and the query. No segments if the path has no version.
    private static func endpoint(of request: TransportRequest) -> (parts: ArraySlice<Substring>, query: Substring) {
        let url = request.url.prefix { $0 != "#" }
        guard let scheme = url.firstRange(of: "://") else { return ([], "") }
        let mark = url.firstIndex(of: "?") ?? url.endIndex
        guard scheme.upperBound <= mark else { return ([], "") }
        // The first segment is the host.
        let parts = url[scheme.upperBound..<mark].split(separator: "/", omittingEmptySubsequences: false).dropFirst()
        guard let version = parts.firstIndex(of: "v1") else { return ([], "") }
        return (parts[(version + 1)...], mark < url.endIndex ? url[url.index(after: mark)...] : "")
    }

    /// The feature of a request for telemetry: the name of its resource, so that reads and requests are counted together.
    public static func feature(of request: TransportRequest) -> String {
        let parts = endpoint(of: request).parts
        switch parts.first {
        case "feed": return "feed"
        case "posts": return "post"
        case "likes": return "like"
        case "me": return "profile"
        case "profiles": return parts.count > 1 ? "profile" : "people"
        case "accounts": return parts.count > 2 ? "transactions" : "accounts"
        case "transfers": return "transfer"
        case "conversations": return parts.count > 2 ? "messages" : "conversations"
        case "tasks": return parts.count > 1 ? "task" : "tasks"
        case "changes", "live": return "changes"
        case "images": return "images"
        case "sessions": return "session"
        case "search": return "search"
        default: return "other"
        }
    }

    deinit { live.stop() }

    /// Signs in and starts live updates.
    ///
    /// - Throws: `.rejected` if the handle or the password is wrong; `.invalidArgument` if the account belongs to another user; `.offline`;
    ///   `.storage`.
    @discardableResult
    public func signIn(handle: String, password: String) async throws(LarderError) -> Profile {
        let profile = try await session.signIn(handle: handle, password: password)
        start()
        return profile
    }

    /// Starts live updates, unless they are running or `followsLive` is false. They run while a user is signed in.
    public func start() {
        if followsLive { live.start() }
    }

    /// Stops live updates until `start`, which then applies the missed changes.
    public func pause() { live.stop() }

    /// Processes a push notification of the backend. One that names a profile and its version costs no request: an older stored profile is
    /// stale from now on, which its observers are shown, and its next reader asks for it. After any other notification the changes that
    /// this device has missed are applied.
    ///
    /// - Parameters:
    ///   - payload: the notification. `profile` is the ID of a profile whose `version` it tells. If `token` is a change token that is stored
    ///     already, nothing is requested.
    ///   - limit: the time for everything.
    /// - Returns: whether something has changed.
    /// - Throws: as `APIClient.received(push:within:fetch:)`.
    @discardableResult
    public func received(
        push payload: [String: any Sendable],
        within limit: Duration = .seconds(25)
    ) async throws(LarderError) -> Bool {
        if let profile = payload["profile"] as? String, let version = payload["version"] as? Int {
            profiles.noteVersion(Int64(version), of: profile)
            return false
        }
        if let token = payload["token"] as? String, sync.hasApplied(token) { return false }
        return try await base.received(push: payload, within: limit) { [sync] _ in try await sync.catchUp() > 0 }
    }

    /// Ends all tasks and releases system resources. Stored values and unsent changes are kept, and telemetry can still be read.
    public func close() {
        pause()
        base.close()
    }

    /// Signs out: ends all tasks, erases the account's data on this device and revokes the tokens, as `APIClient.signOut` does.
    ///
    /// Unsent changes are lost; see `cache.outbox.status`.
    ///
    /// - Throws: `.storage` if files could not be removed.
    public func signOut() async throws(LarderError) {
        pause()
        try await base.signOut()
    }
}
