import LarderCoding
import LarderEngine
import LarderHTTP
import LarderServer
import LarderTime
import Synchronization
import TestSupport
import Testing

@Suite("Worlds and clocks", .oneMinute)
struct WorldTests {
    @Test func `a world has its own data, clock, faults and journal, by path and by field`() async throws {
        let stage = try Stage()
        let world = try stage.backend.makeWorld(id: "blue")
        world.clock.freeze(at: WallTime(seconds: 1_800_000_000))
        try world.set(Fault(id: "f", .respond(CannedReply(status: 503)), when: FaultMatch("GET", "/v1/posts")))
        let created = try await stage.ask("POST", "/w/blue/v1/posts", #"{"text":"only here"}"#)
        #expect(created.status == 201 && created.field("Date") == "Fri, 15 Jan 2027 08:00:00 GMT")
        #expect(created.field("Location")?.hasPrefix("/w/blue/v1/posts/") ?? false)
        let location = try #require(created.field("Location"))
        #expect(try await stage.ask("GET", location).status == 200)
        let byField = try await stage.ask("GET", "/v1/feed?limit=1", fields: ["Larder-World": "blue"]).json
        #expect(byField["items"]?[0]?["text"] == .string("only here"))
        let main = try await stage.ask("GET", "/v1/feed?limit=1").json
        #expect(main["items"]?[0]?["text"] != .string("only here"))
        #expect(try await stage.ask("GET", "/w/blue/v1/posts").status == 503)
        #expect(try await stage.ask("GET", "/v1/posts").status == 200)
        #expect(await world.journal().count == 4)
        #expect(await stage.world.journal().allSatisfy { !$0.target.contains("blue") })
    }

    @Test func `an unknown world is a problem that names those with similar names`() async throws {
        let stage = try Stage()
        _ = try stage.backend.makeWorld(id: "checkout")
        let reply = try await stage.ask("GET", "/w/chekout/v1/feed")
        #expect(reply.status == 404 && reply.problem == "unknown-world")
        #expect(try reply.json["nearest"] == .array([.string("checkout")]))
        #expect(try await stage.ask("GET", "/w/nope/v1/feed").json["nearest"] == .array([]))
    }

    @Test func `a reset restores the initial state, and tokens from before it lead to a resync`()
        async throws
    {
        let stage = try Stage()
        let before = try await stage.ask("GET", "/v1/feed").body
        let early = try #require(try await stage.ask("GET", "/v1/changes?since=now").json["nextToken"]?.string)
        _ = try await stage.ask("POST", "/v1/posts", #"{"text":"gone soon"}"#)
        let late = try #require(try await stage.ask("GET", "/v1/changes?since=now").json["nextToken"]?.string)
        try stage.world.set(Fault(.reset))
        try stage.world.reset()
        #expect(try await stage.ask("GET", "/v1/feed").body == before)
        _ = try await stage.ask("POST", "/v1/posts", #"{"text":"another"}"#)
        for token in [early, late] {
            #expect(try await stage.ask("GET", "/v1/changes?since=\(token)").status == 410)
        }
    }

    @Test func `a reset ends scripts, actions and webhooks that were planned`() async throws {
        let hook = #"[{"url": "http://127.0.0.1:1/", "delaySeconds": 30}]"#
        let site = try RouteSite(
            routes: #"{"method": "POST", "path": "/orders", "status": 204, "webhooks": \#(hook)}"#,
            .generated(WorldSize(), picturesFrom: nil)
        )
        let world = site.backend.main
        world.clock.freeze()
        let newest = try await site.text("GET", "/v1/feed?limit=1")
        let act = #"{"method": "POST", "path": "/v1/posts", "as": "ana", "body": {"text": "late"}}"#
        let step = #"{"atSeconds": 30, "faults": [{"action": {"type": "respond", "status": 503}}], "act": \#(act)}"#
        #expect(try await site.ask("POST", "/_larder/script", "{\"steps\": [\(step)]}").status < 300)
        #expect(try await site.ask("POST", "/orders", "{}").status == 204)
        // The webhook is planned after its reply, on the loop that answers the next request.
        #expect(try await site.text("GET", "/v1/feed?limit=1") == newest)
        #expect(world.clock.untilNextTimer == .seconds(30))
        try world.reset()
        #expect(world.clock.untilNextTimer == nil)
        world.clock.advance(by: .seconds(60))
        #expect(world.faults.isEmpty)
        #expect(try await site.text("GET", "/v1/feed?limit=1") == newest)
        #expect(try await site.ask("GET", "/_larder/script").json["steps"]?.integer == 0)
    }

    @Test func `a snapshot can be restored, and a fork is independent`() async throws {
        let stage = try Stage()
        _ = try await stage.ask("POST", "/v1/posts", #"{"text":"one"}"#)
        try stage.world.takeSnapshot("s")
        _ = try await stage.ask("POST", "/v1/posts", #"{"text":"two"}"#)
        let fork = try stage.world.fork(id: "fork")
        try stage.world.restore("s")
        func newest(_ path: String) async throws -> String? {
            try await stage.ask("GET", path + "/v1/feed?limit=1").json["items"]?[0]?["text"]?.string
        }
        #expect(try await newest("") == "one")
        #expect(try await newest("/w/fork") == "two")
        #expect(fork.clock.now == stage.world.clock.now)
        fork.perform(ScriptedAction("POST", "/v1/posts", as: "ana", body: #"{"text":"three"}"#))
        #expect(try await newest("/w/fork") == "three")
        #expect(try await newest("") == "one")
        #expect(throws: Problem.self) { try stage.world.restore("unknown") }
    }

    /// A wall clock that calls a function once, when a new world reads it. The loop reads it too, in no task.
    private final class CallingClock: WallClock {
        @TaskLocal static var isMakingWorld = false
        let call = Mutex<(@Sendable () -> Void)?>(nil)

        var now: WallTime {
            guard Self.isMakingWorld else { return WallTime(seconds: 1_790_000_000) }
            let call = call.withLock { call in
                defer { call = nil }
                return call
            }
            call?()
            return WallTime(seconds: 1_790_000_000)
        }
    }

    @Test func `worlds that are made at the same time count towards the limit and take their names`() async throws {
        let clock = CallingClock()
        let stage = try Stage {
            $0.worldsMaximum = 3
            $0.server.wall = clock
        }
        let backend = stage.backend
        // Another world is made while the first one of these is.
        clock.call.withLock { $0 = { #expect(throws: Problem.self) { try backend.makeWorld(id: "a") } } }
        _ = try CallingClock.$isMakingWorld.withValue(true) { try backend.makeWorld(id: "a") }
        clock.call.withLock { $0 = { #expect(throws: Problem.self) { try backend.makeWorld(id: "c") } } }
        _ = try CallingClock.$isMakingWorld.withValue(true) { try backend.makeWorld(id: "b") }
        #expect(backend.worlds.map(\.id) == ["a", "b", "main"])
        #expect(throws: Problem.self) { try backend.makeWorld() }
        try backend.world("a").destroy()
        #expect(try backend.makeWorld().id == "world-1")
        await backend.stop()
    }

    @Test func `three hundred worlds are isolated from each other`() async throws {
        let stage = try Stage()
        for number in 0..<300 {
            let world = try stage.backend.makeWorld(id: "w\(number)")
            world.perform(ScriptedAction("POST", "/v1/posts", as: "ana", body: "{\"text\":\"post of \(number)\"}"))
        }
        for number in stride(from: 0, to: 300, by: 37) {
            let page = try await stage.ask("GET", "/w/w\(number)/v1/feed?limit=2").json
            #expect(page["items"]?[0]?["text"] == .string("post of \(number)"))
            #expect(!(page["items"]?[1]?["text"]?.string?.hasPrefix("post of") ?? true))
        }
        #expect(stage.backend.worlds.count == 301)
        try stage.backend.world("w7").destroy()
        #expect(try await stage.ask("GET", "/w/w7/v1/feed").status == 404)
    }

    @Test func `two hundred concurrent clients are isolated in worlds of one server`() async throws {
        let stage = try Stage()
        let counts = try await withThrowingTaskGroup(of: Int.self) { group in
            for number in 0..<200 {
                group.addTask {
                    let world = try stage.backend.makeWorld(id: "test-\(number)")
                    var once = Fault.Occurrence()
                    once.count = 1
                    try world.set(
                        Fault(id: "lost", .loseReply(.close), when: FaultMatch("POST", "/v1/posts"), occurrence: once)
                    )
                    let path = "/w/test-\(number)"
                    _ = await (try stage.send("POST", path + "/v1/posts", "{\"text\":\"\(number)\"}")).readToEnd()
                    #expect(try await stage.ask("POST", path + "/v1/posts", "{\"text\":\"\(number)\"}").status == 201)
                    let feed = try await stage.ask("GET", path + "/v1/feed?limit=3").json["items"]?.array ?? []
                    let report = await world.verify(
                        .exactly(2, JournalFilter("POST", "/v1/posts")),
                        .exactly(1, JournalFilter("GET", "/v1/feed")),
                        noneOther: true
                    )
                    #expect(report.holds, "\(report)")
                    return feed.count { $0["text"] == .string("\(number)") }
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(counts == Array(repeating: 2, count: 200))
    }

    @Test func `the number of worlds is limited`() async throws {
        let stage = try Stage { $0.worldsMaximum = 2 }
        _ = try stage.backend.makeWorld()
        let reply = try await stage.ask("POST", "/_larder/worlds", "{}")
        #expect(reply.status == 409 && reply.problem == "limit-reached")
        #expect(try reply.json["limit"] == .integer(2))
    }

    @Test func `worlds are made over HTTP: empty, generated, as a fork`() async throws {
        let stage = try Stage()
        let empty = try await stage.ask("POST", "/_larder/worlds", #"{"id":"e","from":"empty"}"#)
        #expect(empty.status == 201)
        #expect(try empty.json["baseURL"] == .string("/w/e"))
        #expect(try await stage.ask("GET", "/w/e/v1/feed", as: nil).json["items"] == .array([]))
        let made = #"{"id":"g","from":{"generator":{"seed":3,"people":5,"posts":9,"messages":0,"transfers":0}}}"#
        #expect(try await stage.ask("POST", "/_larder/worlds", made).status == 201)
        #expect(try await stage.ask("GET", "/w/g/v1/feed?limit=50").json["items"]?.array?.count == 9)
        let fork = try await stage.ask("POST", "/_larder/worlds", #"{"id":"f","from":{"fork":"g"}}"#)
        #expect(fork.status == 201)
        let again = try await stage.ask("POST", "/_larder/worlds", #"{"id":"f"}"#)
        #expect(again.status == 409 && again.problem == "name-taken")
        let wrong = try await stage.ask("POST", "/_larder/worlds", #"{"id":"../x","colour":1}"#)
        #expect(wrong.status == 422)
    }

    @Test func `everything that depends on time follows the world's clock`() async throws {
        let stage = try Stage()
        let password = #"{"handle":"ana","password":"larder"}"#
        let session = try await stage.ask("POST", "/v1/sessions", password, as: nil).json
        let token = try #require(session["accessToken"]?.string)
        let mine = ["Authorization": "Bearer \(token)"]
        #expect(try await stage.ask("GET", "/v1/me", as: nil, fields: mine).status == 200)
        let poll = try stage.send("GET", "/v1/changes?since=now&wait=0")
        let since = try #require(try await poll.reply().json["nextToken"]?.string)
        let waiting = try stage.send("GET", "/v1/changes?since=\(since)&wait=30")
        await reached { stage.world.clock.untilNextTimer != nil }
        #expect(stage.world.clock.untilNextTimer == .seconds(30))
        stage.world.clock.advance(by: .seconds(30))
        #expect(try await waiting.reply().json["items"] == .array([]))
        stage.world.clock.advance(by: .seconds(3_600))
        let expired = try await stage.ask("GET", "/v1/me", as: nil, fields: mine)
        #expect(expired.status == 401 && expired.problem == "token-expired")
        #expect(expired.field("Date") == "Mon, 21 Sep 2026 15:13:50 GMT")
    }

    /// A client compares it with the reply's `Date`, because its own clock may be wrong.
    @Test func `a skew shifts the date in Retry-After, and the conduct report reads it so`() async throws {
        let stage = try Stage()
        stage.world.skewDates(of: "phone", by: .seconds(7_200))
        var limited = CannedReply(status: 429)
        limited.retryAfter = .date(inSeconds: 60)
        try stage.world.set(Fault(.respond(limited), when: FaultMatch("GET", "/v1/feed")))
        let reply = try await stage.ask("GET", "/v1/feed", fields: ["Larder-Device": "phone"])
        #expect(reply.field("Date") == "Mon, 21 Sep 2026 16:13:20 GMT")
        #expect(reply.field("Retry-After") == "Mon, 21 Sep 2026 16:14:20 GMT")
        stage.world.clock.advance(by: .seconds(61))
        _ = try await stage.ask("GET", "/v1/feed", fields: ["Larder-Device": "phone"])
        #expect(await stage.world.conduct.findings.allSatisfy { $0.rule != .retriedTooSoon })
    }

    @Test func `a skew shifts the dates of its device only`() async throws {
        let stage = try Stage()
        stage.world.skewDates(of: "phone", by: .seconds(-86_400))
        let skewed = try await stage.ask("GET", "/v1/feed", fields: ["Larder-Device": "phone"])
        #expect(skewed.field("Date") == "Sun, 20 Sep 2026 14:13:20 GMT")
        #expect(try await stage.ask("GET", "/v1/feed").field("Date") == "Mon, 21 Sep 2026 14:13:20 GMT")
    }

    @Test func `the clock can be read, frozen, set, advanced and run over HTTP`() async throws {
        let stage = try Stage()
        let frozen = try await stage.ask("PUT", "/_larder/clock", #"{"mode":"frozen","time":"2030-01-01T00:00:00Z"}"#)
        #expect(try frozen.json["time"] == .string("2030-01-01T00:00:00.000Z"))
        let later = try await stage.ask("POST", "/_larder/clock/advance", #"{"seconds":90.5}"#)
        #expect(try later.json["time"] == .string("2030-01-01T00:01:30.500Z"))
        let back = try await stage.ask("PUT", "/_larder/clock", #"{"time":"2020-02-02T00:00:00Z"}"#)
        #expect(try back.json["time"] == .string("2020-02-02T00:00:00.000Z"))
        let wrong = try await stage.ask("PUT", "/_larder/clock", #"{"mode":"slow"}"#)
        #expect(wrong.status == 422)
        #expect(try wrong.json["errors"]?[0]?["pointer"] == .string("/mode"))
    }

    @Test func `timers run in order and each at its own time during an advance`() async throws {
        let stage = try Stage()
        let world = stage.world
        for (delay, text) in [(30, "third"), (10, "first"), (20, "second")] {
            let act = ScriptedAction("POST", "/v1/posts", as: "ana", body: "{\"text\":\"\(text)\"}")
            world.clock.plan(after: .seconds(delay)) { world.perform(act) }
        }
        stage.world.clock.advanceToNextTimer()
        stage.world.clock.advance(by: .seconds(60))
        let posts = try await stage.ask("GET", "/v1/feed?limit=3").json["items"]?.array ?? []
        #expect(posts.map { $0["text"]?.string } == ["third", "second", "first"])
        #expect(
            posts.map { $0["createdAt"]?.string } == [
                "2026-09-21T14:13:50.000Z", "2026-09-21T14:13:40.000Z", "2026-09-21T14:13:30.000Z",
            ]
        )
    }

    private static let pictures = #filePath.replacing("Tests/LarderServerTests/WorldTests.swift", with: "Fixtures")

    /// A backend whose people have pictures, with a world `b`.
    private func pictured() throws -> MockBackend {
        var configuration = MockBackend.Configuration()
        configuration.seed = 1
        configuration.disableConnectionTimeouts()
        var size = WorldSize()
        (size.people, size.posts, size.conversations, size.messages, size.transfers) = (4, 20, 0, 0, 0)
        let backend = try MockBackend.start(.generated(size, picturesFrom: Self.pictures), configuration)
        _ = try backend.makeWorld(id: "b")
        return backend
    }

    private func ask(
        _ backend: MockBackend,
        _ method: String,
        _ target: String,
        _ body: String = "",
        _ fields: String = ""
    ) async throws -> RawReply {
        let client = try RawClient(port: backend.port)
        let content = body.isEmpty ? "" : "Content-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n"
        let head =
            "\(method) \(target) HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer dev-ana\r\n\(fields)\(content)\r\n"
        try client.send(head + body)
        return try await client.reply(isHead: method == "HEAD")
    }

    @Test func `a world that is addressed by path has its own links, and the texts of people unchanged`() async throws {
        let backend = try pictured()
        let profile = try await ask(backend, "GET", "/w/b/v1/profiles/user_1")
        let url = try #require(try profile.json["avatar"]?["url"]?.string)
        #expect(url.hasPrefix("/w/b/v1/images/"))
        #expect(try await ask(backend, "GET", url + "?width=64").status == 200)
        for text in ["/v1/images/hello", #""url":"/v1/images/hello""#] {
            let quoted = text.replacing("\"", with: "\\\"")
            let posted = try await ask(backend, "POST", "/w/b/v1/posts", "{\"text\":\"\(quoted)\"}")
            #expect(posted.status == 201)
            #expect(try posted.json["text"]?.string == text)
            let feed = try await ask(backend, "GET", "/w/b/v1/feed?limit=1").json
            #expect(feed["items"]?[0]?["text"]?.string == text)
        }
        let body = #"{\"url\":\"/v1/images/x\"}"#
        let fault = #"{"match":{"path":"/v1/own"},"action":{"type":"respond","status":200,"body":"\#(body)"}}"#
        #expect(try await ask(backend, "POST", "/_larder/worlds/b/faults", fault).status == 201)
        #expect(try await ask(backend, "GET", "/w/b/v1/own").json["url"]?.string == "/v1/images/x")
        await backend.stop()
    }

    @Test(arguments: [("gzip", CompressionFormat.gzip), ("deflate", .zlib)])
    func `a world that is addressed by path is compressed as any other`(_ coding: String, _ format: CompressionFormat)
        async throws
    {
        let backend = try pictured()
        let target = "/w/b/v1/feed?limit=20"
        let plain = try await ask(backend, "GET", target)
        let coded = try await ask(backend, "GET", target, "", "Accept-Encoding: \(coding)\r\n")
        #expect(coded.field("Content-Encoding") == coding && coded.body.count < plain.body.count / 2)
        #expect(coded.field("Content-Length") == "\(coded.body.count)")
        let tag = try #require(coded.field("ETag"))
        #expect(tag == "\(try #require(plain.field("ETag")).dropLast())-\(coding)\"")
        var inflater = Inflater(format)
        var content = [UInt8](repeating: 0, count: 1 << 20)
        var consumed = 0
        let count = try inflater.read(content.count, into: &content, from: coded.body.span, consumed: &consumed)
        #expect(inflater.hasEnded && Array(content[..<count]) == plain.body)
        #expect(plain.text.contains("\"/w/b/v1/images/"))
        let fields = "Accept-Encoding: \(coding)\r\nIf-None-Match: \(tag)\r\n"
        #expect(try await ask(backend, "GET", target, "", fields).status == 304)
        await backend.stop()
    }

    @Test func `a restored snapshot sets the date of a clock back, and never its mode`() async throws {
        let stage = try Stage()
        let clock = stage.world.clock
        let time = clock.now
        try stage.world.takeSnapshot("s")
        clock.advance(by: .seconds(60))
        try stage.world.restore("s")
        #expect(clock.mode == .frozen && clock.now == time)
        clock.run(factor: 2)
        try stage.world.restore("s")
        #expect(clock.mode == .running(factor: 2))
        clock.followSystem()
        try stage.world.restore("s")
        #expect(clock.mode == .real)
    }

    @Test func `live events of a world that is addressed by path have its own links, also those that were missed`()
        async throws
    {
        let backend = try pictured()
        let now = try await ask(backend, "GET", "/w/b/v1/changes?since=now").json["nextToken"]?.string ?? ""
        func rename(_ name: String) async throws {
            let body = "{\"displayName\":\"\(name)\"}"
            #expect(try await ask(backend, "PATCH", "/w/b/v1/me", body, "If-Match: *\r\n").status == 200)
        }
        try await rename("Anna")
        let stream = try RawClient(port: backend.port)
        try stream.send(
            "GET /w/b/v1/live/events?since=\(now) HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer dev-ana\r\n\r\n"
        )
        func links() async throws -> Bool {
            _ = try await stream.read(until: "event: change\n")
            let event = String(decoding: try await stream.read(until: "\n\n"), as: UTF8.self)
            return event.contains("\"url\":\"/w/b/v1/images/")
        }
        #expect(try await links())
        try await rename("Ana")
        #expect(try await links())
        await backend.stop()
    }

    @Test func `a HEAD in a world that is addressed by path states the length of its GET`() async throws {
        let backend = try pictured()
        for target in ["/w/b/v1/profiles/user_1", "/v1/profiles/user_1"] {
            let whole = try await ask(backend, "GET", target)
            let head = try await ask(backend, "HEAD", target)
            #expect(head.status == 200 && head.field("Content-Length") == "\(whole.body.count)", "\(target)")
        }
        try backend.world("b").drift = SchemaDrift(seed: 7)
        let whole = try await ask(backend, "GET", "/w/b/v1/feed")
        let head = try await ask(backend, "HEAD", "/w/b/v1/feed")
        #expect(head.field("Content-Length") == "\(whole.body.count)")
        await backend.stop()
    }
}
