import Foundation
import Glibc
import Larder
import LarderServer
import TestSupport
import Testing

@testable import LarderDemo

/// The built `larder-server`: its errors, its output and its end.
@Suite("larder-server", .oneMinute)
struct ServerCommandTests {
    private static let executable = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
        .appendingPathComponent("larder-server").path

    private let directory: String

    init() throws {
        directory = FileManager.default.temporaryDirectory.appendingPathComponent("larder-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    }

    private func start(
        _ words: [String],
        executable: String = executable,
        adding variables: [String: String] = [:],
        watch: ProcessWatch? = nil
    ) throws -> CommandProcess {
        var environment = ["HOME": directory, "XDG_CACHE_HOME": directory, "SWIFT_BACKTRACE": "enable=no"]
        for name in ["PATH", "TMPDIR", "LD_LIBRARY_PATH", "ASAN_OPTIONS", "TSAN_OPTIONS"] {
            environment[name] = ProcessInfo.processInfo.environment[name]
        }
        environment.merge(variables) { $1 }
        return try CommandProcess(executable, words, environment: environment, watch: watch)
    }

    private func run(_ words: [String]) async throws -> CommandScene.Run {
        let process = try start(words)
        await process.ended()
        return process.run
    }

    private func expect(_ words: [String], _ code: Int32, _ text: String) async throws {
        let run = try await run(words)
        let lines = errorLines(run)
        #expect(run.code == code && run.output.isEmpty && lines.count == 1, "\(words): \(run)")
        #expect(lines.first?.hasPrefix("larder-server: ") == true && run.errors.contains(text), "\(words): \(run)")
    }

    /// The error output of a run, without the limit of open files.
    private func errorLines(_ run: CommandScene.Run) -> [Substring] {
        run.errorLines.filter { !$0.hasSuffix("(see ulimit -n)") }
    }

    private func clean() { try? FileManager.default.removeItem(atPath: directory) }

    @Test func `an invalid command line prints one line and exits with code 2`() async throws {
        defer { clean() }
        let script = directory + "/faults.json"
        try Data("{".utf8).write(to: URL(fileURLWithPath: script))
        let table: [([String], String)] = [
            (["--nope"], "unknown argument '--nope'"), (["--help", "--nope"], "--nope"),
            (["frob"], "unknown command 'frob'"),
            (["--port", "x"], "0 to 65535, not 'x'"), (["--port", "70000"], "70000"), (["--port=-1"], "-1"),
            (["--port"], "--port requires a value"), (["--port="], "--port requires a value"),
            (["--loops", "0"], "1 to 256"),
            (["--log", "xml"], "text or json"), (["--seed", "-1"], "--seed"), (["--clock", "x0"], "--clock"),
            (["--seed", "99999999999999999999999"], "--seed"), (["--journey", "mars"], "'mars'"),
            (["--host", "0.0.0.0"], "--control-token"), (["--check"], "--check requires --database"),
            (["--check", "--database", "x", "--seed", "1"], "omit --seed"),
            (["--check-health", "ftp://x"], "invalid server URL 'ftp://x'"),
            (["--check-health", "https://x"], "speaks http on the same port"),
            (["--seed", "1", "--port", "0", "--faults", script], "\(script):1: "),
            (["--seed", "1", "--port", "0", "--snapshots", script], "\(script): Not a directory"),
            (["--seed", "1", "--clock", "frozen@noon", "--port", "0"], "not 'noon'"),
            (["--certificate", "x.pem"], "--certificate and --key belong together"),
            (["certificate", "--format", "xml"], "pem, der, android, not 'xml'"),
            (["--log", "text", "--quiet"], "--log"), (["--journal", "9", "--no-journal"], "--no-journal"),
            (["--data", "x", "--fixtures", "y"], "omit --fixtures, or --data"), (["--write-back"], "--data DIR"),
            (["--contract", "x", "--no-journal"], "--no-journal"), (["--to", "http://x"], "larder-server proxy"),
            (["proxy", "--to", "http://x", "--data", "d"], "a proxy has none"),
            (["proxy"], "usage: larder-server proxy"),
            (["proxy", "--to", "http://x", "--play", "f"], "omit --to"), (["--quiet=1"], "takes no value"),
            (["-p", "x"], "0 to 65535"), (["faults", "--fail-on", "any"], "an option of larder-server conduct"),
            (["journal", "clear", "--device", "a"], "--device"), (["ledger", "--device", "a"], "--device"),
            (["certificate", "--format", "der"], "add --output FILE"), (["certificate", "--nope"], "usage:"),
        ]
        for (words, text) in table { try await expect(words, 2, text) }
        let missing = directory + "/missing"
        for option in ["--fixtures", "--faults", "--routes", "--data"] {
            try await expect([option, missing, "--port", "0"], 2, missing)
        }
    }

    @Test func `each error of a file is a line, and so is what routes cannot have from an archive`() async throws {
        defer { clean() }
        let path = directory + "/file"
        func write(_ text: String) throws { try Data(text.utf8).write(to: URL(fileURLWithPath: path)) }
        try write(#"{"routes": [{}, {}]}"#)
        let wrong = try await run(["--routes", path, "--port", "0"])
        let lines = errorLines(wrong)
        #expect(wrong.code == 2 && lines.count == 2, "\(wrong)")
        #expect(lines.allSatisfy { $0.hasPrefix("larder-server: \(path):1: /routes/") }, "\(wrong)")
        func entry(_ status: Int) -> String {
            #"{"request": {"method": "GET", "url": "http://x.test/a"}, "response": {"status": \#(status)}}"#
        }
        try write(#"{"log": {"entries": [\#(entry(204)), \#(entry(0))]}}"#)
        let made = try await run(["routes", "from", path])
        #expect(made.code == 0 && made.output.contains("/a"), "\(made)")
        #expect(
            made.errors == "larder-server: \(path): left out: replies with status 0 (1, first GET /a)\n",
            "\(made)"
        )
    }

    @Test func `an action that the API rejects ends the command with exit code 1`() async throws {
        defer { clean() }
        var size = WorldSize()
        (size.people, size.posts) = (3, 3)
        let backend = try MockBackend.start(.generated(size, picturesFrom: nil))
        for (person, code) in [("ana", Int32(0)), ("bean", 1)] {
            let act = "{\"as\":\"\(person)\",\"method\":\"GET\",\"path\":\"/v1/me\"}"
            let run = try await run(["act", act, "--server", backend.url])
            #expect(run.code == code && run.output.contains("status"), "\(run)")
            #expect(run.output.contains("bean") == (code == 1), "\(run)")
        }
        await backend.stop()
    }

    @Test func `a failure prints one line with its cause and exits with code 1`() async throws {
        defer { clean() }
        let backend = try MockBackend.start(.empty)
        let closed = try ClosedPort()
        let missing = directory + "/missing"
        let table: [([String], String)] = [
            (
                ["--seed", "1", "--port", "\(backend.port)"],
                "another server listens at 127.0.0.1:\(backend.port); stop it, or use another port"
            ),
            (["--seed", "1", "--host", "larder.invalid", "--no-control"], "larder.invalid"),
            (["recording", "save", missing, "--server", backend.url], "larder-server recording start"),
            (["--check-health", "http://127.0.0.1:\(closed.port)"], "no server listens"),
        ]
        for (words, text) in table { try await expect(words, 1, text) }
        withExtendedLifetime(closed) {}
        #expect(await backend.activity() == [])
        await backend.stop()
    }

    @Test func `fixtures are found by the environment, beside the executable, and where they are installed`()
        async throws
    {
        defer { clean() }
        let manager = FileManager.default
        let fixtures = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent("Fixtures").path
        for folder in ["installed/bin", "installed/share/larder", "beside", "alone"] {
            try manager.createDirectory(atPath: "\(directory)/\(folder)", withIntermediateDirectories: true)
        }
        for folder in ["installed/bin", "beside", "alone"] {
            try manager.copyItem(atPath: Self.executable, toPath: "\(directory)/\(folder)/larder-server")
        }
        try manager.createSymbolicLink(
            atPath: directory + "/installed/share/larder/Fixtures",
            withDestinationPath: fixtures
        )
        try manager.createSymbolicLink(atPath: directory + "/beside/Fixtures", withDestinationPath: fixtures)
        let table: [(folder: String, environment: [String: String], hasFixtures: Bool)] = [
            ("installed/bin", [:], true), ("beside", [:], true), ("alone", ["LARDER_FIXTURES": fixtures], true),
            ("alone", [:], false),
        ]
        for (folder, environment, hasFixtures) in table {
            let command = "\(directory)/\(folder)/larder-server"
            let server = try start(
                ["-c", "cd \"$1\" && exec \"$2\" --port 0", "sh", directory, command],
                executable: "/bin/sh",
                adding: environment
            )
            await server.printed("Try:")
            let line = try #require(server.run.output.split(separator: "\n").first, "\(server.run)")
            let url = try #require(line.split(separator: " ").last)
            let reply = try await SocketTransport().send(TransportRequest(url: "\(url)/v1/profiles/user_1"))
            #expect(reply.status == .ok, "\(folder)")
            server.send(SIGTERM)
            await server.ended()
            #expect(server.run.errors.contains("generated world") == !hasFixtures, "\(folder): \(server.run.errors)")
        }
    }

    @Test func `https is served with the certificate that the command prints`() async throws {
        defer { clean() }
        let printed = try await run(["certificate", "--format", "pem"])
        #expect(printed.code == 0 && printed.output.hasPrefix("-----BEGIN CERTIFICATE-----"), "\(printed)")
        let android = try await run(["certificate", "--format", "android"])
        #expect(android.output.contains("<network-security-config>"), "\(android)")
        let described = try await run(["certificate"])
        #expect(
            described.output.contains("SHA-256") && described.output.contains("/larder/authority.pem"),
            "\(described)"
        )
        let file = directory + "/larder.cer"
        #expect(try await run(["certificate", "--format", "der", "--output", file]).code == 0)
        let server = try start(["--tls", "--seed", "1", "--people", "3", "--posts", "3", "--port", "0"])
        await server.printed("Try:")
        let line = try #require(
            server.run.output.split(separator: "\n").first { $0.hasPrefix("Encrypted:") },
            "\(server.run)"
        )
        let url = try #require(line.split(separator: " ").first { $0.hasPrefix("https://") })
        for roots in [TLSSettings.Roots.only(Array(printed.output.utf8)), .only(file: file)] {
            var configuration = SocketTransport.Configuration()
            configuration.tls.roots = roots
            let reply = try await SocketTransport(configuration).send(TransportRequest(url: "\(url)/v1/feed"))
            #expect(reply.status == .ok)
        }
        server.send(SIGTERM)
        await server.ended()
        #expect(server.run.code == 0)
    }

    @Test func `a foreign database file is named and left unchanged`() async throws {
        defer { clean() }
        func path(_ name: String) -> String { "\(directory)/\(name)" }
        let good = path("good.sqlite")
        let server = try start(["--seed", "1", "--people", "3", "--posts", "3", "--database", good, "--port", "0"])
        await server.printed("Larder serves")
        try await expect(["--seed", "1", "--database", good, "--port", "0"], 1, "\(good) is served by another process")
        server.send(SIGTERM)
        await server.ended()
        #expect(server.run.code == 0)
        let sound = try await run(["--check", "--database", good])
        #expect(sound.code == 0 && sound.output.contains("structure and ledger are sound"), "\(sound)")

        let bytes = try Data(contentsOf: URL(fileURLWithPath: good))
        func write(_ name: String, _ change: (inout Data) -> Void) throws {
            var changed = bytes
            change(&changed)
            try changed.write(to: URL(fileURLWithPath: path(name)))
        }
        // The offsets of `user_version` and `application_id` (SQLite file format, §1.3).
        try write("newer.sqlite") { $0.replaceSubrange(60..<64, with: [0, 0, 3, 0xE7]) }
        try write("foreign.sqlite") { $0.replaceSubrange(68..<72, with: [1, 2, 3, 4]) }
        try write("short.sqlite") { $0.removeLast($0.count / 2) }
        try write("text.sqlite") { $0 = Data(String(repeating: "This is a letter and no database. ", count: 30).utf8) }
        let table = [
            ("newer.sqlite", "schema version 999"), ("foreign.sqlite", "another application"),
            ("short.sqlite", "damaged"),
            ("text.sqlite", "not a SQLite database"), (".", "directory"), ("missing/x.sqlite", "No such file"),
        ]
        for (name, text) in table {
            let before = try? Data(contentsOf: URL(fileURLWithPath: path(name)))
            for words in [["--port", "0"], ["--check"]] where !(name.contains("/") && words == ["--check"]) {
                let seed = words == ["--check"] ? [] : ["--seed", "1"]
                try await expect(seed + words + ["--database", path(name)], 1, text)
                try await expect(seed + words + ["--database", path(name)], 1, path(name))
            }
            #expect(try before == nil || Data(contentsOf: URL(fileURLWithPath: path(name))) == before, "\(name)")
        }
        try await expect(["--check", "--database", path("missing.sqlite")], 1, "the file does not exist")
        try write("empty.sqlite") { $0 = Data() }
        let empty = try await run(["--check", "--database", path("empty.sqlite")])
        #expect(empty.code == 1 && empty.output.contains("empty; it contains no world"), "\(empty)")
    }

    /// A page of another site whose name resolves to an address of this machine (DNS rebinding) must not reach the server behind the proxy.
    @Test(arguments: ["127.0.0.1", "0.0.0.0"])
    func `a proxy rejects the names of other sites, whichever address it listens on`(host: String) async throws {
        defer { clean() }
        let closed = try ClosedPort()
        let server = try start([
            "proxy", "--to", "http://127.0.0.1:\(closed.port)", "--host", host, "--no-control", "--port", "0",
            "--allow-host", "app.example",
        ])
        await server.printed("Stop: Ctrl-C")
        let output = server.run.output
        let start = try #require(output.firstRange(of: "http://\(host):"), "\(server.run)")
        let port = try #require(Int(output[start.upperBound...].prefix { $0.isNumber }))
        for (name, status) in [("evil.example", 403), ("127.0.0.1", 502), ("app.example", 502)] {
            let client = try RawClient(port: port)
            try client.send("GET / HTTP/1.1\r\nHost: \(name)\r\n\r\n")
            #expect(try await client.reply().status == status, "\(name)")
        }
        server.send(SIGTERM)
        await server.ended()
    }

    @Test(arguments: [SIGTERM, SIGINT])
    func `the server prints its URL and users, and a signal stops it gracefully`(signal: Int32) async throws {
        defer { clean() }
        let process = try start(["--seed", "1", "--people", "3", "--posts", "3", "--port", "0"])
        await process.printed("Stop: Ctrl-C")
        let words = process.run.output
        #expect(words.contains("curl 'http://127.0.0.1:") && !words.contains(":0/"), "\(words)")
        #expect(words.ranges(of: "dev-").count >= 4, "\(words)")
        process.send(signal)
        await process.ended()
        #expect(process.run.code == 0 && errorLines(process.run).isEmpty, "\(process.run)")
    }

    /// Starts the server with a limit of open files.
    private func start(within limit: String) async throws -> (process: CommandProcess, port: Int) {
        let words = ["--seed", "1", "--people", "3", "--posts", "3", "--port", "0"]
        let command = "ulimit \(limit) && exec \"$0\" \"$@\""
        let process = try start(["-c", command, Self.executable] + words, executable: "/bin/sh")
        await process.printed("Stop: Ctrl-C")
        let port = process.run.output.firstMatch(of: #/http://127\.0\.0\.1:(\d+)/#).flatMap { Int($0.1) }
        return (process, try #require(port))
    }

    @Test func `the server raises its limit of open files`() async throws {
        defer { clean() }
        let (process, port) = try await start(within: "-S -n 40")
        let clients = try (0..<200).map { _ in
            let client = try RawClient(port: port)
            // At once: the server closes connections without a request after a while.
            try client.send("GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n")
            return client
        }
        for client in clients { #expect(try await client.reply().status == 200) }
        // A low hard limit is reported with the number of possible connections.
        #expect(!process.run.errors.contains("about 0 open connections"), "\(process.run)")
        process.send(SIGTERM)
        await process.ended()
    }

    @Test func `a lower limit of connections is reported, and further ones wait`() async throws {
        defer { clean() }
        let (process, port) = try await start(within: "-n 100")
        #expect(process.run.errors.contains("about 36 open connections"), "\(process.run)")
        var clients = try (0..<200).map { _ in try RawClient(port: port) }
        for client in clients { try client.send("GET /healthz HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n") }
        while !clients.isEmpty { #expect(try await clients.removeFirst().reply().status == 200) }
        process.send(SIGTERM)
        await process.ended()
        #expect(process.run.code == 0, "\(process.run)")
    }

    @Test func `a server process is killed when it is released and when the test process ends`() async throws {
        defer { clean() }
        let watch = try ProcessWatch()
        let words = ["--seed", "1", "--people", "3", "--posts", "3", "--port", "0"]
        let server = try start(words, watch: watch)
        await server.printed("Stop: Ctrl-C")
        // The end of the test process closes the same pipe.
        watch.end()
        await server.ended()
        #expect(server.run.code == -SIGKILL, "\(server.run)")

        var other: CommandProcess? = try start(words)
        await other?.printed("Stop: Ctrl-C")
        let output = try #require(other?.run.output)
        let port = try #require(output.firstMatch(of: #/http://127\.0\.0\.1:(\d+)/#).flatMap { Int($0.1) })
        let client = try RawClient(port: port)
        other = nil
        #expect(await client.readToEnd().ending != .open)
    }

    @Test func `a database file has the documents, and the server says that the files are not read`() async throws {
        defer { clean() }
        let (data, database) = (directory + "/data", directory + "/db.sqlite")
        #expect(try await run(["init", data]).output.contains("authors.json"))
        let note = "\(database) has the documents, and the files in \(data) are not read"
        for (words, says) in [(["--data", data], false), (["--data", data], true), ([], false)] {
            let server = try start(words + ["--database", database, "--port", "0"])
            await server.printed("Stop: Ctrl-C")
            #expect(server.run.output.contains("Collections: /authors /todos"), "\(server.run)")
            #expect(
                server.run.errors.contains(note) == says && !server.run.errors.contains("fixtures"),
                "\(server.run)"
            )
            server.send(SIGTERM)
            await server.ended()
        }
    }

    @Test func `help and version print nothing else`() async throws {
        defer { clean() }
        let help = try await run(["--help"])
        #expect(help.code == 0 && help.errors.isEmpty && help.output.contains("USAGE"))
        #expect(help.lines.allSatisfy { $0.count <= 100 })
        for words in [["help"], ["-h"], ["serve", "--help"]] {
            #expect(try await run(words).output == help.output, "\(words)")
        }
        #expect(try await run(["-v"]).output == run(["--version"]).output)
        let version = try await run(["--version"])
        #expect(version.code == 0 && version.output == "larder-server \(MockBackend.version)\n")
    }

    @Test func `every command explains itself`() async throws {
        defer { clean() }
        for command in [
            "faults", "recording", "worlds", "clock", "journey", "gates", "held", "journal", "verify", "wait",
            "proxy", "init", "routes", "certificate", "scenarios", "files", "metrics", "conduct", "act", "actors",
        ] {
            for words in [[command, "--help"], [command, "-h"], ["help", command]] {
                let run = try await run(words)
                #expect(run.code == 0 && run.errors.isEmpty, "\(words): \(run)")
                #expect(run.output.hasPrefix("larder-server \(command)"), "\(words): \(run)")
            }
        }
        let inside = try await run(["faults", "add", "--help"])
        #expect(inside.code == 0 && inside.output.hasPrefix("larder-server faults "), "\(inside)")
        try await expect(["frob", "--help"], 2, "frob")
    }
}
