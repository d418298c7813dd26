package import LarderEngine
package import LarderHTTP
package import LarderSQLite
package import LarderTLS
public import LarderTime

/// The configuration of a backend. The defaults are those of `larder-server`, except for the port: any free one.
public struct BackendConfiguration: Sendable {
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
    /// The directory of persistent snapshots, which is made if there is none; nil keeps all in memory.
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

/// What `MockBackend.start` shall put behind faults, gates and journal.
package enum RequestOriginChoice: Sendable {
    case domain
    case server(HTTPURL)
    /// The replies of an HTTP archive.
    case recording([UInt8])
}

/// The settings of a server that stands before another one, or before a recording.
package struct ProxySettings: Sendable {
    /// Whether a path below `/w/` names a world. If not, such paths are those of the other server.
    package var readsWorldPaths = true
    /// Further host names that requests may have.
    package var allowedHosts: Set<String> = []
    /// The maximum size of all complete bodies in memory: of requests until they are answered, and of replies until they are written.
    package var bodyBytesMaximum = 512 << 20
    /// How a server with https is checked.
    package var tls = TLSSettings()

    package init() {}
}
