import LarderCoding
import LarderTime
import TestSupport
import Testing

@testable import LarderBackend
@testable import LarderServer

@Suite("Change feed and live events", .oneMinute)
struct ChangesTests {
    /// Reads the feed to its end and returns the last token and the changes.
    private func drain(_ scene: Scene, _ token: String?, as handle: String = "ana") async throws -> (
        String, [JSONValue]
    ) {
        var token = token
        var items: [JSONValue] = []
        while true {
            let target = "/v1/changes?limit=25" + (token.map { "&since=\($0)" } ?? "")
            let page = try await scene.ask("GET", target, as: handle).json
            items += page["items"]?.array ?? []
            token = try #require(page["nextToken"]?.string)
            if page["hasMore"] != .bool(true) { return (token ?? "", items) }
        }
    }

    @Test func `reading from the beginning returns exactly what the reader may see`() async throws {
        let scene = try Scene()
        let (_, items) = try await drain(scene, nil)
        let posts = items.filter { $0["type"] == .string("post") }
        #expect(posts.count == 60)
        let mine = try await scene.ask("GET", "/v1/accounts").json["items"]?.array?.count
        #expect(items.count { $0["type"] == .string("account") } == mine)
    }

    @Test func `a conversation without messages is in the feed`() async throws {
        var size = WorldSize()
        (size.people, size.posts, size.transfers, size.conversations, size.messages) = (3, 1, 1, 2, 0)
        let backend = try MockBackend.start(.generated(size, picturesFrom: nil))
        let feed = try backend.main.world.read { store in
            let reader = backend.main.world.changeReader(store)
            let start = try reader.start(since: nil, filter: ChangeFilter(.conversation), viewer: 1)
            return try reader.page(after: start, scope: store.scope(of: 1), limit: 10)
        }
        #expect(
            feed.items.count == (try backend.main.world.read { try $0.conversations.of(1).count })
                && !feed.items.isEmpty
        )
        await backend.stop()
    }

    @Test func `a token covers everything before it and nothing after it`() async throws {
        let scene = try Scene()
        let (token, _) = try await drain(scene, nil)
        let post = try #require(try await scene.ask("POST", "/v1/posts", #"{"text":"one"}"#).json["id"]?.string)
        _ = try await scene.ask("PUT", "/v1/posts/\(post)/like")
        let gone = try #require(try await scene.ask("POST", "/v1/posts", #"{"text":"two"}"#).json["id"]?.string)
        _ = try await scene.ask("DELETE", "/v1/posts/\(gone)")
        let (next, items) = try await drain(scene, token)
        #expect(items.map { $0["id"]?.string } == [post, gone])
        #expect(items.map { $0["op"]?.string } == ["upsert", "delete"])
        #expect(items[0]["entity"]?["likeCount"] == .integer(1))
        #expect(try await drain(scene, next).1.isEmpty)
        #expect(try await drain(scene, token).1.count == 2)
    }

    @Test func `a token of another database, reader or filter is rejected with its reason`() async throws {
        let scene = try Scene()
        let other = try Scene { $0.seed = 2 }
        let (foreign, _) = try await drain(other, nil)
        let reply = try await scene.ask("GET", "/v1/changes?since=\(foreign)")
        #expect(reply.status == 410)
        #expect(try reply.json["reason"] == .string("foreign"))
        let (token, _) = try await drain(scene, nil)
        #expect(try await scene.ask("GET", "/v1/changes?since=\(token)", as: "person2").status == 410)
        #expect(try await scene.ask("GET", "/v1/changes?since=\(token)&types=post").problem == "filter-mismatch")
        await scene.backend.stop()
    }

    @Test func `whichever token is rejected by feed and channels, the instruction is that of the dialect`() async throws
    {
        let scene = try Scene()
        let other = try Scene { $0.seed = 2 }
        let (foreign, _) = try await drain(other, nil)
        await other.backend.stop()
        scene.backend.main.dialect.resync = .applyDifferences
        for path in ["/v1/changes", "/v1/live/events"] {
            for token in ["nonsense", foreign] {
                let reply = try await scene.ask("GET", "\(path)?since=\(token)")
                #expect(reply.status == 410 && reply.field("Location") == "/v1/changes", "\(path) \(token)")
                #expect(try reply.json["resync"]?.string == "apply-differences", "\(path) \(token)")
            }
        }
    }

    @Test func `a token older than a removed tombstone leads to a resync, a newer one does not`() async throws {
        let scene = try Scene { $0.settings.tombstoneRetention = .seconds(3_600) }
        let (old, _) = try await drain(scene, nil)
        let gone = try #require(try await scene.ask("POST", "/v1/posts", #"{"text":"x"}"#).json["id"]?.string)
        _ = try await scene.ask("DELETE", "/v1/posts/\(gone)")
        let (new, _) = try await drain(scene, old)
        scene.clock.advance(by: .seconds(3_601))
        let reply = try await scene.ask("GET", "/v1/changes?since=\(old)")
        #expect(reply.status == 410)
        #expect(try reply.json["reason"] == .string("expired"))
        #expect(try await scene.ask("GET", "/v1/changes?since=\(new)").status == 200)
        #expect(try await drain(scene, nil).1.allSatisfy { $0["id"]?.string != gone })
    }

    @Test func `a long poll ends with the first change or its timeout`() async throws {
        let scene = try Scene()
        let (token, _) = try await drain(scene, nil)
        let waiting = try RawClient(port: scene.backend.port)
        let request =
            "GET /v1/changes?since=\(token)&wait=30 HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer dev-ana\r\n\r\n"
        try waiting.send(request)
        await reached { scene.backend.plane.worlds.main.live.readerCount > 0 }
        let post = try await scene.ask("POST", "/v1/posts", #"{"text":"wake"}"#).json["id"]
        let page = try await waiting.reply().json
        #expect(page["items"]?.array?.count == 1 && page["items"]?[0]?["id"] == post)

        let next = try #require(page["nextToken"]?.string)
        try waiting.send(request.replacing(token, with: next))
        await reached { scene.backend.plane.worlds.main.live.readerCount > 0 }
        // The loop sets the timer after that. Reading the journal waits for the turn of the loop.
        _ = await scene.backend.main.journal()
        scene.clock.advance(by: .seconds(31))
        let empty = try await waiting.reply().json
        #expect(empty["items"] == .array([]) && empty["nextToken"] == .string(next))
        let polls = await scene.backend.main.journal(JournalFilter("GET", "/v1/changes"))
        let tail = polls.suffix(2).map { "\($0.status ?? 0) \($0.user ?? "nobody")" }
        #expect(tail == ["200 ana", "200 ana"])
        #expect(polls.count { $0.target.contains("wait=30") } == 2)
    }

    @Test
    func
        `WebSocket and event stream tell the same change with the same token, and a resumed one tells what was missed`()
        async throws
    {
        let scene = try Scene()
        let socket = try RawClient(port: scene.backend.port)
        try socket.send(
            """
            GET /v1/live?access_token=dev-ana HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
            Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n
            """
        )
        #expect(try await socket.reply().status == 101)
        let hello = try await frame(socket)
        let stream = try RawClient(port: scene.backend.port)
        try stream.send("GET /v1/live/events HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer dev-ana\r\n\r\n")
        _ = try await stream.read(until: "event: hello\n")
        _ = try await stream.read(until: "\n\n")
        let post = try await scene.ask("POST", "/v1/posts", #"{"text":"live"}"#).json["id"]
        let event = try await frame(socket)
        #expect(event["change"]?["id"] == post)
        #expect(event["previousToken"] == hello["token"])
        let text = String(decoding: try await stream.read(until: "\n\n"), as: UTF8.self)
        #expect(text.contains("id: \(event["token"]?.string ?? "?")\n"))

        let resumed = try RawClient(port: scene.backend.port)
        try resumed.send(
            "GET /v1/live/events HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer dev-ana\r\nLast-Event-ID: \(hello["token"]?.string ?? "")\r\n\r\n"
        )
        _ = try await resumed.read(until: "event: change\n")
        #expect(String(decoding: try await resumed.read(until: "\n\n"), as: UTF8.self).contains("\"live\""))
    }

    @Test func `changes of other people's accounts and chats are not delivered`() async throws {
        let scene = try Scene()
        let stranger = try await drain(scene, nil, as: "person9").1
        let conversations = try await scene.ask("GET", "/v1/conversations", as: "person9").json["items"]?.array ?? []
        let known = Set(conversations.compactMap { $0["id"]?.string })
        for item in stranger where item["type"] == .string("message") {
            #expect(known.contains(item["entity"]?["conversationId"]?.string ?? ""))
        }
    }

    private func frame(_ client: RawClient) async throws -> JSONValue {
        let head = try await client.read(count: 2)
        var length = Int(head[1])
        if length == 126 { length = try await client.read(count: 2).reduce(0) { $0 << 8 | Int($1) } }
        return try JSONParser.parse(try await client.read(count: length))
    }
}
