public import LarderDevice
import LarderEvents
public import LarderImages
public import LarderResources
public import LarderStorage
public import LarderTelemetry
public import LarderTransport
import Synchronization

/// An offline-first client of one account of any HTTP backend: cache, transport, bearer session, images, network monitor, memory
/// guard, flags and telemetry, wired together.
///
/// Each account has its own directory. Stored values can be read while the server is unreachable, and the outbox sends when it is
/// reachable again. Safe from any task. `close`, `signOut` and releasing the client end everything that it has started.
///
/// ```swift
/// let client = try await APIClient(server: "http://127.0.0.1:8080", account: "ana", directory: "/var/tmp/app")
/// let article = Resource<Article>.entity("7") { try await client.source.fetch("/articles/7", context: $0) }
///
/// let snapshot = try await client.cache.snapshot(article)     // memory, disk or network, as the policy allows
/// print(snapshot.value?.title ?? "", snapshot.freshness)
/// client.close()
/// ```
public final class APIClient: Sendable {
    /// The settings of a client.
    public struct Configuration: Sendable {
        /// The transport of all requests.
        public var transport: any Transport
        /// The settings of the account's cache. With `.memory` as its storage, the standard, the cache opens a store in the account's
        /// directory.
        public var cache = CacheConfiguration()
        /// Encodes everything that is stored in the account's directory, with pictures and tokens, such as `DiskStore.EncryptingTransform`; nil: as
        /// `cache` says.
        public var transform: (any DiskStore.PayloadTransform)?
        /// How the backend writes requests and replies.
        public var http = HTTPSource.Configuration()
        /// The maximum size of the HTTP cache of `APIClient.http` on disk, in bytes; 0 turns it off. It has a store of its own beside
        /// that of the resources.
        public var httpCacheBytesMaximum = 50 << 20
        /// The maximum size of the files of unsent writes (`APIClient.upload`) together, in bytes.
        public var uploadBytesMaximum: Int64 = 256 << 20
        /// Makes the operations of the outbox that are more than a request (`APIClient.Write`), for example with a `send` of the source. Those
        /// of an earlier process are shown and sent from the first read on. Nil: none.
        public var operations: (@Sendable (HTTPSource, LarderCache) -> [any CacheConfiguration.Operation])?
        /// Opens the WebSockets of the client; nil: with the TLS settings and the proxies of `transport` if that is a `SocketTransport`,
        /// otherwise none are opened, because others would not have its pins and authorities. With a transport of your own that encloses
        /// a `SocketTransport`, set it to that one's `webSockets()`.
        public var webSockets: WebSocketClient?
        /// Whether cookies of the backend are kept and sent (RFC 6265), by requests and WebSockets; see `APIClient.cookies`.
        public var keepsCookies = false
        /// How the backend says what has changed, by a live channel and by push notifications; nil: it does not.
        public var events: Events?
        /// How the backend renews and revokes tokens.
        public var session = BearerSession.Endpoints.none
        /// Makes the place of the tokens of an account; nil: a file in the account's directory.
        public var secrets: (@Sendable (_ account: String) -> any SecretStore)?
        /// The parent directory of what the system may remove at any time, such as `$XDG_CACHE_HOME/my.app`: cached values, pictures and
        /// responses of `APIClient.http`. Operations that wait to be sent, tokens and flags stay in the directory of the accounts. Nil:
        /// everything is there.
        public var purgeableDirectory: String?
        /// The maximum size of the pictures on disk in bytes; nil: as that of the cache.
        public var imageBytesMaximum: Int64?
        /// The maximum size of the decoded pictures in memory, in bytes.
        public var imageMemoryBytesMaximum = 96 << 20
        /// Network monitor, memory guard, telemetry and flags.
        public var services = Services.standard
        /// The path of a small resource, which is requested while the network counts as offline to find out whether it is back.
        public var probePath = "/"
        /// Which requests wait together after a 429 or 503: those to one host for which this returns the same text. For a server that
        /// limits each action alone, return the action. Nil: the request is never held back. By default all requests to the host.
        public var retryScope: @Sendable (TransportRequest) -> String? = { _ in "" }
        /// The feature that a request belongs to, for telemetry. Return one of a small set of names.
        public var feature: @Sendable (TransportRequest) -> String = { _ in "http" }
        /// The URL of a `larder-server` whose dashboard shows this client: its values with their freshness, requests, outbox and memory, and
        /// neither tokens nor, unless somebody asks for one, values. For development. Each request has a random `X-Request-ID` then. Nil: none.
        public var inspector: String?
        /// The control token of that server; nil if it was started without one.
        public var inspectorToken: String?

        /// - Parameter transport: sends the requests; `SocketTransport.Configuration.tls` has the settings of https.
        public init(transport: any Transport = SocketTransport()) { self.transport = transport }
    }

    /// The bearer session of the account.
    public let session: BearerSession
    /// The account's cache.
    public let cache: LarderCache
    /// Sends requests to the backend, authorized by `session`.
    public let source: HTTPSource
    /// Sends any other request, through the account's HTTP cache.
    public let http: HTTPClient
    /// The image pipeline, with its own store. Requests to the server's origin are authorized as those of `http`.
    public let images: ImagePipeline
    /// The cookies of the account, in memory; nil unless `Configuration.keepsCookies`. A sign-out removes them.
    public let cookies: CookieJar?
    /// Applies the events of `Configuration.events`; nil without a live channel. It runs while a user is signed in if the events need a
    /// session, and otherwise as long as the client; see `LiveSync.start` and `stop`.
    public let live: LiveSync?
    /// Counters and events; nothing is counted if telemetry is off.
    public var telemetry: Telemetry { services.telemetry }
    /// The network monitor; nil if it is off.
    public var network: NetworkMonitor? { services.network }
    /// The memory guard; nil if it is off.
    public var memory: MemoryGuard? { services.memory }
    /// The feature flags; nil if they are off and every flag has its default.
    public var flags: FeatureFlags? { services.flags }
    /// Delays decoding of pictures that are not visible (priority below `.high`) while the user interacts: a
    /// `ImagePipeline.ListPrefetch` tells it about scrolling; call `idle?.interacted()` for other touches. Decoding never waits
    /// without either, or while the flag `FeatureFlags.Key.idleDecoding` is off. Nil if it is off.
    public var idle: IdleScheduler? { services.idle }
    /// The operations of `write` and `commit`.
    let writing: WriteOperations
    let uploading: Uploading
    /// How much the server has of the files that are being sent (`upload`), by operation: now and after each change. `Outbox.drop`
    /// cancels one that is not being sent at the moment.
    public var uploads: EventSequence<[OperationID: RequestBody.Progress]> { uploading.states }
    let events: Events?
    let accountDirectories: [String]
    let stores: ContentStores
    let channels: LiveChannelOpener
    let receivedEvents = ReceivedEvents()
    private let limits: LimitController
    let services: RunningServices
    /// The sign-out in progress, or the one that has succeeded.
    let leaving = Mutex<SingleFlight<Void, Void, LarderError>?>(nil)

    /// Opens the client of an account, and starts its services and its outbox. Cost: several milliseconds of disk work.
    ///
    /// - Parameters:
    ///   - server: the URL of the API: `http://127.0.0.1:8080`.
    ///   - account: the name of the account on this device. The server does not need to know it. One user signs in with it, and another
    ///     one only after `signOut`, which erases the content. What was read before a sign-in stays stored and fresh after it, although the server may
    ///     personalise it: read without a session under a name of its own, such as "guest", and open another client for the user.
    ///   - directory: the directory of all accounts. The system must not purge it, because it contains unsent changes.
    ///   - configuration: the settings of cache, session, transport and services.
    /// - Throws: `.storage` if the account's directory cannot be used, or if a sign-out was interrupted and cannot be finished.
    public init(
        server: String,
        account: String,
        directory: String,
        _ configuration: Configuration = Configuration()
    ) async throws(LarderError) {
        events = configuration.events
        var settings = configuration.cache
        if case .memory = settings.storage {
            settings.storage = .directory(DiskStore.directory(forAccount: account, in: directory))
        }
        if let transform = configuration.transform, case .disk(var values) = settings.storage {
            values.transform = transform
            settings.storage = .disk(values)
        }
        let purgeable = configuration.purgeableDirectory.map { DiskStore.directory(forAccount: account, in: $0) }
        let recorderPath = Self.recorderPath(configuration.services, settings)
        accountDirectories = Self.directories(settings, purgeable)
        Self.moveContent(of: &settings, to: purgeable)
        if let parent = configuration.purgeableDirectory { Self.tag(parent) }
        let secrets = configuration.secrets?(account)
        try await Self.finishSignOut(accountDirectories, settings, secrets)
        let telemetry = Self.telemetry(configuration.services, settings, recorderPath)
        let reference = RunningServices.MonitorReference()
        uploading = Uploading(Self.uploadFiles(settings, configuration.uploadBytesMaximum))
        Self.connect(&settings, telemetry, reference, uploading)
        let opened = settings
        cache = try LarderCache(settings)
        services = RunningServices(configuration.services, telemetry, cache, server: server)
        reference.set(services.network)
        let cookies = configuration.keepsCookies ? CookieJar(clock: settings.wallClock) : nil
        self.cookies = cookies
        let log = configuration.inspector.map { _ in RecentRequests(settings.wallClock) }
        let base = cookies?.attached(to: configuration.transport) ?? configuration.transport
        let webSockets =
            configuration.webSockets ?? (configuration.transport as? SocketTransport)?.webSockets()
            ?? WebSocketClient(connector: NoWebSockets())
        /// - Parameter rejectsOffline: false for sign-in, which is always tried because the user asked for it.
        func transport(rejectsOffline: Bool) -> any Transport {
            let feature = configuration.feature
            return MonitoredTransport(
                base,
                monitor: reference.monitor,
                rejectsOffline: rejectsOffline,
                clock: opened.monotonicClock,
                makeRequestID: log != nil ? { @Sendable in RandomKey.make() } : nil,
                onBegin: log.map { log in { @Sendable in log.begin($0) } },
                onExchange: { telemetry.record($0, feature: feature($0.request)) }
            )
        }
        let gate = HostGate(
            clock: settings.monotonicClock,
            wall: settings.wallClock,
            random: settings.random,
            scope: configuration.retryScope,
            retryAfter: configuration.http.retryAfter
        )
        let sending = gate.guarding(transport(rejectsOffline: true))
        var signIn = HTTPSource(server, transport: gate.guarding(transport(rejectsOffline: false)))
        signIn.configuration = configuration.http
        signIn.wallClock = settings.wallClock
        session = try await BearerSession(
            cache,
            signIn,
            configuration.session,
            secrets: secrets,
            cookies: cookies
        )
        var source = HTTPSource(
            server,
            transport: sending,
            authorizer: session,
            configuration: configuration.http,
            mayUseNetwork: settings.mayUseNetwork
        )
        source.wallClock = settings.wallClock
        self.source = source
        writing = WriteOperations(source, uploading) { [weak cache] in cache?.isComing($0, besides: $1) ?? false }
        cache.outbox.register(writing.later)
        cache.outbox.register(writing.uploads)
        cache.outbox.register(writing.awaited)
        for operation in configuration.operations?(source, cache) ?? [] { cache.outbox.register(operation) }
        let authorized = AccountTransport(base: sending, session: session, source: source)
        var pictures = ImagePipeline.Configuration(transport: authorized)
        let stores = try ContentStores(configuration, settings, in: accountDirectories)
        self.stores = stores
        pictures.disk = stores.images
        pictures.policy.hidesCookies = configuration.keepsCookies
        pictures.memoryBytesMaximum = configuration.imageMemoryBytesMaximum
        pictures.clock = settings.wallClock
        pictures.uptime = settings.monotonicClock
        pictures.random = settings.random
        pictures.submitWhenIdle = services.submitWhenIdle
        pictures.onScroll = services.idle.map { idle in { @Sendable in idle.interacted() } }
        pictures.onEvent = { telemetry.record($0) }
        images = ImagePipeline(pictures)
        limits = LimitController(images, cache)
        channels = LiveChannelOpener(
            account: authorized,
            webSockets: gate.guarding(cookies?.attached(to: webSockets) ?? webSockets),
            gate: gate,
            clock: settings.monotonicClock
        )
        let httpSwitch = services.httpSwitch
        let belowCache = AccountTransport(base: sending, session: session, source: source, isBelowCache: true)
        http = Self.http(belowCache, configuration, settings, telemetry, stores.http) { httpSwitch.isOn }
        live = configuration.events.flatMap { [channels, receivedEvents, cache] events in
            guard !events.channels.isEmpty else { return nil }
            return LiveSync(.events(events, channels, receivedEvents), in: cache, afterGap: events.afterGap)
        }
        let probe = source.url(configuration.probePath)
        await services.begin(limits, settings, http.cache) {
            do { _ = try await sending.send(TransportRequest(url: probe)) } catch {
                // The transport has reported the outcome to the monitor.
            }
        }
        let maintained = [
            ("outbox", cache.outboxDisk), ("data", cache.disk), ("images", stores.images),
            ("http", http.cache == nil ? nil : stores.http),
        ]
        services.maintain(
            maintained.compactMap { name, disk in disk.map { StoreMaintenance.Item(name: name, disk: $0) } },
            settings.monotonicClock
        )
        uploading.begin(cache.outbox, source, settings.onEvent)
        cache.outbox.resume()
        if let inspector = configuration.inspector, let log {
            let parts = ClientReport.Parts(
                account: account,
                server: server,
                appVersion: configuration.services.appVersion,
                cache: cache,
                session: session,
                network: services.network,
                memory: services.memory,
                requests: log
            )
            services.inspect(ClientInspector(inspector, token: configuration.inspectorToken, webSockets, parts))
        }
        guard let live else { return }
        if configuration.events?.needsSession ?? false { limitToSession(live) }
        live.start()
    }

    /// Connects the settings of the cache to the monitor and to telemetry.
    private static func connect(
        _ settings: inout CacheConfiguration,
        _ telemetry: Telemetry,
        _ reference: RunningServices.MonitorReference,
        _ uploading: Uploading
    ) {
        let (mayUseNetwork, behavior, onEvent) = (settings.mayUseNetwork, settings.networkBehavior, settings.onEvent)
        settings.mayUseNetwork = { mayUseNetwork() && (reference.monitor?.mayTry ?? true) }
        settings.networkBehavior = { reference.monitor?.behavior ?? behavior() }
        settings.onEvent = { event in
            telemetry.record(event)
            onEvent(event)
            uploading.note(event, onEvent)
        }
    }

    deinit {
        // The cache and the session retain each other until the cache is closed.
        close()
    }

    /// Whether a feature is cached at present, for `Resource.isCached` and `PagedResource.isCached`: by the flag
    /// `FeatureFlags.Key.cache(of:)`.
    ///
    ///     articles.isCached = client.isCached("articles")
    public func isCached(_ feature: String) -> @Sendable () -> Bool {
        guard let flags else { return { true } }
        return { flags[.cache(of: feature)] }
    }

    /// Reports the progress of a synchronisation to telemetry until the client is closed.
    public func count(_ sync: ChangeSync) { services.count(sync) }

    /// Lets a live sync run only while a user is signed in, until the client is closed: it stops when the session ends, and a started one
    /// continues after the next sign-in, at most half a minute after one in another process. `live` needs no call.
    public func limitToSession(_ live: LiveSync) { services.limit(live, to: session) }

    /// Ends all tasks and releases system resources. Stored values and unsent changes are kept, and telemetry can still be read.
    public func close() {
        live?.stop()
        services.end()
        images.close()
        cache.close()
    }
}
