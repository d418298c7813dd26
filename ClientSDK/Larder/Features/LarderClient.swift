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
        /// The kinds of live channel to try, the best first; none: nothing is followed live.
        public var liveKinds: [LiveKind]
        /// Whether the feed, the chats and the rest are followed as soon as somebody is signed in.
        public var followsLive = true
        /// What looks after the client while it runs: network, memory, counts, switches.
        public var upkeep = Upkeep.standard

        /// Sockets of its own, for `http` alone (`HTTPTransport` of `LarderURLSession` is for `https` too), and all kinds of live channel.
        public init(transport: any Transport = SocketTransport()) {
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
    /// What happens in the client, and what that adds up to; `Telemetry.off` where there is none.
    public var telemetry: Telemetry { upkeep.telemetry }
    /// What the network is good for; nil where nobody watches it.
    public var network: NetworkMonitor? { upkeep.network }
    /// How short memory is; nil where nobody watches it.
    public var memory: MemoryGuard? { upkeep.memory }
    /// The switches; nil where there are none, and everything is at its default.
    public var flags: FeatureFlags? { upkeep.flags }
    let steering: LarderClientSteering
    private let upkeep: LarderClientUpkeep
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
        let telemetry = Self.makeTelemetry(configuration.upkeep, settings)
        let late = LarderClientUpkeep.Late()
        Self.tie(&settings, telemetry, late)
        let opened = settings
        cache = try LarderCache(settings)
        upkeep = LarderClientUpkeep(configuration.upkeep, telemetry, cache, server: server)
        late.set(upkeep.network)
        /// - Parameter isStrict: whether nothing is sent that cannot succeed. A person who signs in is not refused unasked.
        func transport(isStrict: Bool) -> any Transport {
            MonitoredTransport(
                configuration.transport,
                monitor: late.monitor,
                telemetry: telemetry,
                refusesOffline: isStrict,
                clock: opened.monotonicClock,
                waitsByDesign: { Self.waitsByDesign($0) },
                feature: { Self.feature(of: $0) }
            )
        }
        let sending = transport(isStrict: true)
        session = try Session(cache, server, transport(isStrict: false))
        source = HTTPSource(server, transport: sending, authorizer: session, mayUseNetwork: settings.mayUseNetwork)
        likes = Likes(cache, source)
        profiles = Profiles(cache, source)
        feed = Feed(cache, source)
        bank = Bank(cache, source)
        chat = Chat(cache, source, session)
        var pictures = ImagePipeline.Configuration(transport: sending)
        pictures.disk = try Self.pictureStore(settings)
        pictures.clock = settings.wallClock
        pictures.uptime = settings.monotonicClock
        pictures.retry = ImageRetryPolicy(
            clock: settings.monotonicClock,
            sleeper: settings.sleeper,
            random: settings.random
        )
        if upkeep.flags?[LarderFlags.idleDecoding] ?? true { pictures.idle = configuration.upkeep.idle }
        pictures.onEvent = { telemetry.record($0) }
        images = ImagePipeline(pictures)
        steering = LarderClientSteering(images, cache)
        sync = ChangeSync(.larder(source), into: cache)
        live = LiveSync(
            sync,
            .larder(source, session, configuration.webSockets, configuration.liveKinds, configuration.cache),
            in: cache
        )
        followsLive = configuration.followsLive
        let health = source.url("/healthz")
        upkeep.begin(steering, settings, sync: sync) {
            do { _ = try await sending.send(TransportRequest(url: health)) } catch {
                // Whatever comes of it, this error too, the transport has told the monitor already.
            }
        }
        cache.outbox.resume()
        if case .signedIn = session.state { start() }
    }

    private static func makeTelemetry(_ upkeep: Upkeep, _ settings: CacheConfiguration) -> Telemetry {
        switch upkeep.telemetry {
        case .none: .off
        case .given(let telemetry): telemetry
        case .own:
            Telemetry(recorder: upkeep.recorder, wall: settings.wallClock, monotonic: settings.monotonicClock)
        }
    }

    /// Has the cache ask the monitor, and tell telemetry.
    private static func tie(
        _ settings: inout CacheConfiguration,
        _ telemetry: Telemetry,
        _ late: LarderClientUpkeep.Late
    ) {
        let (mayUseNetwork, conduct, onEvent) = (settings.mayUseNetwork, settings.conduct, settings.onEvent)
        settings.mayUseNetwork = { mayUseNetwork() && (late.monitor?.mayTry ?? true) }
        settings.conduct = { late.monitor?.conduct ?? conduct() }
        settings.onEvent = { event in
            telemetry.record(event)
            onEvent(event)
        }
    }

    /// Whether a reply takes its time because nothing has happened: a live channel, or a long poll.
    static func waitsByDesign(_ request: TransportRequest) -> Bool {
        let (parts, query) = endpoint(of: request)
        switch parts.first {
        case "live": return true
        case "changes": return query.split(separator: "&").contains { $0.hasPrefix("wait=") }
        default: return false
        }
    }

    /// What a URL asks for: the parts of its path behind the version, and its query. No parts where it has no version.
    private static func endpoint(of request: TransportRequest) -> (parts: ArraySlice<Substring>, query: Substring) {
        let url = request.url.prefix { $0 != "#" }
        guard let scheme = url.firstRange(of: "://") else { return ([], "") }
        let mark = url.firstIndex(of: "?") ?? url.endIndex
        guard scheme.upperBound <= mark else { return ([], "") }
        // The first part is the host.
        let parts = url[scheme.upperBound..<mark].split(separator: "/", omittingEmptySubsequences: false).dropFirst()
        guard let version = parts.firstIndex(of: "v1") else { return ([], "") }
        return (parts[(version + 1)...], mark < url.endIndex ? url[url.index(after: mark)...] : "")
    }

    /// What a request is for: the first part of its path behind the version, as the cache calls it where it knows it.
    static func feature(of request: TransportRequest) -> String {
        guard let name = endpoint(of: request).parts.first, !name.isEmpty else { return "other" }
        switch name {
        case "profiles", "me": return "profile"
        case "posts": return "post"
        case "likes": return "like"
        case "transfers": return "transfer"
        default: return String(name)
        }
    }

    private static func pictureStore(_ settings: CacheConfiguration) throws(LarderError) -> DiskStore? {
        guard let directory = settings.directory else { return nil }
        var store = DiskStore.Configuration(directory: directory + "/images", clock: settings.wallClock)
        store.bytesMaximum = settings.disk.bytesMaximum
        // A start shows texts first.
        store.opensLate = true
        let onEvent = settings.onEvent
        store.onEvent = { onEvent(.disk($0)) }
        do { return try DiskStore(store) } catch { throw LarderError(error) }
    }

    deinit {
        following.withLock { $0 }?.cancel()
        upkeep.end()
        // What is stored of the session is the cache's, and what the cache sends is authorised by the session: they hold each other
        // until one of them ends.
        cache.close()
    }

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

    /// Ends everything that runs, and lets go of the system's sources. What is stored and unsent stays, and what was counted can
    /// be read.
    public func close() {
        pause()
        upkeep.end()
        images.cancelPending()
        cache.close()
    }

    /// Signs out: stops everything, and leaves nothing of the account on this device. Unsent changes are lost; see
    /// `cache.outbox.status`.
    ///
    /// - Throws: `.storage` where files could not be removed.
    public func signOut() async throws(LarderError) {
        pause()
        upkeep.end()
        cache.outbox.pause()
        await session.signOut()
        // First what lies within the other's directory.
        do { try images.configuration.disk?.erase() } catch { throw LarderError(error) }
        images.clearMemory()
        try cache.erase()
    }
}
