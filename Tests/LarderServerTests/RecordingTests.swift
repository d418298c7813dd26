import LarderBackend
import LarderCoding
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

    private func entries(_ archive: [UInt8]) throws -> [JSONValue] {
        try #require(try JSONParser.parse(archive).value(at: "/log/entries")?.array)
    }

    @Test func `a recording that was stopped, or never started, cannot be saved`() async throws {
        let stage = try Stage()
        #expect(try await stage.ask("GET", "/_larder/recording").status == 400)
        try await start(stage)
        #expect(try entries(try await saved(stage)).isEmpty)
        #expect(try await stage.ask("DELETE", "/_larder/recording").status == 204)
        #expect(try await stage.ask("GET", "/_larder/recording").status == 400)
    }

    @Test(arguments: ["{}", "[]", #"{"format":"larder-recording-1"}"#, "not JSON"])
    func `another file is no recording`(_ text: String) {
        #expect(throws: (any Error).self) { try RecordedReplies(Array(text.utf8), readsWorldPaths: true) }
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
        let methods = try entries(try await saved(stage)).map { $0.value(at: "/request/method") }
        #expect(methods == [.string("GET"), .string("POST")])
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
        let bodies = try entries(try await saved(stage)).map { $0.value(at: "/request/postData/text") }
        #expect(bodies == [.string(#"{"text":"one"}"#), .string(#"{"text":"two"}"#)])
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
        let file = try await saved(stage)
        #expect(try entries(file).count == 1)
        #expect(try JSONParser.parse(file).value(at: "/log/_isComplete") == nil)
    }

    @Test func `a full recording ends before the first exchange that does not fit`() throws {
        let recording = Recording(bytesMaximum: 300)
        recording.start()
        let all = try (1...3).map { _ in try #require(recording.arrived()) }
        for (arrival, count) in zip(all, [20, 400, 20]) {
            recording.finished(arrival) { JSONValue.string(String(repeating: "a", count: count)).encoded }
        }
        let document = try #require(recording.document)
        #expect(try entries(document).map { $0.string?.count } == [20])
        #expect(try JSONParser.parse(document).value(at: "/log/_isComplete") == .bool(false))
    }

    @Test func `what is not text and what was compressed is played as it was`() async throws {
        let stage = try Stage()
        try await start(stage)
        let coded = try await stage.ask("GET", "/v1/feed?limit=20", fields: ["Accept-Encoding": "gzip"])
        #expect(coded.field("Content-Encoding") == "gzip")
        let plain = try await stage.ask("GET", "/v1/me")
        var bytes = CannedReply(status: 200)
        bytes.contentType = "image/png"
        bytes.body = String(repeating: "é", count: 50)
        try stage.world.set(Fault(.corrupt(bytes: 16), when: FaultMatch("GET", "/stub")))
        try stage.world.set(Fault(.respond(bytes), when: FaultMatch("GET", "/stub")))
        let damaged = try await stage.ask("GET", "/stub")
        let file = try await saved(stage)
        await stage.backend.stop()
        let player = try Stage { $0.origin = .recording(file) }
        let feed = try await player.ask("GET", "/v1/feed?limit=20", fields: ["Accept-Encoding": "gzip"])
        #expect(feed.status == 200 && feed.field("Content-Encoding") == nil)
        #expect(try feed.json["items"]?.array?.count == 20)
        #expect(try await player.ask("GET", "/v1/me").body == plain.body)
        #expect(try await player.ask("GET", "/stub").body == damaged.body)
    }

    @Test func `an archive of a browser is played`() async throws {
        let archive = #"""
            {"log": {"entries": [
              {"request": {"method": "GET", "url": "https://api.test/a?b=c"},
               "response": {"status": 200, "headers": [{"name": ":status", "value": "200"}, {"name": "content-encoding", "value": "br"},
                 {"name": "content-length", "value": "7"}, {"name": "x-kind", "value": "one"}],
                 "content": {"text": "{\"a\":1}", "mimeType": "application/json"}}},
              {"request": {"method": "POST", "url": "https://api.test/a", "postData": {"text": "x"}},
               "response": {"status": 302, "headers": [{"name": "location", "value": "https://api.test/next"}], "content": {}}},
              {"request": {"method": "GET", "url": "https://api.test/cancelled"}, "response": {"status": 0}}]}}
            """#
        let player = try Stage { $0.origin = .recording(Array(archive.utf8)) }
        let read = try await player.ask("GET", "/a?b=c")
        #expect(read.text == #"{"a":1}"# && read.field("X-Kind") == "one" && read.field("Content-Encoding") == nil)
        let written = try await player.ask("POST", "/a", "x")
        #expect(written.status == 302 && written.field("Location")?.hasSuffix("/next") == true)
        #expect(written.field("Location")?.contains("api.test") == false)
        #expect(try await player.ask("GET", "/cancelled").status == 404)
    }

    @Test(arguments: ["br", "gzip"])
    func `a body that cannot be decoded is recorded, and played, as it was sent`(_ coding: String) async throws {
        let stage = try Stage()
        try await start(stage)
        var reply = CannedReply(status: 200)
        reply.headers = ["Content-Encoding": coding]
        reply.body = "no \(coding)"
        try stage.world.set(Fault(.respond(reply), when: FaultMatch("GET", "/stub")))
        let sent = try await stage.ask("GET", "/stub")
        #expect(sent.field("Content-Encoding") == coding)
        let file = try await saved(stage)
        #expect(try entries(file).first?.value(at: "/response/content/comment")?.string?.isEmpty == false)
        await stage.backend.stop()
        let player = try Stage { $0.origin = .recording(file) }
        let played = try await player.ask("GET", "/stub")
        #expect(played.field("Content-Encoding") == coding && played.body == sent.body)
    }

    @Test func `a target with an empty query is recognised`() async throws {
        let stage = try Stage()
        try await start(stage)
        #expect(try await stage.ask("GET", "/v1/me?").status == 200)
        let file = try await saved(stage)
        await stage.backend.stop()
        let player = try Stage { $0.origin = .recording(file) }
        #expect(try await player.ask("GET", "/v1/me?").status == 200)
    }

    @Test func `a reply whose content the archive lacks is an error that says so`() async throws {
        let archive = #"""
            {"log": {"entries": [
              {"request": {"method": "GET", "url": "https://api.test/a"},
               "response": {"status": 200, "headers": [], "content": {"size": 12, "mimeType": "text/plain"}}},
              {"request": {"method": "GET", "url": "https://api.test/b"},
               "response": {"status": 204, "headers": [], "content": {"size": 0}}},
              {"request": {"method": "GET", "url": "https://api.test/c"},
               "response": {"status": 200, "headers": [{"name": "X-Kind", "value": "one\ntwo"}], "content": {"text": "c"}}}]}}
            """#
        let player = try Stage { $0.origin = .recording(Array(archive.utf8)) }
        let lacking = try await player.ask("GET", "/a")
        #expect(lacking.status == 404 && lacking.text.contains("without its content"))
        #expect(try await player.ask("GET", "/b").status == 204)
        let joined = try await player.ask("GET", "/c").head.lowercased()
        #expect(joined.contains("x-kind: one\r\nx-kind: two\r\n"))
    }

    @Test(arguments: [
        #""url": "https://api.test:x/""#: #""status": 200"#,
        #""url": "https://api.test/""#: #""status": "200""#,
        #""url": "https://api.test/a""#: #""status": 200, "content": {"text": "YQ", "encoding": "base64"}"#,
        #""url": "https://api.test/b", "postData": {"text": "?", "_encoding": "base64"}"#: #""status": 200"#,
    ])
    func `an entry that cannot be played is named`(_ request: String, _ response: String) {
        let valid = #"{"request": {"method": "GET", "url": "https://api.test/"}, "response": {"status": 200}}"#
        let entry = #"{"request": {"method": "GET", \#(request)}, "response": {\#(response)}}"#
        let archive = "{\"log\": {\"entries\": [\(valid), \(entry)]}}"
        let error = #expect(throws: FileError.self) {
            try RecordedReplies(Array(archive.utf8), readsWorldPaths: true)
        }
        #expect(error?.description.contains("/log/entries/1: ") == true)
    }

    private func player(_ entries: String) throws -> Stage {
        try Stage { $0.origin = .recording(Array("{\"log\": {\"entries\": [\(entries)]}}".utf8)) }
    }

    private static let note = #"""
        {"request": {"method": "GET", "url": "https://api.test/note"},
         "response": {"status": 200, "headers": [{"name": "ETag", "value": "\"a\""}, {"name": "Content-Type", "value": "text/plain"},
           {"name": "Last-Modified", "value": "Thu, 01 Jan 2026 00:00:00 GMT"}, {"name": "Date", "value": "Thu, 01 Jan 2026 00:00:00 GMT"}],
           "content": {"text": "a note"}}}
        """#

    @Test(arguments: [
        ("If-None-Match", "\"a\"", 304), ("If-None-Match", "\"b\"", 200),
        ("If-Modified-Since", "Thu, 01 Jan 2026 00:00:00 GMT", 304),
        ("If-Modified-Since", "Wed, 31 Dec 2025 00:00:00 GMT", 200),
    ])
    func `a recorded reply that the client holds is played as 304`(_ field: String, _ value: String, _ status: Int)
        async throws
    {
        let player = try player(Self.note)
        let first = try await player.ask("GET", "/note")
        #expect(first.status == 200 && first.text == "a note")
        #expect(first.field("Date") != "Thu, 01 Jan 2026 00:00:00 GMT")
        let again = try await player.ask("GET", "/note", fields: [field: value])
        #expect(again.status == status && again.field("ETag") == "\"a\"")
        let verdicts = await player.world.journal().last?.verdicts ?? []
        #expect(status == 200 || verdicts == ["validated, and 6 bytes saved"], "\(verdicts)")
    }

    @Test func `a recorded 304 is the reply before it, for a client that holds nothing too`() async throws {
        let unchanged = #"{"request": {"method": "GET", "url": "https://api.test/note"}, "response": {"status": 304}}"#
        let player = try player("\(Self.note), \(unchanged)")
        for _ in 1...3 { #expect(try await player.ask("GET", "/note").text == "a note") }
    }

    @Test func `a full reply that the client had validated is not called a change`() async throws {
        let stage = try Stage()
        var reply = CannedReply(status: 200)
        reply.headers = ["ETag": "\"a\"", "Cache-Control": "private, max-age=0"]
        reply.body = "{}"
        try stage.world.set(Fault(.respond(reply), when: FaultMatch("GET", "/stub")))
        _ = try await stage.ask("GET", "/stub")
        _ = try await stage.ask("GET", "/stub", fields: ["If-None-Match": "\"a\""])
        let verdicts = await stage.world.journal().last?.verdicts
        #expect(verdicts == ["unchanged since #1, and the server does not answer If-None-Match"])
    }

    private static let counted = ["1", "2"].map {
        #"""
        {"request": {"method": "POST", "url": "https://api.test/n", "postData": {"text": "{\"u\":\"good\",\"n\":1}"}},
         "response": {"status": 200, "content": {"text": "\#($0)"}}}
        """#
    }.joined(separator: ",")

    @Test func `each world plays a recording from its beginning, and so does a world after its reset`() async throws {
        let player = try player(Self.counted)
        _ = try player.backend.makeWorld(id: "blue")
        func play(_ world: String) async throws -> String {
            try await player.ask("POST", world + "/n", #"{ "n": 1, "u": "good" }"#).text
        }
        for expected in ["1", "2", "2"] { #expect(try await play("") == expected) }
        #expect(try await play("/w/blue") == "1")
        #expect(try await player.ask("POST", "/_larder/reset").status == 204)
        #expect(try await play("") == "1")
        #expect(try await play("/w/blue") == "2")
    }

    @Test func `HEAD is answered as the recorded GET, and is no step in its order`() async throws {
        let player = try player(Self.note)
        let head = try await player.ask("HEAD", "/note")
        #expect(head.status == 200 && head.field("Content-Length") == "6" && head.field("ETag") == "\"a\"")
    }

    @Test(arguments: [(#"{"log": {"entries": []}}"#, "no reply that can be played"), ("{", "not JSON: ")])
    func `an archive that can play nothing is an error`(text: String, part: String) {
        let error = #expect(throws: FileError.self) { try RecordedReplies(Array(text.utf8), readsWorldPaths: true) }
        #expect(error?.description.contains(part) ?? false, "\(error?.description ?? "")")
    }

    @Test func `a recording that begins anew says how many exchanges it discards`() async throws {
        let stage = try Stage()
        try await start(stage)
        _ = try await stage.ask("GET", "/v1/me")
        let again = try await stage.ask("POST", "/_larder/recording", #"{"record":true}"#)
        #expect(try again.json["discardedExchanges"] == .integer(1))
    }
}
