import LarderTime
import TestSupport
import Testing

@testable import LarderServer

@Suite("Faults: applied is what has acted", .oneMinute)
struct AppliedFaultTests {
    private let feed = FaultMatch("GET", "/v1/feed")

    private func fault(
        _ id: String,
        _ action: FaultAction,
        _ match: FaultMatch,
        at stage: Fault.Stage? = nil
    ) -> Fault {
        var once = Fault.Occurrence()
        once.count = 1
        return Fault(id: id, action, when: match, occurrence: once, stage: stage)
    }

    private func applied(_ stage: Stage) async -> [[String]] { await stage.world.journal().map(\.faults) }

    @Test func `faults that end an exchange take turns`() async throws {
        let stage = try Stage()
        try stage.world.set(
            fault("busy", .respond(CannedReply(status: 503)), feed),
            fault("limited", .respond(CannedReply(status: 429)), feed)
        )
        var statuses: [Int] = []
        for _ in 0..<3 { statuses.append(try await stage.ask("GET", "/v1/feed?limit=1").status) }
        #expect(statuses == [503, 429, 200])
        #expect(await applied(stage) == [["busy"], ["limited"], []])
        #expect(stage.world.faults.map(\.applications) == [1, 1])
    }

    @Test(arguments: [
        (nil as Fault.Stage?, Fault.Stage.afterCommit), (.beforeRead, .afterRead), (.requestBody, .afterCommit),
    ])
    func `a fault of a later stage does not act on what an earlier one has ended`(
        _ early: Fault.Stage?,
        _ late: Fault.Stage
    ) async throws {
        let stage = try Stage()
        let posts = FaultMatch("POST", "/v1/posts")
        try stage.world.set(fault("late", .close, posts, at: late), fault("early", .reset, posts, at: early))
        for _ in 0..<2 { _ = await (try stage.send("POST", "/v1/posts", #"{"text":"x"}"#)).readToEnd() }
        #expect(try await stage.ask("POST", "/v1/posts", #"{"text":"x"}"#).status == 201)
        #expect(await applied(stage) == [["early"], ["late"], []])
    }

    @Test func `a fault of the reply acts on the reply of another fault, and delays come before`() async throws {
        let stage = try Stage()
        var canned = CannedReply(status: 200)
        canned.body = "[1,2,3]"
        try stage.world.set(
            fault("own", .respond(canned), feed),
            fault("slow", .latency(connect: nil, firstByte: .fixed(.seconds(3)), body: nil), feed),
            fault("broken", .malformedJSON, feed),
            fault("lost", .loseReply(.reset), feed)
        )
        let client = try stage.send("GET", "/v1/feed?limit=1")
        #expect(await stage.advance(stage.world, until: client) == .seconds(3))
        #expect(try await client.reply().text == "[1,2,3}")
        #expect(await Set(applied(stage)[0]) == ["own", "slow", "broken"])
        #expect(await (try stage.send("GET", "/v1/feed?limit=1")).readToEnd().ending == .reset)
    }

    @Test func `a new connection does not use up a fault of connections that are older`() async throws {
        let stage = try Stage()
        let client = try stage.send("GET", "/v1/feed?limit=1")
        #expect(try await client.reply().status == 200)
        stage.world.clock.advance(by: .seconds(1))
        try stage.world.set(fault("stale", .staleConnections, FaultMatch()))
        #expect(try await stage.ask("GET", "/v1/feed?limit=1").status == 200)
        #expect(await (try stage.send("GET", "/v1/feed?limit=1", on: client)).readToEnd().ending == .reset)
        #expect(await applied(stage) == [[], [], ["stale"]])
        #expect(stage.world.faults.map(\.applications) == [1])
    }

    @Test func `a fault that has found nothing to change acts on the next reply`() async throws {
        let stage = try Stage()
        let first = try await stage.ask("GET", "/v1/profiles/user_1")
        let tag = try #require(first.field("ETag"))
        try stage.world.set(fault("broken", .corrupt(bytes: 1), FaultMatch("GET", "/v1/profiles/user_1")))
        #expect(try await stage.ask("GET", "/v1/profiles/user_1", fields: ["If-None-Match": tag]).status == 304)
        #expect(try await stage.ask("GET", "/v1/profiles/user_1").body != first.body)
        #expect(await applied(stage) == [[], [], ["broken"]])
    }

    @Test func `a fault of whole bodies that has matched a channel acts on the next reply`() async throws {
        let stage = try Stage()
        try stage.world.set(fault("broken", .corrupt(bytes: 1), FaultMatch("GET", "/v1/**")))
        let channel = try stage.send("GET", "/v1/live/events")
        _ = try await channel.read(until: "\r\n\r\n")
        #expect(stage.world.faults.map(\.applications) == [0])
        _ = try await stage.ask("GET", "/v1/profiles/user_1")
        #expect(stage.world.faults.map(\.applications) == [1])
        withExtendedLifetime(channel) {}
    }

    @Test(arguments: ["GET", "POST"])
    func `a fault before the body is read acts before an actor, also on a request without a body`(_ method: String)
        async throws
    {
        let stage = try Stage()
        let match = FaultMatch(method, "/v1/posts")
        try stage.world.set(fault("early", .reset, match, at: .beforeRead))
        let act = ScriptedAction("POST", "/v1/posts", as: "person2", body: #"{"text":"between"}"#)
        try stage.world.set(ScriptedActor([act], when: match))
        let commits = stage.world.commitCount
        let client = try stage.send(method, "/v1/posts", method == "POST" ? #"{"text":"x"}"# : nil)
        #expect(await client.readToEnd().ending == .reset)
        #expect(stage.world.commitCount == commits)
    }

    @Test(arguments: [
        ("/v1/profiles/user_1", FaultAction.close, Fault.Stage.end, "complete"),
        ("/v1/profiles/user_1", .close, .body, "truncated"), ("/v1/profiles/user_1", .reset, .end, "reset"),
    ])
    func `a reply that is closed behind its last byte is complete`(
        _ path: String,
        _ action: FaultAction,
        _ at: Fault.Stage,
        _ outcome: String
    ) async throws {
        let stage = try Stage()
        try stage.world.set(fault("cut", action, FaultMatch("GET", path), at: at))
        _ = await (try stage.send("GET", path)).readToEnd()
        #expect(await stage.world.journal().map(\.outcome) == [outcome])
        #expect(await stage.world.conduct.unanswered == (outcome == "complete" ? 0 : 1))
    }
}
