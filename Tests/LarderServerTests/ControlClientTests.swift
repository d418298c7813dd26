import LarderArguments
import LarderBackend
import LarderCoding
import TestSupport
import Testing

@testable import larder_server

/// The client of the command, against servers that answer with chosen bytes.
@Suite("Control client", .oneMinute)
struct ControlClientTests {
    private func ask(_ reply: String) throws -> (status: Int, body: [UInt8]) {
        let server = try CannedServer(reply)
        return try ControlClient(server.url).ask("GET", "/_larder/recording")
    }

    private func failure(_ reply: String) throws -> String {
        do {
            let answer = try ask(reply)
            return "answered \(answer.status) with \(answer.body.count) bytes"
        } catch let failure as ControlClient.Failure { return failure.description }
    }

    @Test func `whole replies are read, whatever their framing`() throws {
        let heads = [
            "Content-Length: 4\r\n\r\nbody", "Transfer-Encoding: chunked\r\n\r\n3\r\nbod\r\n1\r\ny\r\n0\r\n\r\n",
            "Connection: close\r\n\r\nbody",
        ]
        for head in heads {
            let answer = try ask("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\n" + head)
            #expect(answer.status == 201 && answer.body == Array("body".utf8), "\(head)")
        }
    }

    @Test(arguments: [
        "", "HTTP/1.1 200 OK\r\nContent-Le", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n", "SSH-2.0-OpenSSH\r\n\r\n",
    ])
    func `a reply that is cut off or not HTTP is a failure`(_ reply: String) throws {
        let text = try failure(reply)
        #expect(!text.hasPrefix("answered"), "\(text)")
        #expect(text.contains("127.0.0.1:"))
    }

    @Test func `a reply that does not come in time is a failure that names the limit`() throws {
        let server = try CannedServer("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", closes: false)
        do {
            let answer = try ControlClient(server.url, timeoutSeconds: 1).ask("GET", "/")
            Issue.record("answered \(answer.status) with \(answer.body.count) bytes")
        } catch let failure as ControlClient.Failure {
            #expect(failure.description.contains("1 s"), "\(failure)")
        }
    }

    @Test func `a server that closes during a request is a failure and no signal`() throws {
        let server = try CannedServer("", readsRequest: false)
        let body = [UInt8](repeating: 0x20, count: 32 << 20)
        do {
            let answer = try ControlClient(server.url, timeoutSeconds: 10).ask("POST", "/", [], body)
            Issue.record("answered \(answer.status)")
        } catch let failure as ControlClient.Failure {
            #expect(failure.description.contains("closed the connection while"), "\(failure)")
        }
    }

    @Test(arguments: [
        (["worlds", "snapshot", "a\"b\\c"], "POST /_larder/snapshots", #"{"name":"a\"b\\c"}"#),
        (["worlds", "create", "a\"b"], "POST /_larder/worlds", #"{"id":"a\"b"}"#),
        (["worlds", "fork", "a\"b", "c d"], "POST /_larder/worlds", #"{"from":{"fork":"a\"b"},"id":"c d"}"#),
        (["worlds", "destroy", "a b/c"], "DELETE /_larder/worlds/a%20b%2Fc", ""),
        (["worlds", "reset", "a?b"], "POST /_larder/worlds/a%3Fb/reset", ""),
        (["worlds", "snapshot", "a\"b"], "POST /_larder/snapshots", #"{"name":"a\"b"}"#),
        (["worlds", "restore", "a b"], "POST /_larder/snapshots/a%20b/restore", ""),
        (["clock", "freeze", "no\"w"], "PUT /_larder/clock", #"{"mode":"frozen","time":"no\"w"}"#),
        (["clock", "set", "no\"w"], "PUT /_larder/clock", #"{"time":"no\"w"}"#),
        (["clock", "advance", "1.5"], "POST /_larder/clock/advance", #"{"seconds":1.5}"#),
        (["clock", "advance", "1h30m"], "POST /_larder/clock/advance", #"{"seconds":5400.0}"#),
        (["clock", "advance", "250ms"], "POST /_larder/clock/advance", #"{"seconds":0.25}"#),
        (["clock", "advance", "2d"], "POST /_larder/clock/advance", #"{"seconds":172800.0}"#),
        (["faults", "list"], "GET /_larder/faults", ""),
        (["gates", "list"], "GET /_larder/gates", ""),
        (["actors", "list"], "GET /_larder/actors", ""),
        (["worlds", "list"], "GET /_larder/worlds", ""),
        (["held", "list"], "GET /_larder/held", ""),
        (["journey", "list"], "GET /_larder/journeys", ""),
        (["journal", "list"], "GET /_larder/journal?limit=10000", ""),
        (["clock", "run", "60"], "PUT /_larder/clock", #"{"mode":"running","factor":60.0}"#),
        (["worlds", "create"], "POST /_larder/worlds", "{}"),
        (["worlds", "create", "blue", #"{"from":"empty"}"#], "POST /_larder/worlds", #"{"from":"empty","id":"blue"}"#),
        (["journal"], "GET /_larder/journal?limit=10000", ""),
        (["faults", "remove", "a b"], "DELETE /_larder/faults/a%20b", ""),
        (["gates", "release", "ä"], "POST /_larder/gates/%C3%A4/release", ""),
        (["journey", "a b", "off"], "DELETE /_larder/journeys/a%20b", ""),
        (["held", "1 2", "release"], "POST /_larder/held/1%202/release", ""),
        (["--world", "a b", "ledger"], "GET /_larder/worlds/a%20b/oracles/ledger", ""),
        (["journal", "--device", "a b"], "GET /_larder/journal?limit=10000&device=a%20b", ""),
        (["conduct", "--device=a&b"], "GET /_larder/conduct?device=a%26b", ""),
    ])
    func `words of a command are sent as one name or string each`(_ words: [String], _ line: String, _ body: String)
        async throws
    {
        let server = try CannedServer("HTTP/1.1 204 No Content\r\n\r\n")
        try await ControlCommand(words + ["--server", server.url]).run()
        let request = String(decoding: server.received(), as: UTF8.self)
        #expect(request.hasPrefix(line + " HTTP/1.1\r\n"), "\(request)")
        #expect(request.hasSuffix("\r\n\r\n" + body), "\(request)")
    }

    @Test func `a document is read once, because it may come from standard input`() async throws {
        let directory = try ScratchDirectory()
        let path = directory.path + "/act.json"
        try SourceFile.write(Array(#"{"as":"ben"}"#.utf8), to: path)
        let server = try CannedServer("HTTP/1.1 204 No Content\r\n\r\n")
        let command = try ControlCommand(["act", "@" + path, "--server", server.url])
        try SourceFile.write([], to: path)
        try await command.run()
        #expect(String(decoding: server.received(), as: UTF8.self).hasSuffix("\r\n\r\n" + #"{"as":"ben"}"#))
    }

    @Test func `every command has one usage text, in its help and in its error`() throws {
        for entry in CommandUsage.table.all {
            let usage = "larder-server \(entry.usage)"
            // The help of `serve` is that of all.
            let isFirst = try Help.text(of: entry.name).split(separator: "\n")[0] == usage
            #expect(isFirst != (entry.name == "serve"))
            #expect(try Help.text(of: nil).contains("\n  " + entry.usage + "\n"))
            do {
                _ = try ControlCommand([entry.name, "?"])
            } catch { #expect(error.message == "usage: " + usage) }
        }
    }

    @Test func `a server is found by its name`() throws {
        let server = try CannedServer("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody")
        #expect(try ControlClient("http://localhost:\(server.port)").ask("GET", "/").status == 200)
        do {
            _ = try ControlClient("http://larder.invalid:8080").ask("GET", "/")
            Issue.record("a name without an address is answered")
        } catch let failure as ControlClient.Failure {
            #expect(failure.description.contains("'larder.invalid' has no address"), "\(failure)")
        }
    }

    private func message(_ words: [String]) -> String {
        do {
            _ = try Arguments(words)
            return "accepted"
        } catch { return error.message }
    }

    @Test(arguments: [
        (["fault"], "did you mean 'faults'?"), (["jurnal", "clear"], "did you mean 'journal'?"),
        (["proxi"], "did you mean 'proxy'?"), (["--prot", "1"], "did you mean '--port'?"),
        (["faults", "--word", "x"], "did you mean '--world'?"), (["help", "clok"], "did you mean 'clock'?"),
        (["scenarios", "lost-repl"], "did you mean 'lost-reply'?"),
        (["worlds", "create", "blue", "[]"], "must be an object"),
        (["proxy", "--to", "http://127.0.0.1:1", "--no-power-loss-safety"], "a proxy has none"),
        (["clock", "advance", "1x"], "such as 90, 1.5, 1h30m or 250ms, not '1x'"),
        (["clock", "advance", "h"], "not 'h'"), (["faults", "add", " "], "JSON must not be empty"),
        (["-w", "iso", "journal"], "larder-server journal -w"), (["--json", "faults"], "belongs behind a command"),
        (["--seed", "1", "--fixtures", "F"], "--fixtures"), (["--posts", "5", "--fixtures", "F"], "omit"),
        (["worlds", "--server", "http://127.0.0.1:8080/w/blue"], "--world blue"),
        (["worlds", "--server", "http://127.0.0.1:8080/api"], "http://127.0.0.1:8080"),
    ])
    func `a wrong command line is answered with the right one`(_ words: [String], _ hint: String) {
        let text = message(words)
        #expect(text.contains(hint), "\(words): \(text)")
    }

    @Test func `a name that resembles no other is not answered with a guess`() {
        for words in [["frob"], ["--nope"]] { #expect(!message(words).contains("did you mean"), "\(message(words))") }
    }

    @Test func `a list of the journal says when it does not begin with the oldest entry`() {
        let items = #"[{"kind":"exchange","number":5,"method":"GET","path":"/a","status":200,"bytesSent":1}]"#
        for (hasMore, lines) in [(true, 2), (false, 1)] {
            let body = "{\"items\":\(items),\"hasMore\":\(hasMore),\"last\":5,\"written\":5,\"capacity\":9}"
            let text = ControlText.readable(Array(body.utf8)).split(separator: "\n")
            #expect(text.count == lines && text.last?.hasPrefix("#5 ") == true, "\(text)")
        }
    }

    @Test func `the journal says why the proxy has answered instead of its server`() {
        let status = #"{"name":"Proxy-Status","value":"larder; details=\"127.0.0.1:1 cannot be reached\""}"#
        let item =
            #"{"kind":"exchange","number":5,"method":"GET","path":"/a","status":502,"bytesSent":1,"replyFields":["#
        let text = ControlText.readable(Array((#"{"items":["# + item + status + "]}]}").utf8))
        #expect(text.hasSuffix("\n    127.0.0.1:1 cannot be reached"), "\(text)")
        let other = ControlText.readable(
            Array((#"{"items":["# + item + #"{"name":"Proxy-Status","value":"cdn"}]}]}"#).utf8)
        )
        #expect(!other.contains("\n"), "\(other)")
    }

    @Test func `the lines of a text are indented as the text is`() {
        let body = #"{"files":[{"path":"a","error":"one\ntwo"}]}"#
        let lines = ControlText.readable(Array(body.utf8)).split(separator: "\n")
        #expect(lines.map { $0.prefix { $0 == " " }.count } == [2, 4, 6, 6], "\(lines)")
    }

    @Test func `an error of the whole document has no pointer in front of it`() {
        let problem = #"{"title":"t","detail":"d","errors":[{"pointer":"","detail":"must be an object"}]}"#
        #expect(ControlText.problem(Array(problem.utf8)) == "d\n  must be an object")
    }

    @Test(arguments: [(["journal", "har"], true), (["journal"], false), (["metrics"], true)])
    func `an archive is printed as it is`(_ words: [String], _ isRaw: Bool) throws {
        #expect(try ControlRequest(words)?.isRaw == isRaw)
    }

    @Test func `the names of similar worlds are shown if there are any`() {
        let problem = #"{"title":"t","detail":"There is no world 'x'.","nearest":"#
        #expect(!ControlText.problem(Array((problem + "[]}").utf8)).contains("Nearest"))
        #expect(ControlText.problem(Array((problem + "[\"y\"]}").utf8)).hasSuffix("Nearest: y"))
    }
}
