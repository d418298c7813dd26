public import Larder
public import LarderModels

/// A client of the demo backend for one account: `APIClient` with a feature for each part of the API and live updates. It has the members
/// of `base`.
///
/// Stored values can be read while the server is unreachable, and each snapshot states its freshness. Safe from any task. Releasing the
/// client ends everything that it has started.
@dynamicMemberLookup public final class LarderClient: Sendable {
    /// The settings of a client: those of `base`, of which the session, the probe and the operations are those of the demo backend, and
    /// how it is kept up to date.
    @dynamicMemberLookup public struct Configuration: Sendable {
        var base: APIClient.Configuration
        /// The kinds of live channel to try, the best first; none: no live updates.
        public var liveKinds = LiveSync.Kind.allCases
        /// Whether live updates start as soon as a user is signed in.
        public var followsLive = true

        /// - Parameter transport: sends the requests; `SocketTransport.Configuration.tls` has the settings of https.
        public init(transport: any Transport = SocketTransport()) {
            base = APIClient.Configuration(transport: transport)
        }

        /// A setting of `APIClient.Configuration`.
        public subscript<Value>(dynamicMember setting: WritableKeyPath<APIClient.Configuration, Value>) -> Value {
            get { base[keyPath: setting] }
            set { base[keyPath: setting] = newValue }
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
    /// A member of `base`, such as `cache` and `session`.
    public subscript<Value>(dynamicMember member: KeyPath<APIClient, Value>) -> Value { base[keyPath: member] }
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
        var settings = configuration.base
        settings.session = .demo
        settings.probePath = "/healthz"
        settings.feature = { Self.feature(of: $0) }
        settings.operations = { source, cache in
            [
                Likes.operation(source), Feed.operation(source, cache), Bank.operation(source),
                Chat.operation(source, cache),
            ]
        }
        base = try await APIClient(server: server, account: account, directory: directory, settings)
        likes = Likes(base)
        profiles = Profiles(base)
        feed = Feed(base)
        bank = Bank(base)
        chat = Chat(base)
        tasks = Tasks(base)
        search = Search(base)
        sync = ChangeSync(.demo(base.source), into: base.cache)
        live = LiveSync(sync, .demo(base, configuration.liveKinds), in: base.cache)
        followsLive = configuration.followsLive
        base.count(sync)
        base.limitToSession(live)
        start()
    }

    /// The feature of a request for telemetry: the name of its resource, so that reads and requests are counted together.
    public static func feature(of request: TransportRequest) -> String {
        // Scheme and host come first.
        let path = request.url.prefix { $0 != "?" && $0 != "#" }.split(separator: "/").dropFirst(2)
        let parts = path.drop { $0 != "v1" }.dropFirst()
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
        let profile = try await base.session.signIn(handle: handle, password: password)
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
            await profiles.noteVersion(Int64(version), of: profile)
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
