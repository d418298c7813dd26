package import LarderEngine
import LarderHTTP
package import LarderSQLite
public import LarderTime

/// What a world begins with.
public enum WorldSource: Sendable, Hashable {
    /// The files in a directory.
    case fixtures(directory: String)
    /// A world made up from numbers: the same one for the same numbers.
    case generated(WorldNumbers, picturesFrom: String?)
    /// Nothing and nobody.
    case empty
}

/// A mock backend inside this process, for tests and tools.
///
/// Safe from any thread. Several can run at once, each with its own state and its own port; and one can hold many worlds.
public final class MockBackend: Sendable {
    /// How a backend is set up. The defaults are those of `larder-server`, but for the port: any that is free.
    public struct Configuration: Sendable {
        package var server = ServerConfiguration()
        package var settings = WorldSettings()
        package var log: (any AccessLog)?
        package var databasePath: String?
        package var durability: Database.Durability = .full
        /// Decides everything that is random in the world; nil takes the system's randomness.
        public var seed: UInt64?
        /// How many worlds there may be at once.
        public var worldsMaximum = 2_000
        /// Where snapshots go that are to outlive the process; nil keeps all in memory.
        public var snapshotsDirectory: String?
        /// The token that the control plane wants; nil where being on this machine is enough.
        public var controlToken: String?
        /// Origins whose pages may steer besides the server's own, such as `http://localhost:3000`.
        public var controlOrigins: Set<String> = []
        /// Whether the control plane is reachable over HTTP.
        public var hasControl = true
        /// Requests that one caller may make in a minute; nil for no limit.
        public var rateLimit: Int? {
            get { settings.rateLimit }
            set { settings.rateLimit = newValue }
        }
        /// How many exchanges and frames each world's journal keeps; 0 keeps none.
        public var journalCapacity: Int {
            get { settings.journalCapacity }
            set { settings.journalCapacity = max(0, newValue) }
        }

        /// The defaults.
        public init() {}

        /// Has the backend live by a clock that is moved by hand: dates, expiry, limits and time-outs follow it.
        public mutating func use(_ clock: ManualClock) {
            server.monotonic = clock
            server.wall = clock
        }

        /// For tests: by the system's clock no connection times out, because whoever waits for a processor has not left.
        package mutating func waitPatiently() {
            guard !(server.monotonic is ManualClock) else { return }
            server.headReadTimeout = .seconds(86_400)
            server.idleTimeout = .seconds(86_400)
            server.heartbeat = .seconds(86_400)
        }
    }

    /// Whether the text is an origin as a browser sends it, such as `http://localhost:3000`.
    package static func isOrigin(_ text: String) -> Bool { ControlGuard.isOrigin(text) }

    /// The version that the server tells.
    public static let version = "0.2.0"

    let plane: ControlPlane
    private let server: HTTPServer
    private let claim: DatabaseClaim?

    private init(_ plane: ControlPlane, _ server: HTTPServer, _ claim: DatabaseClaim?) {
        self.plane = plane
        self.server = server
        self.claim = claim
    }

    /// Starts a backend; it serves when this returns.
    ///
    /// - Throws: when the fixtures, the database or the address cannot be used. The error says what to do.
    public static func start(_ source: WorldSource, _ configuration: Configuration = Configuration()) throws
        -> MockBackend
    {
        let claim = try configuration.databasePath.map { path throws(DatabaseInUse) in try DatabaseClaim(path) }
        let headFaults = HeadFaultCount()
        let (main, template) = try WorldFactory.makeMain(source, configuration, headFaults)
        let worlds = WorldRegistry(main: main, template: template, source: source, headFaults, configuration)
        return try serve(worlds, configuration, claim)
    }

    /// Starts a backend one of whose worlds goes on from a state as if it had never stopped.
    static func start(
        resuming template: WorldTemplate,
        worldID: String,
        _ configuration: Configuration
    ) throws -> MockBackend {
        let headFaults = HeadFaultCount()
        let isMain = worldID == World.mainID
        let first = isMain ? template : try WorldTemplate.make(.empty)
        let main = try World(
            id: World.mainID,
            image: first.image,
            images: first.images,
            clock: WorldClock(wall: configuration.server.wall, monotonic: configuration.server.monotonic),
            seed: configuration.seed ?? 0,
            settings: configuration.settings,
            headFaults: headFaults,
            branches: !isMain
        )
        let worlds = WorldRegistry(main: main, template: first, source: .empty, headFaults, configuration)
        if !isMain { try worlds.resume(template, id: worldID, seed: configuration.seed ?? 0) }
        return try serve(worlds, configuration)
    }

    private static func serve(
        _ worlds: WorldRegistry,
        _ configuration: Configuration,
        _ claim: DatabaseClaim? = nil
    ) throws -> MockBackend {
        let guardian = ControlGuard(
            token: configuration.controlToken,
            isEnabled: configuration.hasControl,
            origins: configuration.controlOrigins
        )
        let plane = ControlPlane(worlds: worlds, guardian: guardian, log: configuration.log)
        let server = try HTTPServer(configuration.server, handler: plane)
        plane.attach(server)
        return MockBackend(plane, server, claim)
    }

    /// Where it serves: `http://127.0.0.1:49152`.
    public var url: String { "http://\(server.address)" }

    /// The port that it serves on.
    public var port: Int { server.address.port }

    /// Stops serving and frees the port.
    ///
    /// - Parameter grace: how long requests that are being answered, and WebSockets that are being closed, may take.
    public func stop(grace: Duration = .zero) async {
        // Long polls would otherwise keep everybody waiting for nothing until the grace is over.
        for world in plane.worlds.all { world.live.stopWaiting() }
        await server.stop(grace: grace)
        plane.detach()
        claim?.release()
    }

    /// The world that the plain paths serve.
    public var main: MockWorld { MockWorld(plane, plane.worlds.main, url: url) }

    /// The first people of the world and the tokens that they have without signing in.
    package func developerTokens(_ count: Int) throws -> [(name: String, token: String)] {
        try plane.worlds.main.firstPeople(count).map { ($0.name, DeveloperToken.text(for: $0.handle)) }
    }

    // MARK: Worlds

    /// Makes a world of its own, apart from all others; nil for what the backend itself began with.
    ///
    /// - Throws: `Problem` when there are too many, or one of that name.
    public func makeWorld(_ source: WorldSource? = nil, id: String? = nil, seed: UInt64? = nil) throws -> MockWorld {
        MockWorld(plane, try plane.worlds.create(id: id, source: source, seed: seed), url: url)
    }

    /// The world of that name.
    public func world(_ id: String) throws -> MockWorld { MockWorld(plane, try plane.worlds.world(id), url: url) }

    /// All worlds, `main` among them.
    public var worlds: [MockWorld] { plane.worlds.all.map { MockWorld(plane, $0, url: url) } }

    /// Contradictions in the ledger of `main`, each in a sentence; none in a sound one.
    public func ledgerFaults() throws -> [String] { try main.ledgerFaults() }
}
