import Foundation
public import LarderModels
import LarderTime
import Synchronization

/// A client of a Larder server for one account: each feature with the strategy that it deserves.
///
/// It shows what is stored when the server is out of reach, and says of everything how fresh it is. Several accounts live side by
/// side, each in a directory of its own. Safe from any task; a client that is released ends what it has begun.
public final class LarderClient: Sendable {
    /// How a client is made. One value says it all.
    public struct Configuration: Sendable {
        /// Sends requests.
        public var transport: any Transport
        /// Opens WebSockets.
        public var webSockets: WebSocketClient
        /// How the account's cache is kept; its directory is the account's.
        public var cache: CacheConfiguration
        /// The kinds of live channel to try, the best first.
        public var liveKinds: [LiveKind]
        /// Whether the feed, the chats and the rest are followed as soon as somebody is signed in.
        public var followsLive = true

        /// The system's transport, and all kinds of live channel.
        public init(transport: any Transport = DefaultTransport()) {
            self.transport = transport
            webSockets = WebSocketClient()
            cache = CacheConfiguration()
            liveKinds = LiveKind.allCases
        }
    }

    /// Who is signed in.
    public let session: Session
    /// People.
    public let profiles: Profiles
    /// The feed.
    public let feed: Feed
    /// Hearts.
    public let likes: Likes
    /// Money.
    public let bank: Bank
    /// Conversations.
    public let chat: Chat
    /// Pictures, in a store of their own: nothing of it is missed when it is purged.
    public let images: ImagePipeline
    /// What changes elsewhere.
    public let sync: ChangeSync
    /// What changes elsewhere, as it happens.
    public let live: LiveSync
    /// The account's cache: any resource of your own has the same place.
    public let cache: LarderCache
    /// The server's API: for resources of your own.
    public let source: HTTPSource
    private let following = Mutex<Task<Void, Never>?>(nil)
    private let followsLive: Bool

    /// Opens an account's client. Cost: some milliseconds.
    ///
    /// - Parameters:
    ///   - server: where the server is: `http://127.0.0.1:8080`.
    ///   - account: what the account is called here; it need not be the name that the server knows.
    ///   - directory: where accounts are kept: not among what the system may purge, because unsent changes are in it.
    /// - Throws: `.storage` where the account's directory cannot be used.
    public init(
        server: String,
        account: String,
        directory: String,
        _ configuration: Configuration = Configuration()
    ) async throws(LarderError) {
        var settings = configuration.cache
        if settings.store == nil { settings.directory = DiskStore.directory(forAccount: account, in: directory) }
        cache = try LarderCache(settings)
        session = try Session(cache, server, configuration.transport)
        source = HTTPSource(server, transport: configuration.transport, authorizer: session)
        likes = Likes(cache, source)
        profiles = Profiles(cache, source)
        feed = Feed(cache, source)
        bank = Bank(cache, source)
        chat = Chat(cache, source, session)
        var pictures = ImagePipeline.Configuration(transport: configuration.transport)
        pictures.disk = try Self.pictureStore(settings)
        images = ImagePipeline(pictures)
        sync = ChangeSync(.larder(source), into: cache)
        live = LiveSync(
            sync,
            .larder(source, session, configuration.webSockets, configuration.liveKinds, configuration.cache),
            in: cache
        )
        followsLive = configuration.followsLive
        cache.outbox.resume()
        if case .signedIn = session.state { start() }
    }

    private static func pictureStore(_ settings: CacheConfiguration) throws(LarderError) -> DiskStore? {
        guard let directory = settings.directory else { return nil }
        var store = DiskStore.Configuration(directory: directory + "/images", clock: settings.wallClock)
        store.bytesMaximum = settings.disk.bytesMaximum
        let onEvent = settings.onEvent
        store.onEvent = { onEvent(.disk($0)) }
        do { return try DiskStore(store) } catch { throw LarderError(error) }
    }

    deinit { following.withLock { $0 }?.cancel() }

    /// Signs a person in, and begins to follow what changes.
    ///
    /// - Throws: `.refused` where name or password are wrong, `.offline`, `.storage`.
    @discardableResult
    public func signIn(handle: String, password: String) async throws(LarderError) -> Profile {
        let profile = try await session.signIn(handle: handle, password: password)
        start()
        cache.networkReturned()
        return profile
    }

    /// Begins to follow what changes, unless it does.
    public func start() {
        guard followsLive else { return }
        following.withLock { following in
            guard following == nil else { return }
            let live = live
            following = Task { await live.run() }
        }
    }

    /// Follows no more until `start`: nobody looks, and what was missed is read then.
    public func pause() { following.withLock { $0.take() }?.cancel() }

    /// Ends everything that runs. What is stored and unsent stays.
    public func close() {
        pause()
        cache.close()
    }

    /// Signs out: stops everything, and leaves nothing of the account on this device. Unsent changes are lost; see
    /// `cache.outbox.status`.
    ///
    /// - Throws: `.storage` where files could not be removed.
    public func signOut() async throws(LarderError) {
        pause()
        cache.outbox.pause()
        await session.signOut()
        // First what lies within the other's directory.
        do { try images.configuration.disk?.erase() } catch { throw LarderError(error) }
        images.clearMemory()
        try cache.erase()
    }
}
