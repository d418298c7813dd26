import LarderTime
import TestSupport
import Testing

@testable import LarderServer

@Suite("Conduct report: a correct client is not accused", .oneMinute)
struct FairConductTests {
    private let profile = "/v1/profiles/user_2"
    private let phone = ["Larder-Device": "phone"]

    private func times(_ count: Int) -> Fault.Occurrence {
        var occurrence = Fault.Occurrence()
        occurrence.count = count
        return occurrence
    }

    private func rules(_ stage: Stage) async -> [ConductReport.Rule] {
        await stage.world.conduct.findings.map(\.rule)
    }

    @Test(arguments: [FaultAction.corrupt(bytes: 1), .malformedJSON, .contentType("text/plain")])
    func `a reply that a fault has damaged is not held`(_ action: FaultAction) async throws {
        let stage = try Stage()
        try stage.world.set(Fault(action, when: FaultMatch("GET", profile), occurrence: times(1)))
        for _ in 0..<2 { #expect(try await stage.ask("GET", profile).status == 200) }
        #expect(await rules(stage) == [])
        _ = try await stage.ask("GET", profile)
        let entries = await stage.world.conduct.findings.map(\.entries)
        #expect(!entries.isEmpty && entries.allSatisfy { $0 == [2, 3] }, "\(entries)")
    }

    @Test(arguments: [true, false])
    func `one wait for a host is one retry, and each device waits for itself`(_ isOneDevice: Bool) async throws {
        let stage = try Stage()
        let busy = Fault(.respond(CannedReply(status: 503)), when: FaultMatch("GET", "/v1/**"), occurrence: times(4))
        try stage.world.set(busy)
        for wait in [Duration.zero, .milliseconds(3_200)] {
            stage.world.clock.advance(by: wait)
            for number in 1...4 {
                let fields = ["Larder-Device": isOneDevice ? "phone" : "phone \(number)"]
                _ = try await stage.ask("GET", "/v1/profiles/user_\(number)", fields: fields)
            }
            if !isOneDevice { stage.world.removeFaults() }
        }
        #expect(await rules(stage) == [])
    }

    private func post(_ stage: Stage, _ key: String) throws -> RawClient {
        try stage.send("POST", "/v1/posts", #"{"text":"Emma"}"#, fields: ["Idempotency-Key": key])
    }

    @Test func `two equal operations that were in flight together and are both lost keep their keys`() async throws {
        let stage = try Stage()
        let posts = FaultMatch("POST", "/v1/posts")
        try stage.world.set(Fault(.loseReply(.reset), when: posts, occurrence: times(2)))
        try stage.world.set(Gate(id: "g", when: posts, stage: .reply, count: 2))
        var clients: [RawClient] = []
        for (count, key) in ["a", "b"].enumerated() {
            clients.append(try post(stage, key))
            #expect(await stage.world.wait(for: .held(count + 1), limit: .seconds(3_600)))
        }
        stage.world.releaseAll()
        for client in clients { #expect(await client.readToEnd().ending == .reset) }
        for key in ["a", "b"] { #expect(try await post(stage, key).reply().status == 201) }
        #expect(await rules(stage) == [])
    }

    @Test func `an equal operation that overtakes a failed one is not its retry`() async throws {
        let stage = try Stage()
        let busy = FaultAction.respond(CannedReply(status: 503))
        try stage.world.set(Fault(busy, when: FaultMatch("POST", "/v1/posts"), occurrence: times(1)))
        #expect(try await post(stage, "a").reply().status == 503)
        #expect(try await post(stage, "b").reply().status == 201)
        // Until the first one comes again, nothing tells it from a retry with another key.
        #expect(await rules(stage) == [.keyChanged])
        #expect(try await post(stage, "a").reply().status == 201)
        #expect(await rules(stage) == [])
        #expect(try await post(stage, "c").reply().status == 201)
        #expect(await rules(stage) == [])
    }

    @Test func `a list is read again after a write, and only by the device that has written`() async throws {
        let stage = try Stage()
        func read() async throws { _ = try await stage.ask("GET", "/v1/feed?limit=2", fields: phone) }
        func write(_ device: String) async throws {
            let reply = try await stage.ask("POST", "/v1/posts", #"{"text":"x"}"#, fields: ["Larder-Device": device])
            #expect(reply.status == 201)
        }
        try await read()
        try await write("phone")
        try await read()
        #expect(await rules(stage) == [])
        #expect(await stage.world.journal().last?.verdicts == ["was fresh for 60 s more"])
        try await write("tablet")
        try await read()
        #expect(await rules(stage) == [.refetchedFresh])
    }

    @Test func `a list is read again after a change event and after a read of the change feed`() async throws {
        let stage = try Stage()
        func read(_ path: String) async throws { _ = try await stage.ask("GET", path, fields: phone) }
        func news() {
            stage.world.perform(ScriptedAction("POST", "/v1/posts", as: "ana", body: #"{"text":"news"}"#))
        }
        let channel = try stage.send("GET", "/v1/live/events", fields: phone)
        _ = try await channel.read(until: "\r\n\r\n")
        try await read("/v1/feed?limit=2")
        news()
        try await read("/v1/feed?limit=2")
        news()
        try await read("/v1/changes?limit=1")
        try await read("/v1/feed?limit=2")
        #expect(await rules(stage) == [])
        withExtendedLifetime(channel) {}
    }

    /// A file that is served in ranges, while both clocks stand still.
    private func site() throws -> RouteSite {
        try RouteSite(["r.json": #"{"routes": [{"path": "/a", "text": "0123456789abcdefghij"}]}"#]) {
            $0.use(ManualClock(WallTime(seconds: 1_790_000_000)))
        }
    }

    @Test func `parts of one file are different requests`() async throws {
        let site = try site()
        let main = site.backend.main
        func send(_ part: Int) throws -> RawClient {
            try site.send("GET", "/a", nil, ["Larder-Device": "phone", "Range": "bytes=\(part)-\(part)"])
        }
        for part in 0..<12 { #expect(try await send(part).reply().status == 206) }
        try main.set(Gate(id: "g", when: FaultMatch("GET", "/a"), stage: .reply, count: 2))
        var clients: [RawClient] = []
        for part in 0..<2 {
            clients.append(try send(part))
            #expect(await main.wait(for: .held(part + 1), limit: .seconds(3_600)))
        }
        main.releaseAll()
        for client in clients { #expect(try await client.reply().status == 206) }
        #expect(await main.conduct.findings.isEmpty)
        for _ in 0..<12 { _ = try await send(3).reply() }
        #expect(await main.conduct.findings.map(\.rule) == [.repeatedInLoop])
    }

    @Test func `what another account on the device was told does not bind this one`() async throws {
        let stage = try Stage()
        var limited = CannedReply(status: 429)
        limited.retryAfter = .seconds(30)
        try stage.world.set(Fault(.respond(limited), when: FaultMatch("GET", "/v1/me"), occurrence: times(1)))
        try stage.world.set(Fault(.loseReply(.reset), when: FaultMatch("POST", "/v1/posts"), occurrence: times(1)))
        #expect(try await stage.ask("GET", "/v1/me", fields: phone).status == 429)
        #expect(try await stage.ask("GET", "/v1/me", as: "person2", fields: phone).status == 200)
        let text = #"{"text":"Emma"}"#
        #expect(await (try stage.send("POST", "/v1/posts", text, fields: phone)).readToEnd().ending == .reset)
        #expect(try await stage.ask("POST", "/v1/posts", text, as: "person2", fields: phone).status == 201)
        #expect(await rules(stage) == [])
        _ = try await stage.ask("GET", "/v1/me", fields: phone)
        #expect(await rules(stage) == [.retriedTooSoon])
    }

    @Test func `a long body that is sent again without a key is found, too`() async throws {
        let shop = try CollectionShop()
        let world = shop.backend.main
        try world.set(Fault(.loseReply(.reset), when: FaultMatch("POST", "/todos"), occurrence: times(1)))
        let body = #"{"title":"\#(String(repeating: "x", count: 9_000))"}"#
        #expect(await (try shop.send("POST", "/todos", body)).readToEnd().ending == .reset)
        #expect(try await shop.ask("POST", "/todos", body).status == 201)
        #expect(await world.conduct.findings.map(\.rule) == [.keyMissing])
    }
}
