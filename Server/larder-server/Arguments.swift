import LarderArguments
import LarderEngine
import LarderHTTP
import LarderServer
import LarderTime

/// The parsed command line.
struct Arguments {
    enum Action {
        case serve
        case check
        case checkHealth(url: String)
        case help(String)
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
    /// What the options say about the server itself.
    var configuration = MockBackend.Configuration()
    /// Nil: see `FixtureDirectory`.
    var fixtures: String?
    /// A directory of the user's own collections.
    var data: String?
    var worldSize: WorldSize?
    /// Whether https is served with certificates of the development authority.
    var servesTLS = false
    /// The user's own certificate and key for https.
    var certificate: String?
    var key: String?
    var isQuiet = false
    var journey: Journey?
    var script: String?
    /// The initial mode and time of the clock of `main`.
    var clock: ClockSetting?
    /// `larder-server proxy`: the URL of the server behind it.
    var upstream: HTTPURL?
    /// `larder-server proxy`: the recording that answers instead of a server.
    var recording: String?
    /// `larder-server proxy`: a file with the authorities of the server behind it, instead of the system's.
    var authorities: String?

    typealias ClockSetting = (mode: WorldClock.Mode, time: WallTime?)

    /// The names of the options that were given.
    private(set) var given: Set<String> = []

    init(_ words: [String]) throws(UsageError) {
        configuration.server.port = 8_080
        configuration.controlToken = Environment["LARDER_CONTROL_TOKEN"].flatMap { $0.isEmpty ? nil : $0 }
        // What begins with an option serves.
        switch words.first {
        case nil, "serve"?: try parse(words.dropFirst(), isProxy: false)
        case let first? where first.hasPrefix("-"): try parse(words[...], isProxy: false)
        case let first?:
            let isHelp = words.prefix { $0 != "--" }.contains { $0 == "--help" || $0 == "-h" }
            if isHelp || first == "help" {
                // The help of `--help` and of `help` is one text.
                let topic = first == "help" ? words.dropFirst().first { !$0.hasPrefix("-") } : first
                action = .help(try Help.text(of: topic))
                return
            }
            try parse(first, Array(words.dropFirst()))
        }
    }

    private mutating func parse(_ command: String, _ rest: [String]) throws(UsageError) {
        switch command {
        case "proxy": try parse(rest[...], isProxy: true)
        case "init":
            guard rest.count == 1, !rest[0].hasPrefix("-") else { throw CommandUsage.table.wrong(command) }
            action = .initialize(directory: rest[0])
        case "routes":
            guard rest.count == 2, rest[0] == "from", !rest[1].hasPrefix("-") || rest[1] == "-" else {
                throw CommandUsage.table.wrong(command, rest.prefix(1))
            }
            action = .importRoutes(file: rest[1])
        case "certificate": action = .certificate(try CertificateCommand(rest))
        case "scenarios": action = .scenarios(try ScenarioCommand(rest))
        default: action = .control(try ControlCommand([command] + rest))
        }
    }

    private mutating func parse(_ words: ArraySlice<String>, isProxy: Bool) throws(UsageError) {
        let ofCommands = ControlCommand.options.words(of: ControlCommand.commonOptions)
        if let first = words.first, ofCommands.contains(first), !Self.options.words().contains(first) {
            throw UsageError(message: "\(first) belongs behind a command: larder-server journal \(first) …")
        }
        given = try Self.options.parse(words, into: &self, orElse: "--help lists all options")
        guard case .serve = action else {
            if case .check = action, configuration.databasePath == nil {
                throw UsageError(message: "--check requires --database PATH")
            }
            return try checkConflicts()
        }
        try checkConflicts()
        if isProxy {
            guard (upstream == nil) != (recording == nil) else { throw CommandUsage.table.wrong("proxy") }
            if let name = Self.ofDemo.first(where: { given.contains($0) }) {
                throw UsageError(message: "\(name) concerns the data of larder-server; a proxy has none")
            }
        } else if let name = Self.ofProxy.first(where: { given.contains($0) }) {
            throw UsageError(message: "\(name) is an option of larder-server proxy")
        }
        guard (certificate == nil) == (key == nil) else {
            throw UsageError(message: "--certificate and --key belong together: give both files")
        }
        if configuration.writesBack, data == nil { throw UsageError(message: "--write-back requires --data DIR") }
        let host = configuration.server.host
        if configuration.hasControl, configuration.controlToken == nil, !Self.isLoopback(host) {
            throw UsageError(
                message: "--host \(host) is reachable from outside: set --control-token TOKEN, or --no-control"
            )
        }
    }

    private static let sizes = [
        "--seed", "--people", "--posts", "--conversations", "--messages", "--tasks", "--transfers",
    ]
    /// What concerns the state that a proxy does not have.
    private static let ofDemo =
        ["--data", "--write-back", "--database", "--no-power-loss-safety", "--fixtures"] + sizes
        + ["--rate-limit", "--token-ttl", "--tombstone-retention", "--snapshots"]
    private static let ofProxy = ["--to", "--play", "--ca", "--insecure", "--allow-host", "--no-world-paths"]

    /// Options that exclude each other, and why.
    private static let conflicts: [(name: String, others: [String], reason: String)] = [
        ("--data", ["--fixtures"] + sizes, "--data replaces the demo backend's data"),
        ("--fixtures", sizes, "--fixtures has data of its own"),
        ("--check", sizes, "--check only reads a database"),
        ("--write-back", ["--database"], "a database keeps the changes"),
        ("--contract", ["--no-journal"], "its findings are in the journal"),
        ("--journal", ["--no-journal"], "one of them sets the size, the other one disables it"),
        ("--log", ["--quiet"], "--quiet writes no log"),
        ("--tls", ["--certificate"], "--certificate serves https with your own certificate"),
        ("--no-control", ["--control-token", "--control-origin"], "--no-control disables what they protect"),
        ("--insecure", ["--ca"], "--insecure accepts any certificate"),
        ("--play", ["--to", "--ca", "--insecure"], "a recording asks no server"),
    ]

    private func checkConflicts() throws(UsageError) {
        for (name, others, reason) in Self.conflicts where given.contains(name) {
            guard let other = others.first(where: { given.contains($0) }) else { continue }
            let what = Self.sizes.contains(other) ? "--seed and the sizes" : other
            throw UsageError(message: "\(reason): omit \(what), or \(name)")
        }
    }

    /// `worldSize`, which the options change.
    var size: WorldSize {
        get { worldSize ?? WorldSize() }
        set { worldSize = newValue }
    }

    static func isLoopback(_ host: String) -> Bool {
        host == "localhost" || host == "::1" || host.hasPrefix("127.")
    }

    /// `real`, `frozen`, `frozen@TIME`, `x60` or `x60@TIME`.
    static func clock(_ text: String) throws(UsageError) -> ClockSetting {
        let parts = text.split(separator: "@", maxSplits: 1).map { String($0) }
        let time = parts.count > 1 ? WallTime(rfc3339: parts[1]) : nil
        if parts.count > 1, time == nil {
            throw UsageError(message: "--clock requires a time such as 2026-01-01T00:00:00Z, not '\(parts[1])'")
        }
        if text == "real" { return (.real, nil) }
        if parts.first == "frozen" { return (.frozen, time) }
        if let first = parts.first, first.hasPrefix("x"), let factor = Double(first.dropFirst()), factor > 0,
            factor <= 1_000_000
        {
            return (.running(factor: factor), time)
        }
        throw UsageError(message: "--clock requires real, frozen, frozen@2026-01-01T00:00:00Z or x60, not '\(text)'")
    }
}
