import LarderCoding
import LarderEngine
import LarderHTTP
import LarderHTTPWire
import LarderTime
import Synchronization
import TestSupport
import Testing

@testable import LarderBackend
@testable import LarderServer

@Suite("In front of another server", .oneMinute)
struct ProxyTests {
    /// A server, and a proxy in front of it.
    private struct Pair {
        let server: Stage
        let proxy: Stage

        init(basePath: String = "") throws {
            let server = try Stage()
            self.server = server
            proxy = try ProxyTests.proxy(to: server.backend.url + basePath)
        }
    }

    /// The messages that arrive on a WebSocket.
    private final class Socket {
        private let client: RawClient
        private var parser = WebSocketParser(role: .client)
        private var events: [WebSocketEvent] = []

        init(_ client: RawClient) { self.client = client }

        func next() async throws -> WebSocketEvent {
            while events.isEmpty {
                let byte = try await client.read(count: 1)
                parser.receive(byte.span, &events)
            }
            return events.removeFirst()
        }
    }

    private static func proxy(to url: String) throws -> Stage {
        let url = try #require(HTTPURL(url))
        return try Stage { $0.origin = .server(url) }
    }

    @Test func `requests and replies pass, without the fields of a connection`() async throws {
        let pair = try Pair(basePath: "/_larder")
        let fields = [
            "Connection": "keep-alive, X-Hop", "X-Hop": "1", "X-End": "2", "Expect": "100-continue", "TE": "trailers",
        ]
        let reply = try await pair.proxy.ask("PUT", "/echo?a=1", "{}", fields: fields)
        #expect(reply.status == 200 && reply.field("Via") == "1.1 larder")
        let seen = try reply.json
        #expect(
            seen["method"]?.string == "PUT" && seen["target"]?.string == "/_larder/echo?a=1"
                && seen["body"]?.string == "{}"
        )
        let names = (seen["fields"]?.array ?? []).compactMap { $0["name"]?.string?.lowercased() }
        #expect(names.contains("x-end") && names.contains("forwarded") && names.contains("via"))
        #expect(
            !names.contains("x-hop") && !names.contains("te") && !names.contains("expect")
                && !names.contains("connection")
        )
    }

    @Test func `the reply to a HEAD and a 304 are those of the server`() async throws {
        let pair = try Pair()
        let direct = try await pair.server.ask("GET", "/v1/feed?limit=3")
        let through = try await pair.proxy.ask("GET", "/v1/feed?limit=3")
        #expect(through.body == direct.body && through.field("ETag") == direct.field("ETag"))
        let head = try await pair.proxy.ask("HEAD", "/v1/feed?limit=3")
        #expect(head.status == 200 && head.field("Content-Length") == String(direct.body.count))
        let tag = try #require(direct.field("ETag"))
        let again = try await pair.proxy.ask("GET", "/v1/feed?limit=3", fields: ["If-None-Match": tag])
        #expect(again.status == 304 && again.body.isEmpty)
        #expect(await pair.proxy.world.journal().map(\.status) == [200, 200, 304])
    }

    @Test func `only the control plane's own path and those below it are not sent on`() async throws {
        let server = try CannedServer("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nown!")
        let proxy = try Self.proxy(to: server.url)
        #expect(try await proxy.ask("GET", "/_larderfoo").text == "own!")
        #expect(try await proxy.ask("GET", "/_larder/nothing").problem == "not-found")
        #expect(try await proxy.ask("GET", "/_larder").status != 502)
    }

    @Test func `the echo is that of the proxy, whatever its world's clock and faults`() async throws {
        let pair = try Pair()
        for isPlain in [true, false] {
            if isPlain { pair.proxy.world.clock.followSystem() } else { pair.proxy.world.clock.freeze() }
            let reply = try await pair.proxy.ask("GET", "/_larder/echo")
            #expect(reply.status == 200 && reply.field("Via") == nil)
            #expect(try reply.json["target"]?.string == "/_larder/echo")
        }
        #expect(await pair.server.world.journal().isEmpty)
    }

    @Test func `a lost reply leaves the write at the server, and a duplicate makes two`() async throws {
        let pair = try Pair()
        func count() async throws -> Int {
            try await pair.server.ask("GET", "/v1/feed?limit=50").json["items"]?.array?.count {
                $0["text"]?.string == "once"
            } ?? 0
        }
        try pair.proxy.world.set(Fault(id: "lose", .loseReply(.reset), when: FaultMatch("POST", "/v1/posts")))
        let lost = try pair.proxy.send("POST", "/v1/posts", #"{"text":"once"}"#)
        #expect(await lost.readToEnd().bytes.isEmpty)
        #expect(try await count() == 1)
        let page = try await pair.proxy.ask("GET", "/_larder/journal").json
        #expect(page["items"]?[0]?["carriedOut"] == .bool(true) && page["items"]?[0]?["status"] == .null)
        _ = try await pair.proxy.ask("DELETE", "/_larder/faults")
        try pair.proxy.world.set(Fault(id: "twice", .duplicate, when: FaultMatch("POST", "/v1/posts")))
        #expect(try await pair.proxy.ask("POST", "/v1/posts", #"{"text":"once"}"#).status == 201)
        #expect(try await count() == 3)
    }

    @Test func `what needs the state of the demo backend is rejected`() async throws {
        let pair = try Pair()
        let lag = #"{"match":{"path":"/v1/feed"},"action":{"type":"lag","commits":1}}"#
        let rejected = try await pair.proxy.ask("POST", "/_larder/faults", lag)
        #expect(rejected.status == 422 && String(decoding: rejected.body, as: UTF8.self).contains("/action/type"))
        #expect(throws: Problem.self) { try pair.proxy.world.set(Fault(.changes(.expired))) }
        #expect(try await pair.proxy.ask("GET", "/_larder/oracles/ledger").status == 400)
        #expect(pair.proxy.world.perform(ScriptedAction("GET", "/v1/feed", as: "ana")).status == 400)
        #expect(
            try await pair.proxy.ask("POST", "/_larder/faults", #"{"match":{"path":"/own"},"action":{"type":"reset"}}"#)
                .status == 201
        )
    }

    @Test func `every journey can be set and be a step of a script`() async throws {
        let pair = try Pair()
        for journey in Journey.allCases.map(\.rawValue) {
            #expect(try await pair.proxy.ask("POST", "/_larder/journeys/\(journey)").status == 201, "\(journey)")
            let script = #"{"steps":[{"journey":"\#(journey)"}]}"#
            #expect(try await pair.proxy.ask("POST", "/_larder/script", script).status == 201, "\(journey)")
            #expect(try await pair.proxy.ask("DELETE", "/_larder/journeys/\(journey)").status == 204, "\(journey)")
        }
    }

    @Test func `messages of a WebSocket pass in both directions`() async throws {
        let pair = try Pair(basePath: "/_larder")
        let client = try pair.proxy.connect()
        try client.send(
            """
            GET /echo HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Protocol: chat\r
            Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n
            """
        )
        let head = String(decoding: try await client.read(until: "\r\n\r\n"), as: UTF8.self)
        #expect(head.hasPrefix("HTTP/1.1 101") && head.contains("Sec-WebSocket-Protocol: chat"))
        let socket = Socket(client)
        let long = [UInt8](repeating: UInt8(ascii: "x"), count: 70_000)
        var frames: [UInt8] = []
        WebSocketEncoder.append(.text, Array("hello".utf8), mask: 7, to: &frames)
        WebSocketEncoder.append(.binary, long, mask: 9, to: &frames)
        try client.send(frames)
        #expect(try await socket.next() == .text(Array("hello".utf8)))
        #expect(try await socket.next() == .binary(long))
        frames = []
        WebSocketEncoder.append(.close, WebSocketEncoder.closePayload(.goingAway, "done"), mask: 1, to: &frames)
        try client.send(frames)
        #expect(try await socket.next() == .close(code: .goingAway, reason: ""))
    }

    @Test func `events of a stream pass as they arrive`() async throws {
        let pair = try Pair()
        let client = try pair.proxy.send("GET", "/v1/live/events")
        let head = String(decoding: try await client.read(until: "\r\n\r\n"), as: UTF8.self)
        #expect(head.hasPrefix("HTTP/1.1 200") && head.contains("text/event-stream"))
        _ = try await client.read(until: "hello")
        #expect(
            pair.server.world.perform(ScriptedAction("POST", "/v1/posts", as: "ana", body: #"{"text":"seen live"}"#))
                .status == 201
        )
        _ = try await client.read(until: "seen live")
        await pair.server.backend.stop()
        // The end of the server's stream is the end of the client's.
        #expect(await client.readToEnd().bytes.suffix(5) == Array("0\r\n\r\n".utf8)[...])
    }

    @Test func `a server that cannot be reached is a 502 that says so`() async throws {
        let port = try ClosedPort()
        let url = try #require(HTTPURL("http://127.0.0.1:\(port.port)"))
        let announced = Mutex<[String]>([])
        let proxy = try Stage {
            $0.origin = .server(url)
            $0.announce = { text in announced.withLock { $0.append(text) } }
        }
        let reply = try await proxy.ask("GET", "/v1/feed")
        #expect(reply.status == 502 && reply.problem == "bad-gateway")
        let reason = try #require(try reply.json["detail"]?.string)
        #expect(reason.contains("127.0.0.1:\(port.port)"))
        #expect(try await proxy.ask("GET", "/v1/feed").field("Proxy-Status") == "larder; details=\"\(reason)\"")
        #expect(await proxy.world.journal().map(\.status) == [502, 502])
        // The second request has failed for the same reason.
        #expect(announced.withLock { $0 } == [reason])
    }

    @Test(arguments: [
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "SSH-2.0-OpenSSH\r\n", "HTTP/1.1 200 OK\nbare: lf\n\n",
    ])
    func `a reply that is cut or malformed is a 502, not a part`(text: String) async throws {
        let server = try CannedServer(text)
        let proxy = try Self.proxy(to: server.url)
        let reply = try await proxy.ask("GET", "/")
        #expect(reply.status == 502 && reply.problem == "bad-gateway", "\(text)")
    }

    @Test(arguments: ["gzip", "GZip, chunked", "identity"])
    func `a reply with a transfer coding that the proxy cannot remove is a 502 that names it`(coding: String)
        async throws
    {
        let server = try CannedServer("HTTP/1.1 200 OK\r\nTransfer-Encoding: \(coding)\r\n\r\n2\r\nok\r\n0\r\n\r\n")
        let proxy = try Self.proxy(to: server.url)
        let reply = try await proxy.ask("GET", "/")
        #expect(reply.status == 502 && reply.problem == "bad-gateway")
        #expect(try reply.json["detail"]?.string?.contains("'\(coding)'") ?? false, "\(reply.text)")
    }

    @Test func `a request that the proxy has sent itself is a 508`() async throws {
        let server = try RawServer()
        let proxy = try Self.proxy(to: server.url)
        let first = try proxy.send("GET", "/loop", fields: ["Via": "1.1 another"])
        let peer = try await server.next()
        let request = String(decoding: try await peer.read(until: "\r\n\r\n"), as: UTF8.self)
        let line = try #require(request.split(separator: "\r\n").first { $0.hasPrefix("Via: 1.1 another, ") })
        let again = try await proxy.ask("GET", "/loop", fields: ["Via": String(line.dropFirst(5))])
        #expect(again.status == 508 && again.problem == "loop-detected")
        // Another proxy of this kind before it is no loop.
        let other = try RawServer()
        let chained = try Self.proxy(to: other.url)
        let second = try chained.send("GET", "/chain", fields: ["Via": String(line.dropFirst(5))])
        let behind = try await other.next()
        _ = try await behind.read(until: "\r\n\r\n")
        #expect(!first.hasNews && !second.hasNews)
        withExtendedLifetime((proxy, chained, peer, behind)) {}
    }

    /// A page of another site whose name resolves to this machine (DNS rebinding) must not reach the server.
    @Test(arguments: [
        ("evil.example", 403), ("evil.example:8081", 403), ("127.0.0.1.evil.example", 403), ("localhost", 502),
        ("app.localhost:8081", 502), ("127.0.0.1:1", 502), ("10.0.2.2:8081", 502), ("[::1]:80", 502), ("staging", 502),
        ("my.test", 502), ("1.2.3.4.5", 403),
    ])
    func `only names that no other site can have reach the server`(host: String, status: Int) async throws {
        let port = try ClosedPort()
        let client = try Self.proxy(to: "http://127.0.0.1:\(port.port)").connect()
        try client.send("GET / HTTP/1.1\r\nHost: \(host)\r\n\r\n")
        let reply = try await client.reply()
        #expect(reply.status == status)
        try client.send("GET http://\(host)/ HTTP/1.1\r\nHost: localhost\r\n\r\n")
        #expect(try await client.reply().status == status)
    }

    @Test func `a host name can be allowed`() async throws {
        let port = try ClosedPort()
        let url = try #require(HTTPURL("http://127.0.0.1:\(port.port)"))
        let proxy = try Stage {
            $0.origin = .server(url)
            $0.proxy.allowedHosts = ["App.Example"]
        }
        let client = try proxy.connect()
        for host in ["app.example:81"] + LocalHosts.names {
            try client.send("GET / HTTP/1.1\r\nHost: \(host)\r\n\r\n")
            #expect(try await client.reply().status == 502, "\(host)")
        }
    }

    @Test func `paths of the server below the prefix of worlds are reached if the prefix is switched off`() async throws
    {
        let server = try CannedServer("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nwiki")
        let url = try #require(HTTPURL(server.url))
        let proxy = try Stage {
            $0.origin = .server(url)
            $0.proxy.readsWorldPaths = false
        }
        _ = try proxy.backend.makeWorld(id: "blue")
        #expect(try await proxy.ask("GET", "/w/index.php", fields: ["Larder-World": "blue"]).text == "wiki")
        #expect(server.received().starts(with: "GET /w/index.php HTTP/1.1\r\n".utf8))
        #expect(try await proxy.backend.world("blue").journal().map(\.target) == ["/w/index.php"])
    }

    @Test func `the bodies in memory are bounded together, until their readers have them`() async throws {
        let server = try RawServer()
        let url = try #require(HTTPURL(server.url))
        let proxy = try Stage {
            $0.origin = .server(url)
            $0.proxy.bodyBytesMaximum = 1_000
        }
        try proxy.world.set(Gate(id: "g", when: FaultMatch("GET", "/first"), stage: .reply))
        let first = try proxy.send("GET", "/first")
        let peer = try await server.next()
        _ = try await peer.read(until: "\r\n\r\n")
        let body = String(repeating: "x", count: 900)
        try peer.send("HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n\(body)")
        #expect(await proxy.world.wait(for: .held(1), limit: .seconds(3_600)))
        let second = try await proxy.ask("POST", "/second", body)
        #expect(second.status == 503 && second.problem == "service-unavailable" && second.field("Retry-After") == "1")
        proxy.world.releaseAll()
        #expect(try await first.reply().text == body)
        let third = try proxy.send("POST", "/third", body)
        _ = try await peer.read(until: body)
        try peer.send("HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n\(body)")
        #expect(try await third.reply().status == 503)
    }

    @Test func `the body of a request that is held counts towards the bound`() async throws {
        let port = try ClosedPort()
        let url = try #require(HTTPURL("http://127.0.0.1:\(port.port)"))
        let proxy = try Stage {
            $0.origin = .server(url)
            $0.proxy.bodyBytesMaximum = 1_000
        }
        try proxy.world.set(Gate(id: "g", when: FaultMatch("POST", "/first"), stage: .request))
        let body = String(repeating: "x", count: 900)
        let first = try proxy.send("POST", "/first", body)
        #expect(await proxy.world.wait(for: .held(1), limit: .seconds(3_600)))
        let second = try await proxy.ask("POST", "/second", body)
        #expect(second.status == 503 && second.problem == "service-unavailable" && second.field("Retry-After") == "1")
        proxy.world.releaseAll()
        #expect(try await first.reply().status == 502)
        #expect(try await proxy.ask("POST", "/third", body).status == 502)
    }

    @Test func `exchanges with the server end when their world is destroyed`() async throws {
        let server = try RawServer()
        let proxy = try Self.proxy(to: server.url)
        let world = try proxy.backend.makeWorld(id: "blue")
        let client = try proxy.send("GET", "/w/blue/slow")
        let peer = try await server.next()
        _ = try await peer.read(until: "\r\n\r\n")
        let stream = try proxy.send("GET", "/w/blue/events")
        let other = try await server.next()
        _ = try await other.read(until: "\r\n\r\n")
        try other.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        _ = try await stream.read(until: "\r\n\r\n")
        try world.destroy()
        #expect(try await client.reply().problem == "unknown-world")
        #expect(await stream.readToEnd().ending == .closed)
        #expect(await peer.readToEnd().bytes.isEmpty)
        #expect(await other.readToEnd().bytes.isEmpty)
    }

    @Test func `a server that says nothing is a 504`() async throws {
        let clock = ManualClock(WallTime(seconds: 1_790_000_000))
        let server = try CannedServer("", closes: false)
        let url = try #require(HTTPURL(server.url))
        let scene = try Scene { configuration in
            configuration.use(clock)
            configuration.origin = .server(url)
        }
        try scene.client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        // The request has arrived at the server, so that its time limit is set.
        await reached { !server.received().isEmpty }
        clock.advance(by: .seconds(62))
        let reply = try await scene.client.reply()
        #expect(reply.status == 504 && reply.problem == "gateway-timeout")
    }

    @Test func `an actor is rejected where there is no demo backend, also in Swift`() async throws {
        let pair = try Pair()
        let act = ScriptedAction("POST", "/v1/posts", as: "ana", body: "{}")
        #expect(throws: Problem.self) { try pair.proxy.world.set(ScriptedActor([act], when: FaultMatch())) }
    }

    @Test func `a recording answers without the server`() async throws {
        let pair = try Pair()
        #expect(try await pair.proxy.ask("POST", "/_larder/recording", #"{"record":true}"#).status == 201)
        let first = try await pair.proxy.ask("GET", "/v1/feed?limit=2")
        _ = try await pair.proxy.ask("POST", "/v1/posts", #"{"text":"new"}"#)
        let second = try await pair.proxy.ask("GET", "/v1/feed?limit=2")
        let file = try await pair.proxy.ask("GET", "/_larder/recording").body
        await pair.server.backend.stop()
        let player = try Stage { $0.origin = .recording(file) }
        #expect(try await player.ask("GET", "/v1/feed?limit=2").body == first.body)
        #expect(try await player.ask("GET", "/v1/feed?limit=2").body == second.body && first.body != second.body)
        #expect(try await player.ask("GET", "/v1/feed?limit=2").body == second.body)
        #expect(try await player.ask("POST", "/v1/posts", #"{"text":"new"}"#).status == 201)
        let unknown = try await player.ask("GET", "/v1/tasks")
        #expect(unknown.status == 404 && String(decoding: unknown.body, as: UTF8.self).contains("GET /v1/tasks"))
    }

    @Test(arguments: [("", ""), ("/w/blue", ""), ("/w/blue", "/w/green"), ("", "/w/green")])
    func `a recording answers worlds that are addressed by path`(recorded: String, played: String) async throws {
        let server = try RawServer()
        let proxy = try Self.proxy(to: server.url)
        _ = try proxy.backend.makeWorld(id: "blue")
        #expect(try await proxy.ask("POST", "\(recorded)/_larder/recording", #"{"record":true}"#).status == 201)
        let client = try proxy.connect()
        // The name and the default port are not in normal form.
        try client.send("GET \(recorded)/here?a=1 HTTP/1.1\r\nHost: My.Test:80\r\n\r\n")
        let peer = try await server.next()
        _ = try await peer.read(until: "\r\n\r\n")
        try peer.send("HTTP/1.1 302 Found\r\nLocation: \(server.url)/login\r\nContent-Location: /x\r\n")
        try peer.send("Content-Length: 2\r\n\r\nok")
        #expect(try await client.reply().field("Location") == "http://My.Test:80\(recorded)/login")
        let file = try await proxy.ask("GET", "\(recorded)/_larder/recording").body

        let player = try Stage { $0.origin = .recording(file) }
        _ = try player.backend.makeWorld(id: "green")
        let again = try player.connect()
        try again.send("GET \(played)/here?a=1 HTTP/1.1\r\nHost: player.test\r\n\r\n")
        let reply = try await again.reply()
        #expect(reply.status == 302 && reply.text == "ok")
        #expect(reply.field("Location") == "http://player.test\(played)/login")
        #expect(reply.field("Content-Location") == "\(played)/x")
    }

    @Test func `clients without a device are told apart by their credentials`() async throws {
        let pair = try Pair()
        let profile = "/v1/profiles/user_2"
        for handle in ["ana", "person2"] { #expect(try await pair.proxy.ask("GET", profile, as: handle).status == 200) }
        #expect(await pair.proxy.world.conduct.findings.isEmpty)
        #expect(try await pair.proxy.ask("GET", profile, as: "ana").status == 200)
        let findings = await pair.proxy.world.conduct.findings
        #expect(Set(findings.map(\.rule)) == [.downloadedTwice, .refetchedFresh])
        #expect(findings.allSatisfy { $0.entries == [1, 3] && !$0.detail.contains("unknown") }, "\(findings)")
    }

    @Test func `a verdict about a client without device and credentials says that the device is unknown`() async throws
    {
        let pair = try Pair()
        let profile = "/v1/profiles/user_2"
        for _ in 0..<2 { #expect(try await pair.proxy.ask("GET", profile, as: nil).status == 200) }
        let verdicts = await pair.proxy.world.journal().map(\.verdicts)
        #expect(verdicts[0] == ["nothing was held"])
        #expect(!verdicts[1].isEmpty && verdicts[1].allSatisfy { $0.hasSuffix("(device unknown)") }, "\(verdicts)")
        let device = ["Larder-Device": "phone"]
        for _ in 0..<2 { #expect(try await pair.proxy.ask("GET", profile, as: nil, fields: device).status == 200) }
        let known = await pair.proxy.world.journal().last?.verdicts ?? []
        #expect(!known.isEmpty && !known.joined().contains("unknown"), "\(known)")
    }

    @Test func `a server that closes without a reply was reached`() async throws {
        let server = try CannedServer("")
        let reply = try await Self.proxy(to: server.url).ask("POST", "/a", "{}")
        #expect(reply.status == 502 && !reply.text.contains("cannot be reached"), "\(reply.text)")
    }

    @Test func `the rejection of a host names the option that admits it`() async throws {
        let pair = try Pair()
        let client = try pair.proxy.connect()
        try client.send("GET / HTTP/1.1\r\nHost: app.example\r\n\r\n")
        #expect(try await client.reply().text.contains("--allow-host app.example"))
    }

    @Test func `the control plane says what answers`() async throws {
        let pair = try Pair()
        #expect(try await pair.server.ask("GET", "/_larder").json["serves"] == .string("demo"))
        #expect(try await pair.proxy.ask("GET", "/_larder").json["serves"] == .string("proxy"))
    }

    @Test(arguments: [
        "GET /x HTTP/1.1\r\nContent-Length: 46\r\n", "GET /x HTTP/1.0\r\nContent-Length: 0\r\n", "HEAD /x HTTP/1.1\r\n",
    ])
    func `a request that cannot become a WebSocket is sent on as a usual one`(line: String) async throws {
        let other = try RawServer()
        let proxy = try Self.proxy(to: other.url)
        let client = try proxy.connect()
        let body = line.contains(" 46") ? "DELETE /y HTTP/1.1\r\nHost: h\r\nX: 1234567890\r\n\r\n" : ""
        try client.send(line + "Host: p\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n" + body)
        let peer = try await other.next()
        let head = String(decoding: try await peer.read(until: "\r\n\r\n"), as: UTF8.self).lowercased()
        #expect(!head.contains("upgrade"), "\(head)")
        #expect(head.contains("content-length: 46\r\n") == !body.isEmpty, "\(head)")
        try peer.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        #expect(try await client.reply(isHead: line.hasPrefix("HEAD")).status == 200)
    }
}
