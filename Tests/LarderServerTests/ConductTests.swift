import LarderCoding
import LarderTime
import TestSupport
import Testing

@testable import LarderServer

@Suite("Conduct report: what is a finding and what is not", .oneMinute)
struct ConductTests {
    private let page = "/v1/feed?limit=2"
    private let reload = ["Cache-Control": "no-cache"]

    private func reject(_ stage: Stage, for wait: Duration?, times: Int = 1, _ path: String = "/v1/feed") throws {
        var rejection = CannedReply(status: 503)
        rejection.retryAfter = wait.map { .seconds(Int($0.components.seconds)) }
        var occurrence = Fault.Occurrence()
        occurrence.count = times
        try stage.world.set(
            Fault(id: "busy", .respond(rejection), when: FaultMatch("GET", path), occurrence: occurrence)
        )
    }

    private func findings(_ stage: Stage, _ rule: ConductReport.Rule) async -> Int {
        await stage.world.conduct.findings.count { $0.rule == rule }
    }

    @Test(arguments: [(29, 1), (30, 0)])
    func `Retry-After passes on the world's clock`(_ seconds: Int, _ count: Int) async throws {
        let stage = try Stage()
        try reject(stage, for: .seconds(30))
        #expect(try await stage.ask("GET", page).status == 503)
        stage.world.clock.advance(by: .seconds(seconds))
        #expect(try await stage.ask("GET", page).status == 200)
        #expect(await findings(stage, .retriedTooSoon) == count)
    }

    @Test(arguments: [(29, 1), (30, 0)])
    func `a later failure without Retry-After does not shorten the wait`(_ seconds: Int, _ count: Int) async throws {
        let stage = try Stage()
        try reject(stage, for: .seconds(30))
        _ = try await stage.ask("GET", page)
        try stage.world.set(Fault(id: "busy", .respond(CannedReply(status: 500)), when: FaultMatch("GET", "/v1/feed")))
        // A person's reload, which may come early.
        #expect(try await stage.ask("GET", page, fields: reload).status == 500)
        stage.world.clock.advance(by: .seconds(seconds))
        _ = try await stage.ask("GET", page)
        let findings = await stage.world.conduct.findings.filter { $0.rule == .retriedTooSoon }
        #expect(findings.count == count)
    }

    @Test func `a delayed request counts from its arrival`() async throws {
        let stage = try Stage()
        try reject(stage, for: .seconds(30))
        _ = try await stage.ask("GET", page)
        let delay = Distribution.fixed(.seconds(40))
        try stage.world.set(
            Fault(.latency(connect: nil, firstByte: delay, body: nil), when: FaultMatch("GET", "/v1/feed"))
        )
        let early = try stage.send("GET", page)
        #expect(await stage.advance(stage.world, until: early) == .seconds(40))
        _ = try await early.reply()
        #expect(await findings(stage, .retriedTooSoon) == 1)
    }

    @Test func `a request that was in flight when another one was rejected is no retry`() async throws {
        let stage = try Stage()
        try reject(stage, for: .seconds(30))
        try stage.world.set(Gate(id: "g", when: FaultMatch("GET", "/v1/feed"), stage: .request, count: 1))
        let rejected = try stage.send("GET", page)
        #expect(await stage.world.wait(for: .held(1), limit: .seconds(3_600)))
        #expect(try await stage.ask("GET", page).status == 200)
        stage.world.releaseAll()
        #expect(try await rejected.reply().status == 503)
        #expect(await findings(stage, .retriedTooSoon) == 0)
    }

    @Test(arguments: [(500, "/v1/posts"), (503, "/v1/posts"), (500, "/v1/likes"), (503, "/v1/likes")])
    func `another write for one target is no retry, unless the server is busy`(_ status: Int, _ path: String)
        async throws
    {
        let stage = try Stage()
        var rejection = CannedReply(status: status)
        rejection.retryAfter = .seconds(30)
        var once = Fault.Occurrence()
        once.count = 1
        try stage.world.set(Fault(.respond(rejection), when: FaultMatch("POST", path), occurrence: once))
        func send(_ key: String) async throws -> Int {
            let isBatch = path == "/v1/likes"
            let items = #"{"items":[{"postId":"post_1","liked":true,"idempotencyKey":"\#(key)"}]}"#
            let fields = isBatch ? [:] : ["Idempotency-Key": key]
            return try await stage.ask("POST", path, isBatch ? items : #"{"text":"hi"}"#, fields: fields).status
        }
        #expect(try await send("a") == status)
        #expect(try await send("b") < 300)
        #expect(await findings(stage, .retriedTooSoon) == (status == 503 ? 1 : 0))
        #expect(try await send("a") < 300)
        #expect(await findings(stage, .retriedTooSoon) == 1)
    }

    @Test(arguments: [429, 503])
    func `after a success another write is no retry of a rejected one, which still has to wait`(_ status: Int)
        async throws
    {
        let stage = try Stage()
        var rejection = CannedReply(status: status)
        rejection.retryAfter = .seconds(30)
        var once = Fault.Occurrence()
        once.count = 1
        try stage.world.set(Fault(.respond(rejection), when: FaultMatch("POST", "/v1/posts"), occurrence: once))
        func send(_ key: String) async throws -> Int {
            try await stage.ask("POST", "/v1/posts", #"{"text":"hi"}"#, fields: ["Idempotency-Key": key]).status
        }
        #expect(try await send("a") == status)
        #expect(try await stage.ask("GET", page).status == 200)
        #expect(try await send("b") < 300)
        #expect(await findings(stage, .retriedTooSoon) == 0)
        #expect(try await send("a") < 300)
        #expect(await findings(stage, .retriedTooSoon) == 1)
    }

    @Test func `one reload within Retry-After is a person's, a second one is a finding`() async throws {
        let stage = try Stage()
        try reject(stage, for: .seconds(30), times: 3)
        _ = try await stage.ask("GET", page)
        _ = try await stage.ask("GET", page, fields: reload)
        #expect(await findings(stage, .retriedTooSoon) == 0)
        _ = try await stage.ask("GET", page, fields: reload)
        #expect(await findings(stage, .retriedTooSoon) == 1)
    }

    /// Retries of one page after each of the waits.
    private func retry(_ stage: Stage, after waits: [Duration], retryAfter: Duration? = nil) async throws {
        try reject(stage, for: retryAfter, times: waits.count)
        _ = try await stage.ask("GET", page)
        for wait in waits {
            stage.world.clock.advance(by: wait)
            _ = try await stage.ask("GET", page)
        }
    }

    @Test func `four equal intervals are a finding, and not by chance among many others`() async throws {
        let stage = try Stage()
        try await retry(stage, after: Array(repeating: .milliseconds(1_000), count: 4))
        #expect(await findings(stage, .retriedWithoutJitter) == 1)
        await stage.backend.stop()
        let other = try Stage()
        let spread = (0..<12).map { Duration.milliseconds(600 + 90 * $0) }
        try await retry(other, after: spread + Array(repeating: .milliseconds(1_000), count: 4))
        #expect(await findings(other, .retriedWithoutJitter) == 0)
    }

    @Test(arguments: [(0, 1), (30, 0)])
    func `jitter is what a client adds to Retry-After`(_ spread: Int, _ count: Int) async throws {
        let stage = try Stage()
        let waits = (0..<4).map { Duration.milliseconds(19_300 + spread * $0) }
        try await retry(stage, after: waits, retryAfter: .seconds(19))
        #expect(await findings(stage, .retriedWithoutJitter) == count)
    }

    @Test func `what must not be stored may be downloaded again`() async throws {
        let stage = try Stage()
        var secret = CannedReply(status: 200)
        secret.headers = ["ETag": "\"1\"", "Cache-Control": "no-store"]
        try stage.world.set(Fault(.respond(secret), when: FaultMatch("GET", "/v1/secret")))
        for _ in 0..<2 { #expect(try await stage.ask("GET", "/v1/secret").field("ETag") == "\"1\"") }
        #expect(await findings(stage, .downloadedTwice) == 0)
        _ = try await stage.ask("GET", page)
        _ = try await stage.ask("GET", page)
        #expect(await findings(stage, .downloadedTwice) == 1)
    }

    @Test(arguments: [(49, 1), (50, 0)])
    func `a lifetime counts from the start of the request`(_ seconds: Int, _ count: Int) async throws {
        let stage = try Stage()
        var once = Fault.Occurrence()
        once.count = 1
        let delay = Distribution.fixed(.seconds(10))
        try stage.world.set(
            Fault(
                .latency(connect: nil, firstByte: delay, body: nil),
                when: FaultMatch("GET", "/v1/feed"),
                occurrence: once
            )
        )
        let slow = try stage.send("GET", page)
        _ = await stage.advance(stage.world, until: slow)
        #expect(try await slow.reply().field("Cache-Control")?.contains("max-age=60") == true)
        stage.world.clock.advance(by: .seconds(seconds))
        _ = try await stage.ask("GET", page)
        #expect(await findings(stage, .refetchedFresh) == count)
    }

    @Test(arguments: [(false, 1), (true, 0)])
    func `a reload may overtake a request that a cache may answer`(_ isReload: Bool, _ count: Int) async throws {
        let stage = try Stage()
        try stage.world.set(Gate(id: "g", when: FaultMatch("GET", "/v1/feed"), stage: .reply, count: 1))
        let held = try stage.send("GET", page)
        #expect(await stage.world.wait(for: .held(1), limit: .seconds(3_600)))
        _ = try await stage.ask("GET", page, fields: isReload ? reload : [:])
        stage.world.releaseAll()
        _ = try await held.reply()
        #expect(await findings(stage, .duplicateInFlight) == count)
        // The second request could not know the tag of the first reply.
        #expect(await findings(stage, .downloadedTwice) == 0)
    }

    @Test(arguments: [true, false])
    func `of two replies that were in flight at once a client may validate either`(_ isFirst: Bool) async throws {
        let stage = try Stage()
        try stage.world.set(Gate(id: "g", when: FaultMatch("GET", "/v1/feed"), stage: .request, count: 1))
        let held = try stage.send("GET", page)
        #expect(await stage.world.wait(for: .held(1), limit: .seconds(3_600)))
        let tag = try await stage.ask("GET", page, fields: reload).field("ETag") ?? ""
        post(stage)
        stage.world.releaseAll()
        // The answer to the earlier request arrives later, and it is the newer one.
        let newTag = try await held.reply().field("ETag") ?? ""
        #expect(tag != newTag)
        let fields = ["If-None-Match": isFirst ? tag : newTag, "Cache-Control": "no-cache"]
        #expect(try await stage.ask("GET", page, fields: fields).status == (isFirst ? 200 : 304))
        #expect(await findings(stage, .downloadedTwice) == 0)
        // Now it holds the only reply since.
        _ = try await stage.ask("GET", page, fields: reload)
        #expect(await findings(stage, .downloadedTwice) == 1)
    }

    /// Reads the change feed after each of six frames of an event stream.
    private func poll(_ stage: Stage) async throws {
        let channel = try stage.send("GET", "/v1/live/events")
        _ = try await channel.read(until: "\r\n\r\n")
        for number in 1...6 {
            stage.world.perform(ScriptedAction("POST", "/v1/posts", as: "ana", body: "{\"text\":\"\(number)\"}"))
            #expect(try await stage.ask("GET", "/v1/changes?limit=1").status == 200)
        }
    }

    @Test func `reads of the change feed beside a live channel are a finding, unless frames were lost`() async throws {
        let stage = try Stage()
        try await poll(stage)
        #expect(await findings(stage, .polledBesideLive) == 1)
        await stage.backend.stop()
        let lossy = try Stage()
        var fault = LiveFault()
        fault.lose = 1
        try lossy.world.set(Fault(.live(fault), when: FaultMatch("GET", "/v1/live/events")))
        try await poll(lossy)
        #expect(await findings(lossy, .polledBesideLive) == 0)
    }

    private func findings(_ shop: CollectionShop, _ rule: ConductReport.Rule) async -> Int {
        await shop.backend.main.conduct.findings.count { $0.rule == rule }
    }

    @Test func `reads of the change feed beside a live channel are a finding for collections, too`() async throws {
        let shop = try CollectionShop()
        let channel = try shop.send("GET", "/live")
        _ = try await channel.read(until: "event: hello")
        _ = await shop.backend.main.journal()
        for _ in 1...6 {
            #expect(try await shop.ask("POST", "/todos", "{}").status == 201)
            #expect(try await shop.ask("GET", "/changes?limit=1").status == 200)
        }
        #expect(await findings(shop, .polledBesideLive) == 1)
    }

    @Test func `a device that has no live channel may poll the change feed`() async throws {
        let shop = try CollectionShop()
        let channel = try shop.send("GET", "/live", nil, ["Larder-Device": "phone"])
        _ = try await channel.read(until: "event: hello")
        for (device, count) in [("tablet", 0), ("phone", 1)] {
            for _ in 1...6 {
                #expect(try await shop.ask("POST", "/todos", "{}").status == 201)
                #expect(try await shop.ask("GET", "/changes?limit=1", nil, ["Larder-Device": device]).status == 200)
            }
            #expect(await findings(shop, .polledBesideLive) == count, "\(device)")
        }
    }

    @Test func `reads of the change feed after the live channel has ended are no finding`() async throws {
        let (stage, channel) = try await faultyChannel { $0.endAfterFrames = 1 }
        post(stage)
        _ = await channel.readToEnd()
        stage.world.clock.advance(by: .seconds(1))
        for _ in 1...7 { try await read(stage) }
        #expect(await findings(stage, .polledBesideLive) == 0)
    }

    @Test func `two live channels of collections at once are no duplicate`() async throws {
        let shop = try CollectionShop()
        let main = shop.backend.main
        try main.set(Gate(id: "g", when: FaultMatch("GET", "/live"), stage: .reply, count: 1))
        let first = try shop.send("GET", "/live")
        await reached { !main.held.isEmpty }
        let second = try shop.send("GET", "/live")
        _ = try await second.read(until: "event: hello")
        main.releaseAll()
        _ = try await first.read(until: "event: hello")
        #expect(await findings(shop, .duplicateInFlight) == 0)
    }

    /// A live channel that loses its first frame.
    private func lossyChannel() async throws -> (stage: Stage, channel: RawClient) {
        try await faultyChannel { $0.loseFrame = 1 }
    }

    private func faultyChannel(_ change: (inout LiveFault) -> Void) async throws -> (stage: Stage, channel: RawClient) {
        let stage = try Stage()
        var fault = LiveFault()
        change(&fault)
        try stage.world.set(Fault(.live(fault), when: FaultMatch("GET", "/v1/live/events")))
        let channel = try stage.send("GET", "/v1/live/events")
        _ = try await channel.read(until: "\r\n\r\n")
        return (stage, channel)
    }

    private func post(_ stage: Stage) {
        stage.world.perform(ScriptedAction("POST", "/v1/posts", as: "ana", body: "{\"text\":\"news\"}"))
    }

    private func read(_ stage: Stage) async throws {
        #expect(try await stage.ask("GET", "/v1/changes?limit=1").status == 200)
    }

    @Test func `each frame that is sent before a lost one was made up for may cost a read`() async throws {
        let (stage, channel) = try await lossyChannel()
        defer { withExtendedLifetime(channel) {} }
        try stage.world.set(Gate(id: "g", when: FaultMatch("GET", "/v1/changes"), stage: .reply, count: 1))
        post(stage)
        let held = try stage.send("GET", "/v1/changes?limit=1")
        #expect(await stage.world.wait(for: .held(1), limit: .seconds(3_600)))
        for _ in 1...6 { post(stage) }
        stage.world.releaseAll()
        _ = try await held.reply()
        for _ in 1...6 { try await read(stage) }
        #expect(await findings(stage, .polledBesideLive) == 0)
        stage.world.clock.advance(by: .seconds(1))
        for _ in 1...6 {
            post(stage)
            try await read(stage)
        }
        #expect(await findings(stage, .polledBesideLive) == 1)
    }

    @Test func `a read that began before a frame was lost does not make up for it`() async throws {
        let (stage, channel) = try await lossyChannel()
        defer { withExtendedLifetime(channel) {} }
        try stage.world.set(Gate(id: "g", when: FaultMatch("GET", "/v1/changes"), stage: .reply, count: 1))
        let held = try stage.send("GET", "/v1/changes?limit=1")
        #expect(await stage.world.wait(for: .held(1), limit: .seconds(3_600)))
        stage.world.clock.advance(by: .seconds(1))
        post(stage)
        stage.world.releaseAll()
        _ = try await held.reply()
        stage.world.clock.advance(by: .seconds(1))
        for _ in 1...6 { post(stage) }
        for _ in 1...6 { try await read(stage) }
        #expect(await findings(stage, .polledBesideLive) == 0)
    }

    @Test func `a late read makes up for a lost frame too`() async throws {
        let (stage, channel) = try await lossyChannel()
        defer { withExtendedLifetime(channel) {} }
        post(stage)
        stage.world.clock.advance(by: .seconds(31))
        try await read(stage)
        stage.world.clock.advance(by: .seconds(1))
        for _ in 1...6 {
            post(stage)
            try await read(stage)
        }
        #expect(await findings(stage, .polledBesideLive) == 1)
    }

    @Test func `distances between entries are on the world's clock`() async throws {
        let stage = try Stage()
        _ = try await stage.ask("GET", page)
        stage.world.clock.advance(by: .seconds(10))
        _ = try await stage.ask("GET", page)
        var spaced = Expectation.exactly(2, JournalFilter("GET", "/v1/feed"))
        spaced.spacedBy = .seconds(10)
        #expect(await stage.world.verify(spaced).holds)
        spaced.spacedBy = nil
        spaced.within = .seconds(9)
        #expect(await !stage.world.verify(spaced).holds)
    }

    /// A stage whose clocks stand still, the server's too, however long a test takes.
    private func still() throws -> Stage { try Stage { $0.use(ManualClock(WallTime(seconds: 1_790_000_000))) } }

    private func loops(_ stage: Stage) async -> [ConductReport.Finding] {
        await stage.world.conduct.findings.filter { $0.rule.rawValue == "repeatedInLoop" }
    }

    @Test func `a read that is repeated many times a second with the same answer is one finding`() async throws {
        let stage = try still()
        for _ in 0..<9 { #expect(try await stage.ask("GET", page, fields: reload).status == 200) }
        #expect(await loops(stage).isEmpty)
        for _ in 0..<13 { #expect(try await stage.ask("GET", page, fields: reload).status == 200) }
        // Requests for other resources between them change nothing.
        _ = try await stage.ask("GET", "/v1/me")
        _ = try await stage.ask("GET", page, fields: reload)
        let found = await loops(stage)
        #expect(found.count == 1 && found.first?.entries == [1, 24])
        #expect(found.first?.detail.contains("23 times") ?? false, "\(found)")
        let verdicts = await stage.world.journal().map(\.verdicts)
        #expect(!verdicts[8].joined().contains("times") && verdicts[9].joined().contains("10 times"), "\(verdicts)")
    }

    @Test func `replies without an entity tag and errors are recognised as the same answer too`() async throws {
        for status in [200, 404] {
            let stage = try still()
            var canned = CannedReply(status: status)
            canned.body = "[]"
            try stage.world.set(Fault(.respond(canned), when: FaultMatch("GET", "/v1/own")))
            for _ in 0..<12 { #expect(try await stage.ask("GET", "/v1/own").status == status) }
            #expect(await loops(stage).count == 1, "\(status)")
            await stage.backend.stop()
        }
    }

    @Test func `a read with pauses, and one whose answer changes, are not repeated in a loop`() async throws {
        let stage = try still()
        for _ in 0..<30 {
            _ = try await stage.ask("GET", page, fields: reload)
            stage.world.clock.advance(by: .milliseconds(120))
        }
        #expect(await loops(stage).isEmpty)
        for number in 0..<30 {
            if number % 5 == 0 { _ = try await stage.ask("POST", "/v1/posts", #"{"text":"news"}"#) }
            _ = try await stage.ask("GET", page, fields: reload)
        }
        #expect(await loops(stage).isEmpty)
    }

    @Test func `a second loop is a second finding`() async throws {
        let stage = try still()
        for _ in 0..<2 {
            for _ in 0..<12 { _ = try await stage.ask("GET", page, fields: reload) }
            stage.world.clock.advance(by: .seconds(5))
        }
        #expect(await loops(stage).map(\.entries) == [[1, 12], [13, 24]])
    }

    @Test(arguments: [("0.7778775636403494", "29.222122436359655", 0), ("0.9", "29.0985", 1), ("0.9", "29.0995", 0)])
    func `a wait that is shorter by less than a millisecond is long enough`(first: String, second: String, count: Int)
        async throws
    {
        let stage = try Stage()
        try reject(stage, for: .seconds(30))
        _ = try await stage.ask("GET", page)
        for seconds in [first, second] {
            #expect(try await stage.ask("POST", "/_larder/clock/advance", "{\"seconds\": \(seconds)}").status == 200)
        }
        _ = try await stage.ask("GET", page)
        let findings = await stage.world.conduct.findings.filter { $0.rule == .retriedTooSoon }
        #expect(findings.count == count)
        #expect(findings.allSatisfy { $0.detail.contains("retried 2 ms too soon") }, "\(findings)")
    }

    @Test func `the report of one device has its exchanges and findings only`() async throws {
        let stage = try Stage()
        for device in ["a", "a", "b"] {
            let fields = ["Larder-Device": device]
            #expect(try await stage.ask("GET", "/v1/profiles/user_1", as: nil, fields: fields).status == 200)
        }
        func report(_ query: String) async throws -> [Int64] {
            let json = try await stage.ask("GET", "/_larder/conduct" + query).json
            return [json["exchanges"]?.integer ?? -1, Int64(json["findings"]?.array?.count ?? -1)]
        }
        #expect(try await report("?device=a") == [2, 2])
        #expect(try await report("?device=b") == [1, 0])
        #expect(try await report("?findings=5") == [3, 2])
        #expect(try await stage.ask("GET", "/_larder/conduct?devise=a").status == 400)
    }

    @Test(arguments: [
        ("GET", "conduct", ""), ("POST", "verify", #"{"expect":[{"match":{"path":"/v1/feed"},"exactly":0}]}"#),
        ("POST", "wait", #"{"entries":{"path":"/v1/feed"}}"#), ("POST", "wait", #"{"quietSeconds":1}"#),
    ])
    func `without a journal nothing is said about requests`(method: String, function: String, body: String) async throws
    {
        let stage = try Stage { $0.journalCapacity = 0 }
        let reply = try await stage.ask(method, "/_larder/" + function, body.isEmpty ? nil : body)
        #expect(reply.status >= 400 && reply.text.contains("the journal is off"), "\(reply.text)")
    }
}
