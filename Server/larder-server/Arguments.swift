import LarderArguments
import LarderHTTP
import LarderServer

/// The parsed command line.
struct Arguments {
    enum Action {
        case serve
        case check
        case checkHealth(url: String)
        case help
        case version
        /// Writes an example of collections into a directory.
        case initialize(directory: String)
        /// Makes routes from an OpenAPI description or an HTTP archive.
        case importRoutes(file: String)
        case control(ControlCommand)
        case scenarios(ScenarioCommand)
        case certificate(CertificateCommand)
    }

    var action = Action.serve
    var host = "127.0.0.1"
    var port = 8080
    var database: String?
    /// Nil: see `FixtureDirectory`.
    var fixtures: String?
    /// A directory of the user's own collections.
    var data: String?
    /// A file or a directory of custom routes.
    var routes: String?
    var worldSize: WorldSize?
    var loops = 1
    /// Whether https is served with certificates of the development authority.
    var servesTLS = false
    /// The user's own certificate and key for https.
    var certificate: String?
    var key: String?
    var log: String?
    var isQuiet = false
    var rateLimit: Int?
    var headLimit: Int?
    var bodyLimit: Int?
    var connectionLimit: Int?
    var headTimeout: Int?
    var idleTimeout: Int?
    var tokenTTL: Int?
    var tombstoneRetention: Int?
    var isDurable = true
    var usesResponseCache = true
    var profile: String?
    var script: String?
    var clock: ClockSetting?
    var worldSeed: UInt64?
    var controlToken = Environment["LARDER_CONTROL_TOKEN"].flatMap { $0.isEmpty ? nil : $0 }
    var controlOrigins: Set<String> = []
    var hasControl = true
    var journal: Int?
    var worlds: Int?
    var worldIdle: Int?
    var snapshots: String?
    /// `larder-server proxy`: the URL of the server behind it.
    var upstream: HTTPURL?
    /// `larder-server proxy`: the recording that answers instead of a server.
    var recording: String?
    /// `larder-server proxy`: a file with the authorities of the server behind it, instead of the system's.
    var authorities: String?
    /// `larder-server proxy`: whether any certificate of that server is accepted.
    var isInsecure = false
    /// `larder-server proxy`: further host names that requests may have.
    var allowedHosts: Set<String> = []
    /// `larder-server proxy`: whether paths below `/w/` name worlds.
    var readsWorldPaths = true

    /// The initial mode of the clock of `main`.
    enum ClockSetting {
        case real
        case frozen(String?)
        case running(factor: Double, from: String?)
    }

    init(_ words: [String]) throws(UsageError) {
        if words.first == "init" {
            guard words.count == 2, !words[1].hasPrefix("-") else {
                throw UsageError(message: "usage: larder-server init DIR")
            }
            action = .initialize(directory: words[1])
            return
        }
        if words.first == "routes" {
            guard words.count == 3, words[1] == "from", !words[2].hasPrefix("-") || words[2] == "-" else {
                throw UsageError(
                    message: "usage: larder-server routes from openapi.json|recording.har > api/routes.json"
                )
            }
            action = .importRoutes(file: words[2])
            return
        }
        if words.first == "certificate", !words.contains("--help") {
            action = .certificate(try CertificateCommand(Array(words.dropFirst())))
            return
        }
        let isProxy = words.first == "proxy"
        if let first = words.first, !first.hasPrefix("-"), !isProxy {
            let asksForHelp = words.prefix { $0 != "--" }.contains { $0 == "--help" || $0 == "-h" }
            action =
                first == "scenarios" && !asksForHelp
                ? .scenarios(try ScenarioCommand(Array(words.dropFirst()))) : .control(try ControlCommand(words))
            return
        }
        var rest = words[...].dropFirst(isProxy ? 1 : 0)
        while let flag = rest.popFirst() {
            let (name, inline) = FlagParser.split(flag)
            let options = Help.options
            guard !name.hasPrefix("--") || options.contains(name) else {
                throw .unknown("unknown argument", name, in: options, orElse: "--help lists all options")
            }
            switch name {
            case "--help", "-h": action = .help
            case "--version": action = .version
            case "--check": action = .check
            case "--check-health": action = .checkHealth(url: try FlagParser.value(name, inline, &rest))
            case "--host": host = try FlagParser.value(name, inline, &rest)
            case "--port": port = try FlagParser.number(name, inline, &rest, 0...65_535)
            case "--database": database = try FlagParser.value(name, inline, &rest)
            case "--data": data = try FlagParser.value(name, inline, &rest)
            case "--routes": routes = try FlagParser.value(name, inline, &rest)
            case "--fixtures": fixtures = try FlagParser.value(name, inline, &rest)
            case "--seed":
                let text = try FlagParser.value(name, inline, &rest)
                guard let seed = UInt64(text) else {
                    throw UsageError(message: "--seed requires an integer, not '\(text)'")
                }
                change { $0.seed = seed }
            case "--people":
                let count = try FlagParser.number(name, inline, &rest, 1...1_000_000)
                change { $0.people = count }
            case "--posts":
                let count = try FlagParser.number(name, inline, &rest, 0...10_000_000)
                change { $0.posts = count }
            case "--messages":
                let count = try FlagParser.number(name, inline, &rest, 0...10_000_000)
                change { $0.messages = count }
            case "--conversations":
                let count = try FlagParser.number(name, inline, &rest, 0...1_000_000)
                change { $0.conversations = count }
            case "--tasks":
                let count = try FlagParser.number(name, inline, &rest, 0...10_000_000)
                change { $0.tasks = count }
            case "--transfers":
                let count = try FlagParser.number(name, inline, &rest, 0...10_000_000)
                change { $0.transfers = count }
            case "--tls": servesTLS = true
            case "--certificate": certificate = try FlagParser.value(name, inline, &rest)
            case "--key": key = try FlagParser.value(name, inline, &rest)
            case "--loops": loops = try FlagParser.number(name, inline, &rest, 1...256)
            case "--log":
                let format = try FlagParser.value(name, inline, &rest)
                guard format == "text" || format == "json" else {
                    throw UsageError(message: "--log requires text or json, not '\(format)'")
                }
                log = format
            case "--quiet", "-q": isQuiet = true
            case "--rate-limit": rateLimit = try FlagParser.number(name, inline, &rest, 1...1_000_000_000)
            case "--head-limit": headLimit = try FlagParser.number(name, inline, &rest, 256...1 << 20)
            case "--body-limit": bodyLimit = try FlagParser.number(name, inline, &rest, 0...1 << 30)
            case "--connection-limit": connectionLimit = try FlagParser.number(name, inline, &rest, 1...1_000_000)
            case "--head-timeout": headTimeout = try FlagParser.number(name, inline, &rest, 1...3_600)
            case "--idle-timeout": idleTimeout = try FlagParser.number(name, inline, &rest, 1...86_400)
            case "--token-ttl": tokenTTL = try FlagParser.number(name, inline, &rest, 1...31_536_000)
            case "--tombstone-retention":
                tombstoneRetention = try FlagParser.number(name, inline, &rest, 1...31_536_000)
            case "--no-power-loss-safety": isDurable = false
            case "--no-response-cache": usesResponseCache = false
            case "--profile":
                let journey = try FlagParser.value(name, inline, &rest)
                guard Journey(rawValue: journey) != nil else {
                    let names = Journey.allCases.map(\.rawValue).joined(separator: ", ")
                    throw UsageError(message: "--profile requires one of \(names), not '\(journey)'")
                }
                profile = journey
            case "--faults": script = try FlagParser.value(name, inline, &rest)
            case "--clock": clock = try Self.clock(try FlagParser.value(name, inline, &rest))
            case "--world-seed":
                let text = try FlagParser.value(name, inline, &rest)
                guard let seed = UInt64(text) else {
                    throw UsageError(message: "--world-seed requires an integer, not '\(text)'")
                }
                worldSeed = seed
            case "--control-token": controlToken = try FlagParser.value(name, inline, &rest)
            case "--control-origin":
                let origin = try FlagParser.value(name, inline, &rest)
                guard MockBackend.isOrigin(origin) else {
                    throw UsageError(
                        message: "--control-origin requires an origin such as http://localhost:3000, not '\(origin)'"
                    )
                }
                controlOrigins.insert(origin)
            case "--no-control": hasControl = false
            case "--journal": journal = try FlagParser.number(name, inline, &rest, 0...1_000_000)
            case "--no-journal": journal = 0
            case "--worlds": worlds = try FlagParser.number(name, inline, &rest, 1...100_000)
            case "--world-idle": worldIdle = try FlagParser.number(name, inline, &rest, 1...31_536_000)
            case "--snapshots": snapshots = try FlagParser.value(name, inline, &rest)
            case "--to" where isProxy:
                let text = try FlagParser.value(name, inline, &rest)
                guard let url = HTTPURL(text, schemes: [.http, .https]), url.query == nil, url.userInfo == nil else {
                    throw UsageError(
                        message: "--to requires an http or https URL such as http://127.0.0.1:3000, not '\(text)'"
                    )
                }
                upstream = url
            case "--ca" where isProxy: authorities = try FlagParser.value(name, inline, &rest)
            case "--insecure" where isProxy: isInsecure = true
            case "--play" where isProxy: recording = try FlagParser.value(name, inline, &rest)
            case "--allow-host" where isProxy: allowedHosts.insert(try FlagParser.value(name, inline, &rest))
            case "--no-world-paths" where isProxy: readsWorldPaths = false
            default: throw UsageError(message: "unknown argument '\(flag)'; --help lists all options")
            }
        }
        if isProxy, case .serve = action { try checkProxy() }
        guard (certificate == nil) == (key == nil) else {
            throw UsageError(message: "--certificate and --key belong together: give both files")
        }
        if data != nil, fixtures != nil || worldSize != nil {
            throw UsageError(message: "--data replaces the demo backend's data; omit --fixtures, --seed and the sizes")
        }
        if fixtures != nil, worldSize != nil {
            throw UsageError(message: "--fixtures has data of its own; omit --seed and the sizes, or --fixtures")
        }
        if worldSize != nil, case .check = action {
            throw UsageError(message: "--check only reads a database; omit --seed and the sizes")
        }
        if hasControl, controlToken == nil, !Self.isLoopback(host), case .serve = action {
            throw UsageError(
                message: "--host \(host) is reachable from outside: set --control-token TOKEN, or --no-control"
            )
        }
        if case .check = action, database == nil { throw UsageError(message: "--check requires --database PATH") }
    }

    /// Rejects what a proxy cannot do.
    private func checkProxy() throws(UsageError) {
        guard (upstream == nil) != (recording == nil) else {
            throw UsageError(message: "usage: larder-server proxy --to URL | --play RECORDING [options]")
        }
        let dataFlags: [(String, Bool)] = [
            ("--data", data != nil), ("--routes", routes != nil), ("--database", database != nil),
            ("--fixtures", fixtures != nil),
            ("--seed and sizes", worldSize != nil),
            ("--rate-limit", rateLimit != nil), ("--token-ttl", tokenTTL != nil),
            ("--tombstone-retention", tombstoneRetention != nil), ("--snapshots", snapshots != nil),
        ]
        if let flag = dataFlags.first(where: \.1)?.0 {
            throw UsageError(message: "\(flag) concerns the data of larder-server; a proxy has none")
        }
    }

    private mutating func change(_ body: (inout WorldSize) -> Void) {
        var changed = worldSize ?? WorldSize()
        body(&changed)
        worldSize = changed
    }

    static func isLoopback(_ host: String) -> Bool {
        host == "localhost" || host == "::1" || host.hasPrefix("127.")
    }

    /// `real`, `frozen`, `frozen@TIME`, `x60` or `x60@TIME`.
    private static func clock(_ text: String) throws(UsageError) -> ClockSetting {
        let parts = text.split(separator: "@", maxSplits: 1).map { String($0) }
        let time = parts.count > 1 ? parts[1] : nil
        if text == "real" { return .real }
        if parts.first == "frozen" { return .frozen(time) }
        if let first = parts.first, first.hasPrefix("x"), let factor = Double(first.dropFirst()), factor > 0,
            factor <= 1_000_000
        {
            return .running(factor: factor, from: time)
        }
        throw UsageError(message: "--clock requires real, frozen, frozen@2026-01-01T00:00:00Z or x60, not '\(text)'")
    }
}
