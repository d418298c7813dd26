import LarderCoding
import LarderHTTP
import LarderTime
import TestSupport
import Testing

@testable import LarderEngine
@testable import LarderServer

/// Something that an exchange waits for.
enum ExchangeWait: CaseIterable {
    case delayBeforeBody, delay, delayOfReply, delayOfBody, drip, bandwidth, gateOfRequest, gateOfReply
    case longPoll, conditionByWorldClock, condition, silence

    /// The fault with the name `f` that lets a GET of `/v1/feed` wait.
    var fault: Fault? {
        let hour = Distribution.fixed(.seconds(3_600))
        return switch self {
        case .delayBeforeBody: fault(.latency(connect: nil, firstByte: hour, body: nil), .beforeRead)
        case .delay: fault(.latency(connect: nil, firstByte: hour, body: nil), .afterRead)
        case .delayOfReply: fault(.latency(connect: nil, firstByte: hour, body: nil), .afterCommit)
        case .delayOfBody: fault(.latency(connect: nil, firstByte: nil, body: hour), .afterRead)
        case .drip: fault(.drip(bytes: 10, every: .seconds(3_600)), nil)
        case .bandwidth: fault(.bandwidth(down: 1, up: nil), nil)
        case .silence: fault(.never, nil)
        default: nil
        }
    }

    private func fault(_ action: FaultAction, _ stage: Fault.Stage?) -> Fault {
        Fault(id: "f", action, when: FaultMatch("GET", "/v1/feed"), stage: stage)
    }

    var gate: Gate.Stage? {
        switch self {
        case .gateOfRequest: .request
        case .gateOfReply: .reply
        default: nil
        }
    }

    /// Sends a request to a world, and returns when it waits.
    func begin(_ stage: Stage, _ world: MockWorld) async throws -> RawClient {
        if let fault { try world.set(fault) }
        if let gate { try world.set(Gate(id: "g", when: FaultMatch("GET", "/v1/feed"), stage: gate)) }
        let path = world.id == "main" ? "" : "/w/\(world.id)"
        let client: RawClient
        switch self {
        case .longPoll:
            let now = try await stage.ask("GET", path + "/v1/changes?since=now").json["nextToken"]?.string ?? ""
            world.clearJournal()
            client = try stage.send("GET", path + "/v1/changes?wait=30&since=\(now)")
        case .condition, .conditionByWorldClock:
            let clock = self == .condition ? "real" : "world"
            let body = #"{"held": 7, "timeoutSeconds": 600, "clock": "\#(clock)"}"#
            client = try stage.send("POST", path + "/_larder/wait", body, as: nil)
        default: client = try stage.send("GET", path + "/v1/feed")
        }
        switch self {
        case .gateOfRequest, .gateOfReply: await reached { !world.held.isEmpty }
        case .condition, .silence:
            // Nothing shows that these wait: the request has been processed when a later one is.
            _ = try await stage.ask("GET", "/_larder", as: nil)
        default: await reached { world.clock.untilNextTimer != nil }
        }
        return client
    }
}

@Suite("Exchanges whose client has left", .oneMinute)
struct AbandonedExchangeTests {
    @Test(arguments: ExchangeWait.allCases, [true, false])
    func `an exchange ends when its client leaves while it waits`(wait: ExchangeWait, endsBySending: Bool) async throws
    {
        let stage = try Stage()
        let client = try await wait.begin(stage, stage.world)
        if endsBySending {
            client.finishSending()
            #expect(await client.readToEnd().ending == .closed)
        } else {
            client.resetsAtEnd()
        }
        _ = consume client
        guard wait != .condition, wait != .conditionByWorldClock else {
            while await Self.connectionCount(stage.backend) > 0, !Task.isCancelled {}
            #expect(stage.world.clock.untilNextTimer == nil)
            return await stage.backend.stop()
        }
        let entry = WaitCondition.entries(JournalFilter("GET", "/v1/**"), count: 1)
        #expect(await stage.world.wait(for: entry, limit: .seconds(3_600)))
        let record = try #require(await stage.world.journal().last)
        #expect(record.outcome == (wait == .silence ? "silent" : "abandoned") && record.status == nil)
        #expect(record.faults == (wait.fault == nil ? [] : ["f"]))
        #expect(stage.world.held.isEmpty)
        #expect(stage.world.clock.untilNextTimer == nil)
        #expect(await stage.backend.activity() == [])
    }

    private static func connectionCount(_ backend: MockBackend) async -> Int {
        let loop = backend.loops[0]
        return await withCheckedContinuation { continuation in
            loop.execute { continuation.resume(returning: loop.connections.count) }
        }
    }

    @Test(arguments: [FaultAction.latency(connect: nil, firstByte: .fixed(.seconds(3_600)), body: nil), .never])
    func `an exchange ends when its client leaves before its large body is read`(action: FaultAction) async throws {
        let stage = try Stage()
        try stage.world.set(Fault(action, when: FaultMatch("POST", "/v1/posts"), stage: .beforeRead))
        let client = try stage.send("POST", "/v1/posts", String(repeating: "x", count: 300_000))
        client.finishSending()
        // The server closes the connection.
        #expect(await client.readToEnd().bytes.isEmpty)
        #expect(await Self.connectionCount(stage.backend) == 0)
        #expect(stage.world.clock.untilNextTimer == nil)
        #expect(await stage.backend.activity() == [])
    }

    @Test(arguments: [ExchangeWait.delay, .gateOfRequest])
    func `a write whose client leaves before it is processed is done`(wait: ExchangeWait) async throws {
        let stage = try Stage()
        if var fault = wait.fault {
            fault.match = FaultMatch("POST", "/v1/posts")
            try stage.world.set(fault)
        } else {
            try stage.world.set(Gate(id: "g", when: FaultMatch("POST", "/v1/posts"), stage: .request))
        }
        let client = try stage.send("POST", "/v1/posts", #"{"text":"late"}"#)
        while stage.world.held.isEmpty, stage.world.clock.untilNextTimer == nil, !Task.isCancelled {
            await Task.yield()
        }
        client.finishSending()
        #expect(await client.readToEnd().bytes.isEmpty)
        #expect(await stage.world.wait(for: .commits(1), limit: .seconds(3_600)))
        let first = try await stage.ask("GET", "/v1/feed?limit=1").json["items"]?.array?.first
        #expect(first?["text"] == .string("late"))
        #expect(await stage.backend.activity() == [])
    }

    @Test func `a proxied request that fails at once gives up its place at a gate when its client leaves`() async throws
    {
        let url = try #require(HTTPURL("http://127.0.0.1:1"))
        let stage = try Stage { configuration in
            configuration.origin = .server(url)
            configuration.server.upstreamConnectionsMaximum = 0
            configuration.server.upstreamWaitingMaximum = 0
        }
        try stage.world.set(Gate(id: "g", when: FaultMatch("GET", "/x"), stage: .reply))
        let client = try stage.send("GET", "/x")
        await reached { !stage.world.held.isEmpty }
        client.finishSending()
        #expect(await client.readToEnd().ending == .closed)
        #expect(await stage.backend.activity() == [])
        #expect(stage.world.held.isEmpty)
    }

    @Test func `a client that leaves and a reset free the uplink of the device`() async throws {
        let stage = try Stage()
        let clock = stage.world.clock
        let slow = Fault(.bandwidth(down: nil, up: 10), when: FaultMatch("POST", "/v1/posts"))
        try stage.world.set(slow)
        func post() throws -> RawClient { try stage.send("POST", "/v1/posts", #"{"text":"one"}"#) }
        func leave(_ client: RawClient) async {
            client.finishSending()
            #expect(await client.readToEnd().bytes.isEmpty)
            #expect(await stage.backend.activity() == [])
        }
        let first = try post()
        await reached { clock.waitCount == 1 }
        let whole = try #require(clock.untilNextTimer)
        clock.advance(by: .seconds(1))
        await leave(first)
        let second = try post()
        await reached { clock.waitCount == 1 }
        #expect(clock.untilNextTimer == whole)
        try stage.world.reset()
        try stage.world.set(slow)
        let third = try post()
        await reached { clock.waitCount == 2 }
        clock.advance(by: whole)
        #expect(clock.waitCount == 0)
        for client in [second, third] { #expect(try await client.reply().status == 201) }
    }

    @Test func `a request that waits for its idempotency key ends when its client leaves`() async throws {
        let stage = try Stage()
        stage.world.dialect.idempotency = .blocking
        let (body, key) = (try await stage.transfer(), ["Idempotency-Key": "\"k\""])
        try stage.world.set(Gate(id: "g", when: FaultMatch("POST", "/v1/transfers"), stage: .reply, count: 1))
        let first = try stage.send("POST", "/v1/transfers", body, fields: key)
        #expect(await stage.world.wait(for: .held(1), limit: .seconds(3_600)))
        let second = try stage.send("POST", "/v1/transfers", body, fields: key)
        #expect(try await stage.ask("GET", "/v1/feed").status == 200)
        second.finishSending()
        #expect(await second.readToEnd().bytes.isEmpty)
        stage.world.releaseAll()
        #expect(try await first.reply().status == 201)
        #expect(try stage.world.ledgerFaults() == [])
        #expect(await stage.backend.activity() == [])
    }
}
