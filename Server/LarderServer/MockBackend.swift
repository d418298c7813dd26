// The clock, the dialect and the sizes of worlds are part of this module's interface.
@_exported public import LarderBackend
package import LarderEngine
import LarderTLS

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
    /// The defaults are those of `larder-server`, except for the port: any free one.
    public typealias Configuration = BackendConfiguration

    /// Whether the text is an origin as browsers send it, such as `http://localhost:3000`.
    package static func isOrigin(_ text: String) -> Bool { ControlGuard.isOrigin(text) }

    /// The server's version.
    public static let version = serverVersion

    let plane: ControlPlane
    private let server: HTTPServer
    private let claim: DatabaseClaim?

    private init(_ plane: ControlPlane, _ server: HTTPServer, _ claim: DatabaseClaim?) {
        (self.plane, self.server, self.claim) = (plane, server, claim)
    }

    /// Starts a backend; it accepts connections when this method returns.
    ///
    /// - Throws: if the fixtures, the database or the address cannot be used. The error says what to do.
    public static func start(_ source: WorldSource, _ configuration: Configuration = Configuration()) throws
        -> MockBackend
    {
        let claim = try configuration.databasePath.map { path throws(DatabaseInUse) in try DatabaseClaim(path) }
        let plane = try ControlPlane(source, configuration) {
            ControlEndpoints.answer($0, $1, $2, worldID: $3)
        }
        var serverConfiguration = configuration.server
        if let certificates = plane.certificates {
            serverConfiguration.tls = { peer throws(TLSError) in try plane.beginTLS(certificates, with: peer) }
        }
        try plane.load(configuration)
        let server: HTTPServer
        do { server = try HTTPServer(serverConfiguration, handler: plane) } catch {
            plane.files.stop()
            throw error
        }
        plane.attach(server)
        return MockBackend(plane, server, claim)
    }

    /// The event loops, to be stepped if the configuration says so (`ServerConfiguration.isStepped`).
    package var loops: [EventLoop] { server.loops }

    /// The base URL: `http://127.0.0.1:49152`.
    public var url: String { "http://\(server.address)" }

    /// The base URL for https: `https://127.0.0.1:49152`; nil without `Configuration.certificates`.
    public var secureURL: String? { plane.servesTLS ? "https://\(server.address)" : nil }

    /// The certificate of the authority that clients must trust for https, in PEM; nil without one.
    public var authorityPEM: String? { plane.certificates?.authority?.certificate.pem }

    public var port: Int { server.address.port }

    /// Stops the server and frees the port.
    ///
    /// - Parameter grace: the time limit for requests in flight and closing WebSockets.
    public func stop(grace: Duration = .zero) async {
        // Otherwise long polls would delay the stop until the end of the grace period.
        for world in plane.worlds.all { world.live.tell(.worldEnds) }
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
