import LarderArguments
import LarderEngine
import LarderHTTP
import LarderSQLite
import LarderServer
import LarderTLS

extension Arguments {
    /// The options of a server and of a proxy.
    static var options: CommandOptions<Arguments> {
        CommandOptions([
            .init("ADDRESS", address), .init("DATA", data), .init("PROXY", proxy), .init("LIMITS", limits),
            .init("FAULT INJECTION", faults), .init("CONTROL", control), .init("OTHER", other),
        ])
    }

    private static var address: [CommandOption<Arguments>] {
        [
            .init("--host", "ADDRESS", "address to listen on (127.0.0.1)") { $0.configuration.server.host = $1 },
            .init("--port", short: "-p", "PORT", 0...65_535, "0 selects any free port (8080)") {
                $0.configuration.server.port = $1
            },
            .init(
                "--tls",
                """
                https and wss too, on the same port, with certificates of the development
                authority; see larder-server certificate
                """
            ) { $0.servesTLS = true },
            .init("--certificate", "FILE", "https with your own certificate and --key (PEM)", \.certificate),
            .init("--key", "FILE", "the key of --certificate", \.key),
            .init("--loops", "N", 1...256, "event loops, one thread each (1)") { $0.configuration.server.loops = $1 },
        ]
    }

    private static var data: [CommandOption<Arguments>] {
        [
            .init(
                "--fixtures",
                "DIR",
                """
                a directory of fixtures. Default: $LARDER_FIXTURES, ./Fixtures, or the
                installed ones; if there are none, a generated world
                """,
                \.fixtures
            ),
            .init(
                "--data",
                short: "-d",
                "DIR",
                """
                your own collections instead of the demo: NAME.json, each an array of
                objects with an id, or db.json
                """,
                \.data
            ),
            .init("--write-back", "write changed collections into the files of --data") {
                $0.configuration.writesBack = true
            },
            .init(
                "--routes",
                short: "-r",
                "PATH",
                """
                your own API: routes in a JSON file, or the *.json files of a directory;
                without data or fixtures there is no demo API; in front of your own server
                they are asked first. Files of --routes, --data, --contract and --faults
                are loaded again when they change
                """,
                \.configuration.routes
            ),
            .init(
                "--contract",
                "FILE",
                """
                check requests and replies against an OpenAPI description (JSON or YAML);
                findings are in the journal and in the report of larder-server conduct
                """,
                \.configuration.contract
            ),
            .init(
                "--seed",
                "N",
                """
                generated data instead of fixtures, of the sizes --people N, --posts N,
                --conversations N, --messages N, --tasks N and --transfers N
                """
            ) { (arguments, text) throws(UsageError) in arguments.size.seed = try integer("--seed", text) },
            .init("--people", "N", 1...1_000_000, "") { $0.size.people = $1 },
            .init("--posts", "N", 0...10_000_000, "") { $0.size.posts = $1 },
            .init("--conversations", "N", 0...1_000_000, "") { $0.size.conversations = $1 },
            .init("--messages", "N", 0...10_000_000, "") { $0.size.messages = $1 },
            .init("--tasks", "N", 0...10_000_000, "") { $0.size.tasks = $1 },
            .init("--transfers", "N", 0...10_000_000, "") { $0.size.transfers = $1 },
            .init(
                "--database",
                "PATH",
                "store the state in a SQLite file (default: in memory)",
                \.configuration.databasePath
            ),
            .init("--no-power-loss-safety", "faster commits, which survive a crash but not power loss") {
                $0.configuration.durability = .normal
            },
            .init("--check", "check the database's schema and ledger, then exit") { $0.action = .check },
        ]
    }

    private static var proxy: [CommandOption<Arguments>] {
        [
            .init("--to", "URL", "the server behind the proxy") { (arguments, text) throws(UsageError) in
                guard let url = HTTPURL(text, schemes: [.http, .https]), url.query == nil, url.userInfo == nil else {
                    throw UsageError(
                        message: "--to requires an http or https URL such as http://127.0.0.1:3000, not '\(text)'"
                    )
                }
                arguments.upstream = url
            },
            .init(
                "--play",
                "FILE",
                "answer from a recording (recording save FILE) or another HTTP archive",
                \.recording
            ),
            .init(
                "--ca",
                "FILE",
                "for https: trust only these authorities (PEM or DER), not the system's",
                \.authorities
            ),
            .init("--insecure", "for https: accept any certificate of your server") {
                $0.configuration.proxy.tls.insecurelyAcceptsAnyCertificate = true
            },
            .init("--allow-host", "NAME", "accept requests for that host too; repeatable") {
                $0.configuration.proxy.allowedHosts.insert($1)
            },
            .init("--no-world-paths", "paths below /w/ are your server's and name no worlds") {
                $0.configuration.proxy.readsWorldPaths = false
            },
        ]
    }

    private static var limits: [CommandOption<Arguments>] {
        [
            .init("--rate-limit", "N", 1...1_000_000_000, "requests per minute and caller (off)") {
                $0.configuration.settings.rateLimit = $1
            },
            .init("--head-limit", "BYTES", 256...1 << 20, "request head (16384)") {
                $0.configuration.server.headBytesMaximum = $1
            },
            .init("--body-limit", "BYTES", 0...1 << 30, "request body (1048576)") {
                $0.configuration.server.bodyBytesMaximum = $1
            },
            .init("--connection-limit", "N", 1...1_000_000, "connections (10000)") {
                $0.configuration.server.connectionsMaximum = $1
            },
            .init("--head-timeout", "S", 1...3_600, "arrival of a request (10)") {
                $0.configuration.server.headReadTimeout = .seconds($1)
            },
            .init("--idle-timeout", "S", 1...86_400, "between requests (75)") {
                $0.configuration.server.idleTimeout = .seconds($1)
            },
            .init("--token-ttl", "S", 1...31_536_000, "access tokens (3600)") {
                $0.configuration.settings.accessTokenLifetime = .seconds($1)
            },
            .init("--tombstone-retention", "S", 1...31_536_000, "tombstones in the change feed (604800)") {
                $0.configuration.settings.tombstoneRetention = .seconds($1)
            },
        ]
    }

    private static var faults: [CommandOption<Arguments>] {
        [
            .init("--journey", "NAME", "simulate a network: 3g, train, tunnel, offline, …") {
                (arguments, text) throws(UsageError) in
                guard let journey = Journey(rawValue: text) else {
                    let names = Journey.allCases.map(\.rawValue).joined(separator: ", ")
                    throw UsageError(message: "--journey requires one of \(names), not '\(text)'")
                }
                arguments.journey = journey
            },
            .init("--faults", "FILE", "a script of timed steps, in JSON", \.script),
            .init("--clock", "SPEC", "real, frozen, frozen@2026-01-01T00:00:00Z, x60") {
                (arguments, text) throws(UsageError) in arguments.clock = try clock(text)
            },
            .init("--world-seed", "N", "the seed of everything random, for repeatable runs") {
                (arguments, text) throws(UsageError) in arguments.configuration.seed = try integer("--world-seed", text)
            },
            .init("--journal", "N", 0...1_000_000, "size of the journal (4096)") {
                $0.configuration.journalCapacity = $1
            },
            .init("--no-journal", "disable the journal") { $0.configuration.journalCapacity = 0 },
            .init("--worlds", "N", 1...100_000, "maximum number of worlds (2000)") {
                $0.configuration.worldsMaximum = $1
            },
            .init("--world-idle", "S", 1...31_536_000, "remove worlds that nobody has used for so long") {
                $0.configuration.worldIdleLimit = .seconds($1)
            },
            .init("--snapshots", "DIR", "directory for snapshot files", \.configuration.snapshotsDirectory),
        ]
    }

    private static var control: [CommandOption<Arguments>] {
        [
            .init("--control-token", "TOKEN", "require a token for the control plane", \.configuration.controlToken),
            .init("--control-origin", "ORIGIN", "allow pages of that origin; repeatable") {
                (arguments, text) throws(UsageError) in
                guard MockBackend.isOrigin(text) else {
                    throw UsageError(
                        message: "--control-origin requires an origin such as http://localhost:3000, not '\(text)'"
                    )
                }
                arguments.configuration.controlOrigins.insert(text)
            },
            .init("--no-control", "disable the control plane over HTTP") { $0.configuration.hasControl = false },
        ]
    }

    private static var other: [CommandOption<Arguments>] {
        [
            .init("--log", "FORMAT", "text or json: one line per request on standard error") {
                (arguments, text) throws(UsageError) in
                guard let format = AccessLog.Format(rawValue: text) else {
                    throw UsageError(message: "--log requires text or json, not '\(text)'")
                }
                arguments.configuration.log = AccessLog(format)
            },
            .init("--quiet", short: "-q", "print errors only") { $0.isQuiet = true },
            .init("--check-health", "URL", "exit code 0 if the server at URL answers (for containers)") {
                $0.action = .checkHealth(url: $1)
            },
            .init("--no-response-cache", "disable the response cache (for measurements)") {
                $0.configuration.settings.responseCacheBytesMaximum = 0
            },
            .init("--version", short: "-v", "print the version") { $0.action = .version },
            .init("--help", short: "-h", nil, "print this text; larder-server COMMAND --help explains a command") {
                (arguments, _) throws(UsageError) in arguments.action = .help(try Help.text(of: nil))
            },
        ]
    }

    private static func integer(_ name: String, _ text: String) throws(UsageError) -> UInt64 {
        guard let number = UInt64(text) else {
            throw UsageError(message: "\(name) requires an integer, not '\(text)'")
        }
        return number
    }
}
