import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime
import TestSupport
import Testing

@testable import LarderBackend
@testable import LarderServer

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

    @Test(arguments: ["1e300", "-1e300", "9e9", "\"1\""])
    func `a recording whose clock offset is out of range is rejected`(_ offset: String) {
        let file = #"{"format":"larder-recording-1","snapshot":"AAAA","skews":{"phone":\#(offset)}}"#
        #expect(throws: Problem.self) { try RecordingFile(Array(file.utf8)) }
    }

    @Test func `a different run is reported with its first different byte`() async throws {
        let stage = try Stage()
        var file = String(decoding: try await record(stage, in: stage.world), as: UTF8.self)
        await stage.backend.stop()
        file = file.replacing("\"seed\":\"7\"", with: "\"seed\":\"8\"")
        let report = try await MockBackend.replay(Array(file.utf8))
        #expect(report.difference?.contains("byte") ?? false)
    }

    @Test(arguments: ["/v1/live", "/v1/live/events"])
    func `a live channel is left out of the recording`(_ path: String) async throws {
        let stage = try Stage()
        try await startRecording(stage)
        #expect(try await stage.ask("GET", "/v1/feed?limit=2").status == 200)
        let upgrade = [
            "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        ]
        let channel = try stage.send("GET", path, fields: path == "/v1/live" ? upgrade : [:])
        let head = String(decoding: try await channel.read(until: "\r\n\r\n"), as: UTF8.self)
        #expect(head.hasPrefix(path == "/v1/live" ? "HTTP/1.1 101" : "HTTP/1.1 200"))
        #expect(try await stage.ask("POST", "/v1/posts", #"{"text":"live"}"#).status == 201)
        let file = try await savedRecording(stage)
        await stage.backend.stop()
        let report = try await MockBackend.replay(file)
        #expect(report.difference == nil && report.exchanges == 2, "\(report)")
    }

    @Test func `a request whose head was delayed is recorded once, with its time of arrival`() async throws {
        let stage = try Stage()
        try stage.world.set(
            Fault(
                id: "slow",
                .latency(connect: nil, firstByte: .fixed(.seconds(2)), body: nil),
                when: FaultMatch("POST", "/v1/posts"),
                stage: .beforeRead
            )
        )
        try await startRecording(stage)
        for text in ["one", "two"] {
            let client = try stage.send("POST", "/v1/posts", "{\"text\":\"\(text)\"}")
            #expect(await stage.advance(stage.world, until: client) == .seconds(2))
            #expect(try await client.reply().status == 201)
        }
        let file = try await savedRecording(stage)
        await stage.backend.stop()
        let recorded = try RecordingFile(file)
        #expect(recorded.steps.map(\.at) == [.zero, .seconds(2)])
        #expect(recorded.steps.allSatisfy { String(decoding: $0.request, as: UTF8.self).hasSuffix("}") })
        let report = try await MockBackend.replay(file)
        #expect(report.difference == nil && report.exchanges == 2, "\(report)")
    }

    @Test func `a chunked request is replayed`() async throws {
        let stage = try Stage()
        try await startRecording(stage)
        let client = try stage.connect()
        try client.send(
            """
            POST /v1/posts HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer dev-ana\r\nContent-Type: application/json\r
            Transfer-Encoding: chunked\r\n\r\n6\r\n{"text\r\nC\r\n":"chunked"}\r\n0\r\n\r\n
            """
        )
        #expect(try await client.reply().status == 201)
        let file = try await savedRecording(stage)
        await stage.backend.stop()
        let report = try await MockBackend.replay(file)
        #expect(report.difference == nil && report.exchanges == 1, "\(report)")
    }

    @Test func `an exchange that began before the recording is no part of it`() async throws {
        let stage = try Stage()
        try await startRecording(stage)
        try stage.world.set(Gate(id: "g", when: FaultMatch("GET", "/v1/me"), stage: .reply))
        let earlier = try stage.send("GET", "/v1/me")
        #expect(await stage.world.wait(for: .held(1), limit: .seconds(3_600)))
        try await startRecording(stage)
        #expect(try await stage.ask("GET", "/v1/feed?limit=2").status == 200)
        stage.world.removeGate("g")
        #expect(try await earlier.reply().status == 200)
        let file = try await savedRecording(stage)
        await stage.backend.stop()
        let report = try await MockBackend.replay(file)
        #expect(report.difference == nil && report.exchanges == 1, "\(report)")
    }

    @Test func `a full recording ends before the first exchange that does not fit`() async throws {
        let stage = try Stage()
        let recording = Recording(bytesMaximum: 300)
        let world = stage.world.world
        let image = try world.image()
        recording.start(
            Recording.Beginning(
                image: image,
                secretSeed: 1,
                time: world.clock.now,
                uptime: world.clock.uptime,
                faults: [],
                settings: ReplySettings()
            )
        )
        let request = try Request(.get, "/v1/feed", [("Host", "h")], body: [])
        func arrived(_ connection: Int) -> Recording.Index? {
            recording.arrived(request, connection: connection, uptime: world.clock.uptime)
        }
        let (first, second, third) = (try #require(arrived(1)), try #require(arrived(2)), try #require(arrived(3)))
        for (index, count) in [(first, 20), (second, 400), (third, 20)] {
            recording.finished(index, request, reply: Array(repeating: 1, count: count), ending: "", faults: [])
        }
        #expect(arrived(4) == nil)
        let contents = try #require(recording.contents)
        #expect(contents.entries.map(\.connection) == [1] && contents.isFull)
        await stage.backend.stop()
    }

    @Test func `the replay of an incomplete recording says so`() async throws {
        let stage = try Stage()
        try await startRecording(stage)
        #expect(try await stage.ask("GET", "/v1/feed?limit=2").status == 200)
        let file = String(decoding: try await savedRecording(stage), as: UTF8.self)
        await stage.backend.stop()
        #expect(!(try await MockBackend.replay(Array(file.utf8))).description.contains("incomplete"))
        let full = file.replacing("\"isComplete\":true", with: "\"isComplete\":false")
        #expect(full != file)
        let report = try await MockBackend.replay(Array(full.utf8))
        #expect(report.difference == nil && report.description.contains("incomplete"), "\(report)")
    }

    @Test func `a recording has the faults and settings of its beginning`() async throws {
        let stage = try Stage()
        try stage.world.set(
            Fault(id: "busy", .respond(CannedReply(status: 503)), when: FaultMatch("GET", "/v1/feed"))
        )
        stage.world.skewDates(of: "*", by: .seconds(60))
        try await startRecording(stage)
        #expect(try await stage.ask("GET", "/v1/feed?limit=2").status == 503)
        stage.world.removeFaults()
        stage.world.skewDates(of: "*", by: .zero)
        stage.world.dialect.idempotency = .blocking
        stage.world.drift = SchemaDrift(seed: 3)
        let file = try await savedRecording(stage)
        await stage.backend.stop()
        let recorded = try RecordingFile(file)
        #expect(recorded.faults.map(\.id) == ["busy"])
        #expect(recorded.skews == ["*": .seconds(60)] && recorded.drift == nil && recorded.dialect == Dialect())
        let report = try await MockBackend.replay(file)
        #expect(report.difference == nil && report.exchanges == 1, "\(report)")
    }

    private func startRecording(_ stage: Stage) async throws {
        #expect(try await stage.ask("POST", "/_larder/recording", #"{"record":true}"#).status == 201)
    }

    private func savedRecording(_ stage: Stage) async throws -> [UInt8] {
        let file = try await stage.ask("GET", "/_larder/recording")
        #expect(file.status == 200)
        return file.body
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
