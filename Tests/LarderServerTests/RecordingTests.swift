import LarderEngine
import LarderHTTP
import LarderTime
import TestSupport
import Testing

@testable import LarderServer

@Suite("Recordings", .oneMinute)
struct RecordingTests {
    private func start(_ stage: Stage) async throws {
        #expect(try await stage.ask("POST", "/_larder/recording", #"{"record":true}"#).status == 201)
    }

    private func saved(_ stage: Stage) async throws -> [UInt8] {
        let file = try await stage.ask("GET", "/_larder/recording")
        #expect(file.status == 200)
        return file.body
    }

    @Test func `a recording that was stopped, or never started, cannot be saved`() async throws {
        let stage = try Stage()
        #expect(try await stage.ask("GET", "/_larder/recording").status == 400)
        try await start(stage)
        #expect(try RecordingFile(try await saved(stage)).steps.isEmpty)
        #expect(try await stage.ask("DELETE", "/_larder/recording").status == 204)
        #expect(try await stage.ask("GET", "/_larder/recording").status == 400)
        await stage.backend.stop()
    }

    @Test(arguments: ["{}", "[]", #"{"format":"larder-recording-1"}"#, "not JSON"])
    func `another file is no recording`(_ text: String) {
        #expect(throws: (any Error).self) { try RecordingFile(Array(text.utf8)) }
    }

    @Test(arguments: ["/v1/live", "/v1/live/events"])
    func `a live channel is left out of the recording`(_ path: String) async throws {
        let stage = try Stage()
        try await start(stage)
        #expect(try await stage.ask("GET", "/v1/feed?limit=2").status == 200)
        let upgrade = [
            "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        ]
        let channel = try stage.send("GET", path, fields: path == "/v1/live" ? upgrade : [:])
        let head = String(decoding: try await channel.read(until: "\r\n\r\n"), as: UTF8.self)
        #expect(head.hasPrefix(path == "/v1/live" ? "HTTP/1.1 101" : "HTTP/1.1 200"))
        #expect(try await stage.ask("POST", "/v1/posts", #"{"text":"live"}"#).status == 201)
        let steps = try RecordingFile(try await saved(stage)).steps
        #expect(steps.map { $0.request.prefix(4) } == [Array("GET ".utf8)[...], Array("POST".utf8)[...]])
        await stage.backend.stop()
    }

    @Test func `a request whose head was delayed is recorded once`() async throws {
        let stage = try Stage()
        try stage.world.set(
            Fault(
                id: "slow",
                .latency(connect: nil, firstByte: .fixed(.seconds(2)), body: nil),
                when: FaultMatch("POST", "/v1/posts"),
                stage: .beforeRead
            )
        )
        try await start(stage)
        for text in ["one", "two"] {
            let client = try stage.send("POST", "/v1/posts", "{\"text\":\"\(text)\"}")
            #expect(await stage.advance(stage.world, until: client) == .seconds(2))
            #expect(try await client.reply().status == 201)
        }
        let steps = try RecordingFile(try await saved(stage)).steps
        #expect(steps.count == 2)
        #expect(steps.allSatisfy { String(decoding: $0.request, as: UTF8.self).hasSuffix("}") })
        await stage.backend.stop()
    }

    @Test func `a chunked request is recognised when the recording is played`() async throws {
        let stage = try Stage()
        try await start(stage)
        let chunked = """
            POST /v1/posts HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer dev-ana\r\nContent-Type: application/json\r
            Transfer-Encoding: chunked\r\n\r\n6\r\n{"text\r\nC\r\n":"chunked"}\r\n0\r\n\r\n
            """
        let client = try stage.connect()
        try client.send(chunked)
        let recorded = try await client.reply()
        #expect(recorded.status == 201)
        let file = try await saved(stage)
        await stage.backend.stop()
        let player = try Stage { $0.origin = .recording(file) }
        let played = try await player.ask("POST", "/v1/posts", #"{"text":"chunked"}"#)
        #expect(played.status == 201 && played.body == recorded.body)
        await player.backend.stop()
    }

    @Test func `an exchange that began before the recording is no part of it`() async throws {
        let stage = try Stage()
        try await start(stage)
        try stage.world.set(Gate(id: "g", when: FaultMatch("GET", "/v1/me"), stage: .reply))
        let earlier = try stage.send("GET", "/v1/me")
        #expect(await stage.world.wait(for: .held(1), limit: .seconds(3_600)))
        try await start(stage)
        #expect(try await stage.ask("GET", "/v1/feed?limit=2").status == 200)
        stage.world.removeGate("g")
        #expect(try await earlier.reply().status == 200)
        let file = try RecordingFile(try await saved(stage))
        #expect(file.steps.count == 1 && file.isComplete)
        await stage.backend.stop()
    }

    @Test func `a full recording ends before the first exchange that does not fit`() throws {
        let recording = Recording(bytesMaximum: 300)
        recording.start()
        let all = try (1...3).map { number in
            let head = Array("GET /v1/\(number) HTTP/1.1\r\nHost: h".utf8)
            let request = try Request(head: head, body: [], exchangeIndex: number)
            return (try #require(recording.arrived()), request)
        }
        for ((arrival, request), count) in zip(all, [20, 400, 20]) {
            recording.finished(arrival, request, reply: Array(repeating: 1, count: count), ending: "")
        }
        let contents = try #require(recording.contents)
        #expect(contents.entries.map { $0.reply.count } == [20] && contents.isFull)
    }
}
