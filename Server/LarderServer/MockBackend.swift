// The clock, the dialect and the sizes of worlds are part of this module's interface.
@_exported public import LarderBackend
package import LarderEngine
import LarderHTTP
package import LarderSQLite
import LarderTLS
public import LarderTime

/// A mock backend in this process, for tests and tools.
///
/// Safe from any thread. Several can run at once, each with its own state and port; each can hold many worlds.
///
/// ```swift
/// let backend = try MockBackend.start(.fixtures(directory: "Fixtures"))
/// let world = try backend.makeWorld()                         // isolated from other tests
/// print(world.url)                                            // for the client under test
/// await backend.stop()
/// ```
public final class MockBackend: Sendable {
    /// The configuration of a backend. The defaults are those of `larder-server`, except for the port: any free one.
    public struct Configuration: Sendable {
        package var server = ServerConfiguration()
        package var settings = WorldSettings()
        package var log: AccessLog?
        package var databasePath: String?
        package var durability: Database.Durability = .full
        /// What answers the requests.
        package var origin = RequestOriginChoice.domain
        package var proxy = ProxySettings()
        /// The seed of everything random; nil uses the system's randomness.
        public var seed: UInt64?
        /// The maximum number of worlds.
        public var worldsMaximum = 2_000
        /// After how long without a request a world other than `main` is removed, on the server's clock; nil for never. An open live
        /// channel does not count as a request.
        public var worldIdleLimit: Duration?
        /// The directory of persistent snapshots; nil keeps all in memory.
        public var snapshotsDirectory: String?
        /// The required token of the control plane; nil if access from this machine suffices.
        public var controlToken: String?
        /// A file of custom routes, or a directory of such files; nil for none. With `WorldSource.empty` there is no demo API beside them.
        public var routes: String?
        /// An OpenAPI description that requests and replies are checked against; nil for none. Findings are in journal and conduct report.
        public var contract: String?
        /// Whether changes of routes, collections, contracts and fault scripts are loaded when their files change.
        public var watchesFiles = false
        /// Whether each change of collections in `main` is written into their files.
        public var writesBack = false
        /// Told what was loaded again, what is wrong with a file, and why the server behind the proxy does not answer.
        package var announce: (@Sendable (String) -> Void)?
        /// Origins of other pages that may use the control plane, such as `http://localhost:3000`.
        public var controlOrigins: Set<String> = []
        /// Whether the control plane is reachable over HTTP.
        public var hasControl = true
        /// The certificates of https, which is served on the same port as http; nil: only http is served.
        public var certificates: ServerCertificates?
        /// Requests of one caller per minute; nil for no limit.
        public var rateLimit: Int? {
            get { settings.rateLimit }
            set { settings.rateLimit = newValue }
        }
        /// The number of exchanges and frames in each world's journal; 0 disables it.
        public var journalCapacity = 4_096 {
            didSet { journalCapacity = max(0, journalCapacity) }
        }

        /// The default configuration.
        public init() {}

        var worldOptions: WorldOptions {
            WorldOptions(
                settings: settings,
                wall: server.wall,
                monotonic: server.monotonic,
                seed: seed,
                journalCapacity: journalCapacity,
                worldsMaximum: worldsMaximum,
                worldIdleLimit: worldIdleLimit,
                snapshotsDirectory: snapshotsDirectory,
                databasePath: databasePath,
                durability: durability
            )
        }

        /// Makes the backend follow a manual clock: dates, expiry, limits and timeouts.
        public mutating func use(_ clock: ManualClock) {
            server.monotonic = clock
            server.wall = clock
        }

        /// For tests: disables connection timeouts on the system's clock, because a delayed test must not lose its
        /// connection.
        package mutating func disableConnectionTimeouts() {
            guard !(server.monotonic is ManualClock) else { return }
            server.headReadTimeout = .seconds(86_400)
            server.idleTimeout = .seconds(86_400)
            server.heartbeat = .seconds(86_400)
        }
    }

    /// Whether the text is an origin as browsers send it, such as `http://localhost:3000`.
    package static func isOrigin(_ text: String) -> Bool { ControlGuard.isOrigin(text) }

    /// The server's version.
    public static let version = serverVersion

    let plane: ControlPlane
    private let server: HTTPServer
    private let claim: DatabaseClaim?
    private let certificates: CertificateSource?

    private init(
        _ plane: ControlPlane,
        _ server: HTTPServer,
        _ claim: DatabaseClaim?,
        _ certificates: CertificateSource?
    ) {
        self.plane = plane
        self.server = server
        self.claim = claim
        self.certificates = certificates
    }

    /// Starts a backend; it accepts connections when this method returns.
    ///
    /// - Throws: if the fixtures, the database or the address cannot be used. The error says what to do.
    public static func start(_ source: WorldSource, _ configuration: Configuration = Configuration()) throws
        -> MockBackend
    {
        let claim = try configuration.databasePath.map { path throws(DatabaseInUse) in try DatabaseClaim(path) }
        let options = configuration.worldOptions
        let (main, template) = try WorldFactory.makeMain(source, options)
        let worlds = WorldRegistry(main: main, template: template, source: source, options)
        let controlGuard = ControlGuard(
            token: configuration.controlToken,
            isEnabled: configuration.hasControl,
            origins: configuration.controlOrigins
        )
        let certificates = try configuration.certificates.map { choice throws(TLSError) in try CertificateSource(choice)
        }
        let customRoutes = CustomRoutes()
        var servesDemo = true
        if configuration.routes != nil, case .empty = source { servesDemo = false }
        let plane = ControlPlane(
            backend: Backend(customRoutes: customRoutes, servesDemo: servesDemo),
            files: SourceFiles(wall: configuration.server.wall, announce: configuration.announce),
            collectionFiles: try configuration.collectionFiles(source, worlds),
            worlds: worlds,
            controlGuard: controlGuard,
            log: configuration.log,
            origin: try configuration.origin.make(configuration.proxy, announce: configuration.announce),
            readsWorldPaths: configuration.proxy.readsWorldPaths,
            certificates: certificates
        ) {
            ControlEndpoints.answer($0, $1, $2, worldID: $3)
        }
        var serverConfiguration = configuration.server
        if let certificates {
            serverConfiguration.tls = { peer throws(TLSError) in try plane.beginTLS(certificates, with: peer) }
        }
        try plane.load(configuration)
        let server: HTTPServer
        do { server = try HTTPServer(serverConfiguration, handler: plane) } catch {
            plane.files.stop()
            throw error
        }
        plane.attach(server)
        return MockBackend(plane, server, claim, certificates)
    }

    /// The event loops, to be stepped if the configuration says so (`ServerConfiguration.isStepped`).
    package var loops: [EventLoop] { server.loops }

    /// The base URL: `http://127.0.0.1:49152`.
    public var url: String { "http://\(server.address)" }

    /// The base URL for https: `https://127.0.0.1:49152`; nil without `Configuration.certificates`.
    public var secureURL: String? { certificates == nil ? nil : "https://\(server.address)" }

    /// The certificate of the authority that clients must trust for https, in PEM; nil without one.
    public var authorityPEM: String? { certificates?.authority?.certificate.pem }

    public var port: Int { server.address.port }

    /// Stops the server and frees the port.
    ///
    /// - Parameter grace: the time limit for requests in flight and closing WebSockets.
    public func stop(grace: Duration = .zero) async {
        // Otherwise long polls would delay the stop until the end of the grace period.
        for world in plane.worlds.all { world.live.stopWaiting() }
        plane.files.stop()
        await server.stop(grace: grace)
        plane.collectionFiles?.finish()
        plane.detach()
        claim?.release()
    }

    /// The world at the plain paths.
    public var main: MockWorld { MockWorld(plane, plane.worlds.main, url: url) }

    /// The first people of the world with their developer tokens.
    package func developerTokens(_ count: Int) throws -> [(name: String, token: String)] {
        try plane.worlds.main.firstPeople(count).map { ($0.name, DeveloperToken.text(for: $0.handle)) }
    }

    /// The user's own collections in `main`, by name; empty for the demo backend.
    package var collections: [String] { plane.worlds.main.collections }

    /// Starts a script of faults in `main`, and again when its file changes.
    ///
    /// - Returns: warnings about steps that have no effect.
    package func run(scriptAt path: String, reading: @escaping @Sendable () throws -> [UInt8]) throws -> [String] {
        try plane.files.add(.faults(path, plane, read: reading))
    }

    /// The names of the custom routes, such as `GET /users/{id}`.
    package var routes: [String] { plane.backend.customRoutes.names }

    // MARK: Worlds

    /// Makes a new world; a nil source uses that of `main`.
    ///
    /// - Throws: `Problem` if there are too many worlds or the name is taken.
    public func makeWorld(_ source: WorldSource? = nil, id: String? = nil, seed: UInt64? = nil) throws -> MockWorld {
        MockWorld(plane, try plane.worlds.create(id: id, source: source, seed: seed), url: url)
    }

    /// The world with that name.
    public func world(_ id: String) throws -> MockWorld { MockWorld(plane, try plane.worlds.world(id), url: url) }

    /// All worlds, including `main`.
    public var worlds: [MockWorld] { plane.worlds.all.map { MockWorld(plane, $0, url: url) } }
}
