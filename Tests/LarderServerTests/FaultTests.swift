import LarderCoding
import LarderHTTP
import LarderServer
import LarderTime
import Synchronization
import TestSupport
import Testing

@Suite("Faults on the wire", .oneMinute)
struct FaultTests {
    private let feed = FaultMatch("GET", "/v1/feed")

    @Test func `a delayed reply is sent at its time on the world's clock`() async throws {
        let stage = try Stage()
        try stage.world.set(Fault(.latency(connect: nil, firstByte: .fixed(.seconds(3)), body: nil), when: feed))
        let client = try stage.send("GET", "/v1/feed")
        // The reply on another connection proves that the delayed request is being handled.
        #expect(try await stage.ask("GET", "/v1/posts").status == 200)
        await reached { stage.world.clock.untilNextTimer != nil }
        stage.world.clock.advance(by: .milliseconds(2_999))
        #expect(try await stage.ask("GET", "/v1/posts").status == 200)
        #expect(!client.hasNews)
        stage.world.clock.advance(by: .milliseconds(1))
        let reply = try await client.reply()
        #expect(reply.status == 200)
        #expect(await stage.world.journal(JournalFilter("GET", "/v1/feed")).first?.injected == .seconds(3))
    }

    @Test(arguments: [true, false])
    func `a client of HTTP/1.0 is told whether its connection persists`(_ isFaulty: Bool) async throws {
        let stage = try Stage()
        stage.world.clock.followSystem()
        if isFaulty { try stage.world.set(Fault(.validators(.weak), when: feed)) }
        let client = try stage.connect()
        for persists in [true, false] {
            try client.send(
                "GET /v1/feed?limit=1 HTTP/1.0\r\nHost: h\r\n\(persists ? "Connection: Keep-Alive\r\n" : "")\r\n"
            )
            let reply = try await client.reply()
            #expect(reply.status == 200 && reply.field("Connection") == (persists ? "keep-alive" : "close"))
        }
        #expect(await client.isClosedByPeer())
    }

    @Test func `a generated name is that of no other fault, also of an earlier one`() async throws {
        let stage = try Stage()
        func names(_ faults: Fault...) throws -> [String] { try faults.flatMap { try stage.world.set($0).map(\.id) } }
        var known = try names(Fault(.reset), Fault(id: "fault-3", .reset))
        stage.world.removeFaults()
        known += try names(Fault(.reset), Fault(.reset))
        try stage.world.reset()
        known += try stage.world.set(Fault(.reset), Fault(id: "fault-8", .reset), Fault(.reset)).map(\.id)
        _ = try await stage.ask("PUT", "/_larder/faults", #"{"faults":[{"action":{"type":"reset"}}]}"#)
        known += stage.world.faults.map(\.fault.id)
        let both = try stage.world.set(Fault(.reset), Fault(id: "fault-12", .reset))
        known += both.map(\.id)
        #expect(Set(known).count == known.count, "\(known)")
        #expect(stage.world.faults.count == 3)
        _ = try names(Fault(id: "fault-9223372036854775807", .reset))
        #expect(try names(Fault(.reset)) == ["fault-14"])
    }

    @Test func `a transfer with a lost reply is committed once, and its key returns the outcome`()
        async throws
    {
        let stage = try Stage()
        let match = FaultMatch("POST", "/v1/transfers")
        var once = Fault.Occurrence()
        once.count = 1
        try stage.world.set(Fault(id: "lost", .loseReply(.reset), when: match, occurrence: once))
        let body = try await stage.transfer()
        let lost = try stage.send("POST", "/v1/transfers", body, fields: ["Idempotency-Key": "k"])
        let (bytes, ending) = await lost.readToEnd()
        #expect(bytes.isEmpty && ending == .reset)
        let again = try await stage.ask("POST", "/v1/transfers", body, fields: ["Idempotency-Key": "k"])
        #expect(again.status == 201 && again.field("Idempotent-Replayed") == "true")
        let records = await stage.world.journal(JournalFilter("POST", "/v1/transfers"))
        #expect(records.map(\.outcome) == ["reset", "complete"])
        #expect(records.first?.commit != nil && records.last?.faults == [])
        #expect(try stage.world.ledgerFaults() == [])
    }

    @Test(arguments: [FaultAction.reset, .close])
    func `a connection ends at the given byte with RST or FIN`(_ action: FaultAction) async throws {
        let stage = try Stage()
        try stage.world.set(
            Fault(id: "head", action, when: FaultMatch("GET", "/v1/feed"), stage: .head, at: 9),
            Fault(id: "body", action, when: FaultMatch("GET", "/v1/posts"), stage: .body, at: 20),
            Fault(id: "end", action, when: FaultMatch("GET", "/v1/profiles/user_1"), stage: .end)
        )
        let wanted: RawClient.Ending = action == .reset ? .reset : .closed
        let head = await (try stage.send("GET", "/v1/feed")).readToEnd()
        #expect(String(decoding: head.bytes, as: UTF8.self) == "HTTP/1.1 " && head.ending == wanted)
        let body = try stage.send("GET", "/v1/posts")
        let bodyHead = String(decoding: try await body.read(until: "\r\n\r\n"), as: UTF8.self)
        let rest = await body.readToEnd()
        #expect(bodyHead.contains("200") && rest.bytes.count == 20 && rest.ending == wanted)
        let whole = try stage.send("GET", "/v1/profiles/user_1")
        #expect(try await whole.reply().status == 200)
        #expect(await whole.readToEnd().ending == wanted)
    }

    @Test(arguments: ["HTTP/1.1\r\nConnection: close", "HTTP/1.1\r\nConnection: keep-alive", "HTTP/1.0"])
    func `a reply is cut at the given byte whatever the client says about the connection`(_ rest: String) async throws {
        let stage = try Stage()
        let profile = FaultMatch("GET", "/v1/profiles/user_1")
        for (fault, count) in [
            (Fault(id: "cut", .truncate(.byte(20)), when: profile), 20),
            (Fault(id: "cut", .reset, when: profile, stage: .body, at: 30), 30),
            (Fault(id: "cut", .reset, when: profile, stage: .end), nil),
        ] {
            try stage.world.set(fault)
            let client = try RawClient(port: stage.backend.port)
            try client.send("GET /v1/profiles/user_1 \(rest)\r\nHost: test\r\n\r\n")
            let head = String(decoding: try await client.read(until: "\r\n\r\n"), as: UTF8.self)
            let length = RawReply(status: 200, head: head, body: []).field("Content-Length").flatMap { Int($0) }
            let body = await client.readToEnd().bytes
            #expect(body.count == count ?? length, "\(fault)")
        }
    }

    @Test func `a fault without a reply leaves the connection open`() async throws {
        let stage = try Stage()
        try stage.world.set(Fault(.never, when: feed))
        let client = try stage.send("GET", "/v1/feed")
        #expect(try await stage.ask("GET", "/v1/posts").status == 200)
        #expect(!client.hasNews)
        client.finishSending()
        #expect(await client.readToEnd().ending == .closed)
        let entry = WaitCondition.entries(JournalFilter("GET", "/v1/feed"), count: 1)
        #expect(await stage.world.wait(for: entry, limit: .seconds(3_600)))
        #expect(await stage.world.journal(JournalFilter("GET", "/v1/feed")).first?.outcome == "silent")
    }

    @Test func `a canned reply has its problem, fields and both forms of Retry-After`() async throws {
        let stage = try Stage()
        var unavailable = CannedReply(status: 503)
        unavailable.retryAfter = .seconds(7)
        unavailable.headers = ["X-Why": "test"]
        var limited = CannedReply(status: 429)
        limited.retryAfter = .date(inSeconds: 60)
        try stage.world.set(
            Fault(.respond(unavailable), when: feed),
            Fault(.respond(limited), when: FaultMatch("GET", "/v1/posts"))
        )
        let first = try await stage.ask("GET", "/v1/feed")
        #expect(first.status == 503)
        #expect(first.problem == "service-unavailable")
        #expect(first.field("Retry-After") == "7")
        #expect(first.field("X-Why") == "test")
        let second = try await stage.ask("GET", "/v1/posts")
        #expect(second.status == 429 && second.field("Retry-After") == "Mon, 21 Sep 2026 14:14:20 GMT")
    }

    @Test func `a truncated body is shorter than announced, also inside a character or a chunk's size`()
        async throws
    {
        let stage = try Stage()
        stage.world.perform(ScriptedAction("POST", "/v1/posts", as: "ana", body: #"{"text":"ééééééééééééééééé"}"#))
        try stage.world.set(
            Fault(.truncate(.byte(10)), when: feed),
            Fault(.truncate(.insideCharacter), when: FaultMatch("GET", "/v1/posts")),
            Fault(.truncate(.insideChunkHeader), when: FaultMatch("GET", "/v1/profiles"))
        )
        let short = try stage.send("GET", "/v1/feed")
        let head = String(decoding: try await short.read(until: "\r\n\r\n"), as: UTF8.self)
        let length = RawReply(status: 200, head: head, body: []).field("Content-Length").flatMap { Int($0) }
        let (bytes, _) = await short.readToEnd()
        #expect(bytes.count == 10 && length ?? 0 > 1_000)

        let text = try stage.send("GET", "/v1/posts")
        _ = try await text.read(until: "\r\n\r\n")
        #expect(String(validating: await text.readToEnd().bytes, as: UTF8.self) == nil)

        let chunked = try stage.send("GET", "/v1/profiles")
        let chunkedHead = String(decoding: try await chunked.read(until: "\r\n\r\n"), as: UTF8.self)
        #expect(chunkedHead.contains("Transfer-Encoding: chunked") && !chunkedHead.contains("Content-Length"))
        let pieces = String(decoding: await chunked.readToEnd().bytes, as: UTF8.self)
        #expect(!pieces.hasSuffix("\r\n") && pieces.split(separator: "\r\n").count >= 3)
    }

    @Test func `flipped bytes, wrong types and invalid JSON keep the announced length`() async throws {
        let stage = try Stage()
        let clean = try await stage.ask("GET", "/v1/feed")
        try stage.world.set(
            Fault(id: "corrupt", .corrupt(bytes: 3), when: feed),
            Fault(id: "type", .contentType("text/html"), when: FaultMatch("GET", "/v1/posts")),
            Fault(id: "json", .malformedJSON, when: FaultMatch("GET", "/v1/profiles"))
        )
        let corrupt = try await stage.ask("GET", "/v1/feed")
        let differing = zip(clean.body, corrupt.body).count { $0 != $1 }
        #expect(corrupt.body.count == clean.body.count && (1...3).contains(differing))
        let lie = try await stage.ask("GET", "/v1/posts")
        #expect(lie.field("Content-Type") == "text/html" && lie.text.hasPrefix("{"))
        let broken = try await stage.ask("GET", "/v1/profiles")
        #expect((try? broken.json) == nil && broken.body.count > 100)
    }

    @Test func `validators can be missing, weak, changing or constant`() async throws {
        let stage = try Stage()
        func tags(_ mode: FaultAction.ValidatorFault) async throws -> [String?] {
            try stage.world.set(Fault(id: "v", .validators(mode), when: feed))
            return [
                try await stage.ask("GET", "/v1/feed").field("ETag"),
                try await stage.ask("GET", "/v1/feed").field("ETag"),
            ]
        }
        #expect(try await tags(.missing) == [nil, nil])
        let weak = try await tags(.weak)
        #expect(weak[0]?.hasPrefix("W/\"") ?? false && weak[0] == weak[1])
        let changing = try await tags(.changing)
        #expect(changing[0] != changing[1] && changing[0] != nil)
        let wrong = try #require(try await tags(.wrong)[0])
        stage.world.perform(ScriptedAction("POST", "/v1/posts", as: "person2", body: #"{"text":"new"}"#))
        let stale = try await stage.ask("GET", "/v1/feed", fields: ["If-None-Match": wrong])
        #expect(stale.status == 304 && stale.body.isEmpty)
    }

    @Test func `a duplicated request has two effects unless it has an idempotency key`() async throws {
        let stage = try Stage()
        try stage.world.set(Fault(.duplicate, when: FaultMatch("POST", "/v1/**")))
        let before = stage.world.commitCount
        let body = try await stage.transfer()
        let transfer = try await stage.ask("POST", "/v1/transfers", body, fields: ["Idempotency-Key": "k"])
        #expect(transfer.status == 201 && transfer.field("Idempotent-Replayed") == "true")
        let post = try await stage.ask("POST", "/v1/posts", #"{"text":"twice"}"#)
        #expect(post.status == 201)
        let texts = try await stage.ask("GET", "/v1/feed?limit=3").json["items"]?.array?.map { $0["text"]?.string }
        #expect(texts?.prefix(2) == ["twice", "twice"])
        #expect(stage.world.commitCount - before >= 3)
    }

    @Test func `a lagging replica shows an earlier state by commits and by age`() async throws {
        let stage = try Stage()
        let original = try await stage.ask("GET", "/v1/profiles/user_1")
        try stage.world.set(Fault(id: "lag", .lag(.init(commits: 1)), when: FaultMatch("GET", "/v1/**")))
        for name in ["One", "Two", "Three"] {
            stage.world.clock.advance(by: .seconds(10))
            let act = ScriptedAction("PATCH", "/v1/profiles/user_1", as: "ana", body: "{\"displayName\":\"\(name)\"}")
            #expect(stage.world.perform(act).status == 200)
        }
        #expect(try await stage.ask("GET", "/v1/profiles/user_1").json["displayName"] == .string("Two"))
        try stage.world.set(Fault(id: "lag", .lag(.init(commits: 2)), when: FaultMatch("GET", "/v1/**")))
        #expect(try await stage.ask("GET", "/v1/profiles/user_1").json["displayName"] == .string("One"))
        try stage.world.set(Fault(id: "lag", .lag(.init(age: .seconds(25))), when: FaultMatch("GET", "/v1/**")))
        #expect(try await stage.ask("GET", "/v1/profiles/user_1").body == original.body)
        stage.world.clock.advance(by: .seconds(25))
        #expect(try await stage.ask("GET", "/v1/profiles/user_1").json["displayName"] == .string("Three"))
        stage.world.removeFaults()
        #expect(try await stage.ask("GET", "/v1/profiles/user_1").json["displayName"] == .string("Three"))
        #expect(try stage.world.ledgerFaults() == [])
    }

    @Test func `bandwidth is shared by all connections of a device`() async throws {
        let stage = try Stage()
        try stage.world.set(Fault(.bandwidth(down: 10_000, up: nil), when: FaultMatch("GET", "/v1/**")))
        let (world, port) = (stage.world, stage.backend.port)
        /// Reads as many replies at once, and moves the clock whenever all that are left wait for it. Returns the time.
        func read(_ count: Int) async throws -> (RawReply?, Duration) {
            let start = world.clock.now
            let left = Left(count)
            let mover = Task {
                while !Task.isCancelled {
                    let count = left.count.withLock { $0 }
                    if count == 0 || world.clock.waitCount < count
                        || world.clock.advanceToNextTimer() == nil
                    {
                        await Task.yield()
                    }
                }
            }
            let reply = try await withThrowingTaskGroup(of: RawReply.self) { group in
                for _ in 0..<count {
                    group.addTask {
                        defer { left.count.withLock { $0 -= 1 } }
                        let client = try RawClient(port: port)
                        try client.send(
                            "GET /v1/feed?limit=20 HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer dev-ana\r\nLarder-Device: phone\r\n\r\n"
                        )
                        return try await client.reply()
                    }
                }
                return try await group.reduce(nil) { $1 }
            }
            mover.cancel()
            await mover.value
            return (reply, world.clock.now - start)
        }
        let (alone, took) = try await read(1)
        let reply = try #require(alone)
        let size = reply.head.utf8.count + reply.body.count
        let expected = Duration.seconds(Double(size) / 10_000)
        #expect(took > expected * 0.95 && took < expected * 1.1)
        let (_, both) = try await read(2)
        #expect(both > expected * 1.9 && both < expected * 2.2)
    }

    @Test func `replies whose clients have gone use no bandwidth`() async throws {
        let stage = try Stage()
        try stage.world.set(Fault(.bandwidth(down: 10_000, up: nil), when: FaultMatch("GET", "/v1/**")))
        let pusher = Task { [stage] in
            while !Task.isCancelled {
                if stage.world.clock.advanceToNextTimer() == nil { await Task.yield() }
            }
        }
        defer { pusher.cancel() }
        let phone = ["Larder-Device": "phone"]
        var start = stage.world.clock.now
        _ = try await stage.ask("GET", "/v1/feed?limit=20", fields: phone)
        let alone = stage.world.clock.now - start
        for _ in 0..<8 {
            let abandoned = try stage.send("GET", "/v1/feed?limit=20", fields: phone)
            _ = try await abandoned.read(count: 1)
        }
        start = stage.world.clock.now
        _ = try await stage.ask("GET", "/v1/feed?limit=20", fields: phone)
        #expect(stage.world.clock.now - start < alone * 2)
        pusher.cancel()
        await pusher.value
    }

    @Test func `packet loss delays the reply and loses no byte`() async throws {
        let stage = try Stage()
        let clean = try await stage.ask("GET", "/v1/feed?limit=50")
        let loss = BurstLoss(goodToBad: 0.5, badToGood: 0.3, lossInGood: 0.1, lossInBad: 0.8)
        try stage.world.set(Fault(.loss(loss), when: feed))
        let client = try stage.send("GET", "/v1/feed?limit=50")
        let pusher = Task { [stage] in
            while !Task.isCancelled {
                if stage.world.clock.advanceToNextTimer() == nil { await Task.yield() }
            }
        }
        defer { pusher.cancel() }
        let reply = try await client.reply()
        pusher.cancel()
        await pusher.value
        #expect(reply.body == clean.body)
        #expect(
            await stage.world.journal(JournalFilter("GET", "/v1/feed")).last?.injected ?? .zero >= .milliseconds(300)
        )
    }

    @Test func `drip sends the body in small pieces`() async throws {
        let stage = try Stage()
        try stage.world.set(
            Fault(.drip(bytes: 100, every: .seconds(1)), when: FaultMatch("GET", "/v1/profiles/user_1"))
        )
        let client = try stage.send("GET", "/v1/profiles/user_1")
        let head = String(decoding: try await client.read(until: "\r\n\r\n"), as: UTF8.self)
        let length = RawReply(status: 200, head: head, body: []).field("Content-Length").flatMap { Int($0) } ?? 0
        var drops = 1
        var count = try await client.read(count: min(100, length)).count
        while count < length {
            await reached { stage.world.clock.untilNextTimer != nil }
            stage.world.clock.advance(by: .seconds(1))
            count += try await client.read(count: min(100, length - count)).count
            drops += 1
        }
        #expect(drops == (length + 99) / 100 && drops > 2)
    }

    @Test func `a fault before the body is read replies before the body is sent`() async throws {
        let stage = try Stage()
        try stage.world.set(
            Fault(.respond(CannedReply(status: 503)), when: FaultMatch("POST", "/v1/posts"), stage: .beforeRead)
        )
        let client = try stage.connect()
        try client.send(
            "POST /v1/posts HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"
        )
        #expect(try await client.reply().status == 503)
    }

    @Test func `a fault that closes before the body is read does not reset, although the body has arrived`()
        async throws
    {
        let stage = try Stage()
        try stage.world.set(Fault(.close, when: FaultMatch("POST", "/v1/posts"), stage: .beforeRead))
        let client = try stage.connect()
        let body = String(repeating: "a", count: 500_000)
        try client.send("POST /v1/posts HTTP/1.1\r\nHost: h\r\nContent-Length: 500000\r\n\r\n\(body)")
        let (bytes, ending) = await client.readToEnd()
        #expect(bytes.isEmpty && ending == .closed)
    }

    @Test func `a reply before the body is read says that the connection closes`() async throws {
        let stage = try Stage()
        let fault = Fault(
            id: "f",
            .respond(CannedReply(status: 503)),
            when: FaultMatch("POST", "/v1/posts"),
            stage: .beforeRead
        )
        try stage.world.set(fault)
        let client = try stage.send("POST", "/v1/posts", #"{"text":"unread"}"#)
        let reply = try await client.reply()
        #expect(reply.status == 503 && reply.field("Connection") == "close")
        client.finishSending()
        #expect(await client.readToEnd().ending == .closed)
    }

    @Test func `the echo has no faults, not before its body is read either`() async throws {
        let stage = try Stage()
        try stage.world.set(Fault(.reset, when: FaultMatch(), stage: .beforeRead))
        try stage.world.set(Fault(.reset, when: FaultMatch(), stage: .requestBody, at: 1))
        #expect(try await stage.ask("POST", "/_larder/echo", "abc", as: nil).status == 200)
    }

    @Test func `a fault with probability 0 has no effect and is reported`() async throws {
        let stage = try Stage()
        let before = try await stage.ask("GET", "/v1/feed")
        var never = Fault.Occurrence()
        never.probability = 0
        try stage.world.set(Fault(id: "zero", .reset, when: FaultMatch(), occurrence: never))
        let after = try await stage.ask("GET", "/v1/feed")
        #expect(before.head == after.head && before.body == after.body)
        let listed = try await stage.ask("GET", "/_larder/faults", as: nil).json["items"]?[0]
        #expect(listed?["neverMatches"]?.string?.contains("probability") ?? false)
    }

    @Test func `the same requests meet the same faults, whatever other devices do meanwhile`() async throws {
        func run(withOthers: Bool) async throws -> [String] {
            let stage = try Stage()
            var some = Fault.Occurrence()
            some.probability = 0.4
            try stage.world.set(
                Fault(
                    id: "a",
                    .respond(CannedReply(status: 503)),
                    when: FaultMatch("GET", "/v1/feed"),
                    occurrence: some
                ),
                Fault(id: "b", .corrupt(bytes: 1), when: FaultMatch("GET", "/v1/**"), occurrence: some)
            )
            var seen: [String] = []
            for index in 0..<60 {
                if withOthers, index % 3 == 0 {
                    _ = try await stage.ask("GET", "/v1/feed", fields: ["Larder-Device": "other"])
                }
                let reply = try await stage.ask("GET", "/v1/feed", fields: ["Larder-Device": "mine"])
                seen.append("\(reply.status) \(reply.body.reduce(0) { ($0 &* 31) &+ Int($1) })")
            }
            await stage.backend.stop()
            return seen
        }
        let first = try await run(withOthers: false)
        #expect(try await run(withOthers: false) == first)
        #expect(try await run(withOthers: true) == first)
        #expect(first.contains { $0.hasPrefix("503") } && first.contains { $0.hasPrefix("200") })
    }

    @Test func `after, every, count and windows select exchanges`() async throws {
        let stage = try Stage()
        var some = Fault.Occurrence()
        some.after = 1
        some.every = 2
        some.count = 2
        try stage.world.set(Fault(id: "f", .respond(CannedReply(status: 500)), when: feed, occurrence: some))
        var statuses: [Int] = []
        for _ in 0..<8 { statuses.append(try await stage.ask("GET", "/v1/feed").status) }
        #expect(statuses == [200, 500, 200, 500, 200, 200, 200, 200])

        var window = Fault.Occurrence()
        window.from = .seconds(10)
        window.until = .seconds(20)
        window.period = .seconds(60)
        try stage.world.set(Fault(id: "f", .respond(CannedReply(status: 500)), when: feed, occurrence: window))
        statuses = []
        for _ in 0..<14 {
            statuses.append(try await stage.ask("GET", "/v1/feed").status)
            stage.world.clock.advance(by: .seconds(5))
        }
        #expect(statuses == [200, 200, 500, 500, 200, 200, 200, 200, 200, 200, 200, 200, 200, 200])
        #expect(try await stage.ask("GET", "/v1/feed").status == 500)
    }

    @Test func `a fault matches by user, device, field, body, connection and exchange`() async throws {
        let stage = try Stage()
        let reject = FaultAction.respond(CannedReply(status: 500))
        func status(_ match: FaultMatch, _ body: () async throws -> RawReply) async throws -> Int {
            stage.world.removeFaults()
            try stage.world.set(Fault(reject, when: match))
            return try await body().status
        }
        var match = FaultMatch()
        match.user = "ana"
        #expect(try await status(match) { try await stage.ask("GET", "/v1/feed") } == 500)
        #expect(try await status(match) { try await stage.ask("GET", "/v1/feed", as: "person2") } == 200)
        match = FaultMatch()
        match.device = "phone"
        #expect(
            try await status(match) { try await stage.ask("GET", "/v1/feed", fields: ["Larder-Device": "phone"]) }
                == 500
        )
        #expect(
            try await status(match) { try await stage.ask("GET", "/v1/feed", fields: ["Larder-Device": "pad"]) } == 200
        )
        match = FaultMatch()
        match.headers = ["X-Test": "*"]
        #expect(try await status(match) { try await stage.ask("GET", "/v1/feed", fields: ["x-test": "1"]) } == 500)
        #expect(try await status(match) { try await stage.ask("GET", "/v1/feed") } == 200)
        match = FaultMatch()
        match.body = ["/text": "bad"]
        #expect(try await status(match) { try await stage.ask("POST", "/v1/posts", #"{"text":"bad"}"#) } == 500)
        #expect(try await status(match) { try await stage.ask("POST", "/v1/posts", #"{"text":"good"}"#) } == 201)
        match = FaultMatch()
        match.exchange = 2
        stage.world.removeFaults()
        try stage.world.set(Fault(reject, when: match))
        let client = try stage.send("GET", "/v1/feed")
        #expect(try await client.reply().status == 200)
        #expect(try await stage.send("GET", "/v1/feed", on: client).reply().status == 500)
    }

    @Test func `the listener closes for the given time and reopens`() async throws {
        let stage = try Stage()
        try stage.world.set(Fault(.closeListener(.seconds(5)), when: feed))
        let other = try stage.connect()
        let client = try stage.send("GET", "/v1/feed")
        #expect(await client.readToEnd().ending == .reset)
        var rejected = false
        while !rejected, !Task.isCancelled {
            rejected = (try? stage.connect()) == nil
            await Task.yield()
        }
        #expect(rejected)
        #expect(try await stage.send("GET", "/v1/posts", on: other).reply().status == 200)
        stage.world.removeFaults()
        stage.world.clock.advance(by: .seconds(5))
        #expect(try await stage.send("GET", "/v1/posts", on: other).reply().status == 200)
        #expect(try await stage.ask("GET", "/v1/feed").status == 200)
    }

    @Test func `a reset opens a closed listener`() async throws {
        let stage = try Stage()
        try stage.world.set(Fault(.closeListener(.seconds(5)), when: feed))
        let other = try stage.connect()
        #expect(await (try stage.send("GET", "/v1/feed")).readToEnd().ending == .reset)
        #expect(try await stage.send("GET", "/v1/posts", on: other).reply().status == 200)
        try stage.world.reset()
        for _ in 0..<3 { #expect(try await stage.send("GET", "/v1/posts", on: other).reply().status == 200) }
        #expect(try await stage.ask("GET", "/v1/feed").status == 200)
        #expect(stage.world.clock.untilNextTimer == nil)
    }

    @Test(arguments: [0, 100])
    func `a connection that was used before the fault is stale, with and without a journal`(capacity: Int) async throws
    {
        let stage = try Stage { $0.journalCapacity = capacity }
        stage.world.clock.followSystem()
        let client = try stage.send("GET", "/v1/feed")
        #expect(try await client.reply().status == 200)
        try stage.world.set(Fault(.staleConnections))
        #expect(await (try stage.send("GET", "/v1/feed", on: client)).readToEnd().ending == .reset)
        #expect(try await stage.ask("GET", "/v1/feed").status == 200)
    }

    @Test(arguments: ["GET", "POST"])
    func `a delay of the body that is set before the request is read delays it`(method: String) async throws {
        let stage = try Stage()
        let path = "/v1/posts"
        let slow = FaultAction.latency(connect: nil, firstByte: .fixed(.seconds(2)), body: .fixed(.seconds(3)))
        try stage.world.set(Fault(slow, when: FaultMatch(method, path), stage: .beforeRead))
        let client = try stage.send(method, path, method == "POST" ? #"{"text":"one"}"# : nil)
        #expect(await stage.advance(stage.world, until: client) == .seconds(2))
        _ = try await client.read(until: "\r\n\r\n")
        #expect(await stage.advance(stage.world, until: client) == .seconds(3))
        _ = try await client.read(until: "}")
        #expect(await stage.world.journal(JournalFilter(method, path)).first?.injected == .seconds(5))
    }

    @Test(arguments: [FaultAction.malformedChunk, .truncate(.insideChunkHeader)])
    func `a fault of chunks leaves a reply without content as it is`(action: FaultAction) async throws {
        let stage = try Stage()
        let tag = try #require(try await stage.ask("GET", "/v1/feed").field("ETag"))
        try stage.world.set(Fault(action, when: FaultMatch(nil, "/v1/feed")))
        let client = try stage.connect()
        for (method, status) in [("GET", 304), ("HEAD", 200)] {
            let fields = method == "GET" ? ["If-None-Match": tag] : [:]
            let reply = try await stage.send(method, "/v1/feed", fields: fields, on: client).reply(isHead: true)
            #expect(reply.status == status && reply.field("Transfer-Encoding") == nil, "\(reply.head)")
        }
        #expect(await stage.world.journal().map(\.outcome) == ["complete", "complete", "complete"])
    }

    @Test func `a listener that is closed for zero seconds is open`() async throws {
        let stage = try Stage()
        try stage.world.set(Fault(.closeListener(.zero), when: feed))
        let other = try stage.connect()
        #expect(try await stage.send("GET", "/v1/posts", on: other).reply().status == 200)
        #expect(await (try stage.send("GET", "/v1/feed")).readToEnd().ending == .reset)
        // On one loop, this reply is sent after the port was reopened.
        for _ in 0..<3 { #expect(try await stage.send("GET", "/v1/posts", on: other).reply().status == 200) }
        stage.world.removeFaults()
        #expect(try await stage.ask("GET", "/v1/feed").status == 200)
    }

    @Test func `the listener stays closed until the last of its faults ends`() async throws {
        let stage = try Stage()
        for seconds in [5, 60] {
            var match = feed
            match.device = "close\(seconds)"
            try stage.world.set(Fault(.closeListener(.seconds(seconds)), when: match))
        }
        let other = try stage.connect()
        let clients = [try stage.connect(), try stage.connect()]
        for (client, seconds) in zip(clients, [5, 60]) {
            _ = try stage.send("GET", "/v1/feed", fields: ["Larder-Device": "close\(seconds)"], on: client)
            #expect(await client.readToEnd().ending == .reset)
        }
        stage.world.clock.advance(by: .seconds(5))
        for _ in 0..<3 { #expect(try await stage.send("GET", "/v1/posts", on: other).reply().status == 200) }
        #expect(throws: RawClient.Failure.self) { try stage.connect() }
        stage.world.clock.advance(by: .seconds(55))
        for _ in 0..<3 { #expect(try await stage.send("GET", "/v1/posts", on: other).reply().status == 200) }
        #expect(try await stage.ask("GET", "/v1/feed").status == 200)
    }

    @Test func `a script with a fault that affects other worlds is rejected as a whole`() async throws {
        let stage = try Stage()
        #expect(try await stage.ask("POST", "/_larder/worlds", #"{"id":"blue"}"#).status == 201)
        let script = """
            {"steps":[{"faults":[{"action":{"type":"respond","status":503}}]},
            {"atSeconds":60,"faults":[{"action":{"type":"closeListener"}}]}]}
            """
        let rejected = try await stage.ask("POST", "/_larder/worlds/blue/script", script)
        #expect(rejected.status == 422)
        let first = try rejected.json["errors"]?.array?.first
        #expect(
            first?["detail"]
                == .string("may be closeListener in the world main only, because all worlds share the port")
        )
        #expect(try await stage.ask("GET", "/v1/feed", fields: ["Larder-World": "blue"]).status == 200)
        #expect(try await stage.ask("POST", "/_larder/script", script).status == 201)
    }

    @Test func `journeys change over time, and a captive portal answers every request with its page`() async throws {
        let stage = try Stage()
        try stage.world.set(.tunnel)
        #expect(try await stage.ask("GET", "/v1/feed").status == 200)
        stage.world.clock.advance(by: .seconds(45))
        let dark = try stage.send("GET", "/v1/feed")
        withExtendedLifetime(dark) {}
        stage.world.removeFaults()
        try stage.world.set(.captivePortal)
        let page = try await stage.ask("GET", "/v1/accounts")
        #expect(page.status == 200 && page.field("Content-Type") == "text/html; charset=utf-8")
        stage.world.removeFaults()
        try stage.world.set(.wifiToCell)
        let old = try stage.send("GET", "/v1/feed")
        #expect(try await old.reply().status == 200)
        stage.world.clock.advance(by: .seconds(31))
        _ = try stage.send("GET", "/v1/feed", on: old)
        #expect(await old.readToEnd().ending == .reset)
    }

    private func pointers(_ reply: RawReply) throws -> [String] {
        try reply.json["errors"]?.array?.compactMap { $0["pointer"]?.string } ?? []
    }

    @Test func `a rejected replacement of the faults leaves them as they are, and names the place`() async throws {
        let stage = try Stage()
        #expect(try await stage.ask("POST", "/_larder/worlds", #"{"id":"blue"}"#).status == 201)
        let path = "/_larder/worlds/blue/faults"
        #expect(try await stage.ask("POST", path, #"{"id":"old","action":{"type":"reset"}}"#).status == 201)
        let port = #"{"action":{"type":"closeListener"}}"#
        let rejected = try await stage.ask("PUT", path, #"{"faults":[{"action":{"type":"reset"}},\#(port)]}"#)
        #expect(rejected.status == 422)
        #expect(try pointers(rejected) == ["/faults/1/action/type"])
        #expect(try await stage.ask("GET", path).json["items"]?.array?.compactMap { $0["id"]?.string } == ["old"])
        #expect(try pointers(try await stage.ask("POST", path, port)) == ["/action/type"])
        let script = #"{"steps":[{"journey":"3g"},{"faults":[\#(port)]}]}"#
        let steps = try await stage.ask("POST", "/_larder/worlds/blue/script", script)
        #expect(try pointers(steps) == ["/steps/1/faults/0/action/type"])
        let replaced = try await stage.ask("PUT", path, #"{"faults":[{"id":"new","action":{"type":"close"}}]}"#)
        #expect(replaced.status == 201)
        #expect(try await stage.ask("GET", path).json["items"]?.array?.compactMap { $0["id"]?.string } == ["new"])
    }

    @Test func `a body that is matched before it is read is an error of that member`() async throws {
        let stage = try Stage()
        let fault = #"{"stage":"beforeRead","match":{"body":{"/a":"1"}},"action":{"type":"respond","status":500}}"#
        #expect(try pointers(try await stage.ask("POST", "/_larder/faults", fault)) == ["/match/body"])
    }

    @Test(arguments: ["Content-Length", "transfer-encoding", "Connection", "Date"])
    func `a canned reply cannot have a field that the server writes`(_ name: String) async throws {
        let stage = try Stage()
        let fault = #"{"action":{"type":"respond","status":200,"headers":{"\#(name)":"99"}}}"#
        let reply = try await stage.ask("POST", "/_larder/faults", fault)
        #expect(reply.status == 422)
        #expect(try pointers(reply) == ["/action/headers"])
        #expect(reply.text.contains(name), "\(reply.text)")
        var canned = CannedReply(status: 200)
        canned.headers = [name: "99"]
        #expect(throws: Problem.self) { try stage.world.set(Fault(.respond(canned))) }
    }

    @Test(arguments: [
        (#"{"a":1}"#, nil, "application/json"), (" []", nil, "application/json"),
        ("Out of order", nil, "text/plain; charset=utf-8"), ("{broken", nil, "text/plain; charset=utf-8"),
        ("a,b", "text/csv", "text/csv"),
    ])
    func `the body of a canned reply has a type that fits it`(_ body: String, _ type: String?, _ wanted: String)
        async throws
    {
        let stage = try Stage()
        var canned = CannedReply(status: 200)
        (canned.body, canned.contentType) = (body, type)
        try stage.world.set(Fault(.respond(canned), when: feed))
        let reply = try await stage.ask("GET", "/v1/feed")
        #expect(reply.text == body && reply.field("Content-Type") == wanted)
    }
}

/// How many replies are not read yet.
private final class Left: Sendable {
    let count: Mutex<Int>

    init(_ count: Int) { self.count = Mutex(count) }
}
