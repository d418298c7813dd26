import LarderCoding
import LarderServer
import LarderTime
import TestSupport
import Testing

@Suite("Recording and replaying", .oneMinute)
struct ReplayTests {
    private func record(_ stage: Stage, in world: MockWorld) async throws -> [UInt8] {
        let prefix = world.id == "main" ? "" : "/w/" + world.id
        var some = Fault.Occurrence()
        some.probability = 0.4
        try world.set(
            Fault(
                id: "busy",
                .respond(CannedReply(status: 503)),
                when: FaultMatch("GET", "/v1/feed"),
                occurrence: some
            ),
            Fault(
                id: "slow",
                .latency(connect: nil, firstByte: .uniform(.zero, .seconds(3)), body: nil),
                when: FaultMatch("GET", "/v1/posts")
            ),
            Fault(id: "cut", .truncate(.insideCharacter), when: FaultMatch("GET", "/v1/profiles"))
        )
        let control = world.id == "main" ? "/_larder" : "/_larder/worlds/" + world.id
        #expect(try await stage.ask("POST", control + "/recording", #"{"record":true}"#).status == 201)
        let client = try stage.connect()
        for index in 0..<12 {
            _ = try await stage.send("GET", prefix + "/v1/feed?limit=5", on: client).reply()
            _ = try await stage.send("POST", prefix + "/v1/posts", "{\"text\":\"post \(index)\"}", on: client).reply()
            world.clock.advance(by: .milliseconds(700))
        }
        let password = #"{"handle":"ana","password":"larder"}"#
        _ = try await stage.send("POST", prefix + "/v1/sessions", password, as: nil, on: client).reply()
        let slow = try stage.send("GET", prefix + "/v1/posts?limit=50", on: client)
        _ = await stage.advance(world, until: slow)
        _ = try await slow.reply()
        _ = await (try stage.send("GET", prefix + "/v1/profiles")).readToEnd()
        _ = try await stage.ask("GET", prefix + "/v1/changes?limit=20")
        let file = try await stage.ask("GET", control + "/recording")
        #expect(file.status == 200)
        return file.body
    }

    @Test(arguments: ["main", "blue"])
    func `a replay returns every recorded byte`(_ id: String) async throws {
        let stage = try Stage()
        let world = id == "main" ? stage.world : try stage.backend.makeWorld(id: id)
        world.clock.freeze(at: WallTime(seconds: 1_790_000_000))
        let file = try await record(stage, in: world)
        await stage.backend.stop()
        let report = try await MockBackend.replay(file)
        #expect(report.difference == nil && report.exchanges == 28, "\(report)")
    }

    @Test func `a different run is reported with its first different byte`() async throws {
        let stage = try Stage()
        var file = String(decoding: try await record(stage, in: stage.world), as: UTF8.self)
        await stage.backend.stop()
        file = file.replacing("\"seed\":\"7\"", with: "\"seed\":\"8\"")
        let report = try await MockBackend.replay(Array(file.utf8))
        #expect(report.difference?.contains("byte") ?? false)
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
        await stage.backend.stop()
    }
}
