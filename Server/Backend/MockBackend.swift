package import LarderEngine
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
/// Safe from any thread. Several can run at once, each with its own state and its own port.
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

        /// The defaults.
        public init() {}

        /// Has the backend live by a clock that is moved by hand: dates, expiry, limits and time-outs follow it.
        public mutating func use(_ clock: ManualClock) {
            server.monotonic = clock
            server.wall = clock
        }
    }

    package let backend: Backend
    private let server: HTTPServer

    private init(_ backend: Backend, _ server: HTTPServer) {
        self.backend = backend
        self.server = server
    }

    /// Starts a backend; it serves when this returns.
    ///
    /// - Throws: when the fixtures, the database or the address cannot be used. The error says what to do.
    public static func start(_ source: WorldSource, _ configuration: Configuration = Configuration()) throws
        -> MockBackend
    {
        let world = try WorldFactory.make(source, configuration)
        let backend = Backend(world: world, log: configuration.log)
        return MockBackend(backend, try HTTPServer(configuration.server, handler: backend))
    }

    /// Where it serves: `http://127.0.0.1:49152`.
    public var url: String { "http://\(server.address)" }

    /// The port that it serves on.
    public var port: Int { server.address.port }

    /// Stops serving and frees the port.
    ///
    /// - Parameter grace: how long requests that are being answered, and WebSockets that are being closed, may take.
    public func stop(grace: Duration = .zero) async { await server.stop(grace: grace) }

    /// The first people of the world and the tokens that they have without signing in.
    package func developerTokens(_ count: Int) throws -> [(name: String, token: String)] {
        try backend.world.firstPeople(count).map { ($0.name, DeveloperToken.text(for: $0.handle)) }
    }

    /// Contradictions in the ledger, each in a sentence; none in a sound one.
    public func ledgerFaults() throws -> [String] { try backend.world.checkLedger().map(\.description) }
}
