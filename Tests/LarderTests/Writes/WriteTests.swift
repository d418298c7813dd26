import Larder
import LarderHTTP
import LarderResources
import LarderTesting
import LarderTransport
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

/// An article of a backend that answers a write with the article.
struct Article: CacheEntity {
    static let entityType = "article"
    var id: String
    var title: String
    var isStarred = false
    var tags: [String: String]?
}

/// An ID that is a number at the server, and a text before.
struct NumberOrText: Codable, Hashable, Sendable, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }

    init(from decoder: any Decoder) throws {
        let value = try decoder.singleValueContainer()
        description = try (try? value.decode(Int64.self)).map(String.init) ?? value.decode(String.self)
    }

    func encode(to encoder: any Encoder) throws {
        var value = encoder.singleValueContainer()
        if let number = Int64(description) { try value.encode(number) } else { try value.encode(description) }
    }
}

struct Parcel: CacheEntity {
    static let entityType = "parcel"
    var id: NumberOrText
    var isSent: Bool?
}

@Suite("Client: writes as data", .oneMinute)
struct WriteTests {
    private let fixture = ClientFixture()

    @Test func `a creation whose path the server corrects is sent again where it leads`() async throws {
        let transport = ScriptedTransport { request, _ in
            guard request.url == "http://server/comments/" else {
                return .text("", status: Status(code: 301), fields: [.location: "/comments/"])
            }
            return request.method == .post
                ? ClientFixture.json(#"{"id":"1"}"#, status: .created) : ClientFixture.json("[]")
        }
        let client = try await fixture.client(transport)
        try client.write(.post, "/comments", ["text": "a"])
        try await client.cache.outbox.drained()
        #expect(transport.requests.map(\.method) == [.post, .post])
        #expect(transport.requests.map(\.body) == Array(repeating: Array(#"{"text":"a"}"#.utf8), count: 2))
        client.close()
    }

    @Test func `a path with a space is authorized and waits for its host as any other`() async throws {
        let transport = ScriptedTransport { _, number in
            number > 1
                ? .text("", status: .noContent)
                : .text("", status: .serviceUnavailable, fields: [.retryAfter: "60"])
        }
        let client = try await fixture.client(transport)
        try await client.session.use(token: "1", userID: "ana")
        await #expect(throws: LarderError.self) { try await client.source.send(.put, "/tags/New York") }
        #expect(transport.requests.map(\.url) == ["http://server/tags/New%20York"])
        #expect(transport.requests.map { $0.fields[.authorization] } == ["Bearer 1"])
        await #expect(throws: LarderError.self) { try await client.source.send(.put, "/tags/New York") }
        #expect(transport.requests.count == 1)
        client.close()
    }

    /// A backend of one article whose answers to writes are given.
    private struct Backend {
        let transport: ScriptedTransport

        init(_ reply: @escaping @Sendable (TransportRequest, Int) -> ScriptedTransport.Reply) {
            transport = ScriptedTransport { request, number in
                guard request.method == .get else { return reply(request, number) }
                return ClientFixture.json(
                    #"{"id":"7","title":"One","isStarred":false}"#,
                    [.etag: "\"1\"", .cacheControl: "max-age=60"]
                )
            }
        }

        var writes: [TransportRequest] { transport.requests.filter { $0.method != .get } }
    }

    private func article(_ client: APIClient, _ id: String = "7") -> Resource<Article> {
        .entity(id) { try await client.source.fetch("/articles/\(id)", context: $0) }
    }

    private func sent(_ client: APIClient) async throws {
        _ = try await client.cache.outbox.drain(within: .seconds(60))
    }

    @Test
    func `a change that is written offline is shown after a restart, over a newer value of the server, and sent once`()
        async throws
    {
        let backend = Backend { _, _ in ClientFixture.json(#"{"id":"7","title":"Three","isStarred":true}"#) }
        do {
            let client = try await fixture.client(backend.transport)
            _ = try await client.cache.value(article(client))
            fixture.scene.isOnline.withLock { $0 = false }
            try client.write(.patch, "/articles/7", ["isStarred": true], changing: Article.self, "7") {
                $0.isStarred = true
            }
            #expect(client.cache.stored(article(client))?.value?.isStarred == true)
            client.close()
        }
        do {
            let client = try await fixture.client(backend.transport)
            let shown = try #require(client.cache.stored(article(client)))
            #expect(shown.value == Article(id: "7", title: "One", isStarred: true))
            #expect(shown.pendingChanges == 1)
            // The server has another title meanwhile, and does not know the star.
            try await client.cache.put(Article(id: "7", title: "Two"), for: article(client))
            #expect(client.cache.stored(article(client))?.value == Article(id: "7", title: "Two", isStarred: true))
            #expect(backend.writes.isEmpty)
            client.close()
        }
        fixture.scene.isOnline.withLock { $0 = true }
        let client = try await fixture.client(backend.transport)
        try await sent(client)
        let request = try #require(backend.writes.first)
        #expect(backend.writes.count == 1)
        #expect(request.method == .patch)
        #expect(request.url == "http://server/articles/7")
        #expect(String(decoding: request.body, as: UTF8.self) == #"{"isStarred":true}"#)
        #expect(request.fields[.contentType] == "application/json")
        #expect(request.fields["Idempotency-Key"]?.isEmpty == false)
        let shown = try #require(client.cache.stored(article(client)))
        #expect(shown.value == Article(id: "7", title: "Three", isStarred: true))
        #expect(shown.pendingChanges == 0)
    }

    @Test func `a write is ordered behind one of another process that changes the same entity`() async throws {
        let backend = Backend { _, _ in .text("", status: .noContent) }
        let first = try await fixture.client(backend.transport)
        let second = try await fixture.client(backend.transport)
        for client in [first, second] { _ = try await client.cache.value(article(client)) }
        fixture.scene.isOnline.withLock { $0 = false }
        var write = APIClient.Write(.patch, "/articles/7", ["title": "First"])
        write.scope = "page"
        write.modify(Article.self, "7") { $0.title = "First" }
        try first.write(write)
        try second.write(.patch, "/articles/7", ["title": "Second"], changing: Article.self, "7") {
            $0.title = "Second"
        }
        #expect(second.cache.outbox.entries.map(\.scope) == ["page", "page"])
        for client in [first, second] { client.close() }
    }

    @Test func `a lost reply repeats the request under its key`() async throws {
        let backend = Backend { _, number in
            number < 3 ? .failure(TransportError(.interrupted, "lost")) : ScriptedTransport.Reply(status: .noContent)
        }
        let client = try await fixture.client(backend.transport)
        _ = try await client.cache.value(article(client))
        try client.write(.put, "/articles/7/star", changing: Article.self, "7") { $0.isStarred = true }
        await backend.transport.waitForRequests(2)
        for await status in client.cache.outbox.statuses where status.inDoubt > 0 { break }
        fixture.scene.clock.advance(by: .seconds(60))
        try await sent(client)
        #expect(backend.writes.count == 2)
        #expect(Set(backend.writes.map { $0.fields["Idempotency-Key"] }).count == 1)
        // The reply says nothing about the article: it keeps the change and is asked for again.
        let shown = try #require(client.cache.stored(article(client)))
        #expect(shown.value?.isStarred == true)
        #expect(shown.freshness != .fresh)
    }

    @Test func `the reply to a write is stored as that of a read, with validator and lifetime`() async throws {
        let backend = Backend { _, _ in
            ClientFixture.json(
                #"{"id":"7","title":"New","isStarred":true}"#,
                [.etag: "\"2\"", .cacheControl: "max-age=60"]
            )
        }
        let client = try await fixture.client(backend.transport)
        _ = try await client.cache.value(article(client))
        try client.write(.patch, "/articles/7", ["title": "New"], changing: Article.self, "7") { $0.title = "New" }
        try await sent(client)
        #expect(client.cache.stored(article(client))?.freshness == .fresh)
        #expect(client.cache.stored(article(client))?.value?.isStarred == true)
        fixture.scene.clock.advance(by: .seconds(61))
        _ = try await client.cache.value(article(client))
        #expect(backend.transport.requests.last?.fields[.ifNoneMatch] == "\"2\"")
    }

    @Test func `a rejection takes the change back and is told with its reason`() async throws {
        let backend = Backend { _, _ in ClientFixture.json(#"{"title":"No"}"#, status: .unprocessableContent) }
        let client = try await fixture.client(backend.transport)
        _ = try await client.cache.value(article(client))
        try client.write(.put, "/articles/7/star", changing: Article.self, "7") { $0.isStarred = true }
        try await sent(client)
        let entry = try #require(client.cache.outbox.rejected.first)
        #expect(entry.rejection?.status == 422)
        #expect(entry.rejection?.title == "No")
        #expect(client.cache.stored(article(client))?.value?.isStarred == false)
    }

    @Test func `a created entity is shown after a restart, and later writes get the ID of the server`() async throws {
        let backend = Backend { request, _ in
            request.method == .post
                ? ClientFixture.json(#"{"id":"42","title":"Draft"}"#, status: .created)
                : ClientFixture.json(#"{"id":"42","title":"Final","isStarred":false}"#)
        }
        let list = QueryKey("articles")
        let local = APIClient.localID()
        fixture.scene.isOnline.withLock { $0 = false }
        do {
            let client = try await fixture.client(backend.transport)
            var write = APIClient.Write(.post, "/articles", Article(id: local, title: "Draft"))
            write.create(Article(id: local, title: "Draft"))
            write.insert(Article.self, local, in: list)
            try client.write(write)
            try client.write(.patch, "/articles/\(local)", ["article": local], changing: Article.self, local) {
                $0.title = "Final"
            }
            // It belongs to the article by its path alone.
            try client.write(.post, "/articles/\(local)/publications")
            client.close()
        }
        let articles = Resource<EntityList<Article>>.list("articles") { _ in .value(EntityList([])) }
        let client = try await fixture.client(backend.transport)
        #expect(client.cache.stored(article(client, local))?.value?.title == "Final")
        try await client.cache.put(EntityList([]), for: articles)
        #expect(client.cache.stored(articles)?.value?.items.map(\.title) == ["Final"])
        fixture.scene.isOnline.withLock { $0 = true }
        client.cache.networkReturned()
        try await sent(client)
        #expect(
            backend.writes.map { "\($0.method) \($0.url)" } == [
                "POST http://server/articles", "PATCH http://server/articles/42",
                "POST http://server/articles/42/publications",
            ]
        )
        #expect(String(decoding: backend.writes[1].body, as: UTF8.self) == #"{"article":"42"}"#)
        #expect(client.cache.stored(article(client, local)) == nil)
        #expect(client.cache.stored(articles)?.value?.items.map(\.id) == ["42"])
        // A view that has not been drawn again still has the local ID.
        try client.write(.put, "/articles/\(local)/star", changing: Article.self, local) { $0.isStarred = true }
        #expect(client.cache.stored(article(client, "42"))?.value?.isStarred == true)
        try await sent(client)
        #expect(backend.writes.last?.url == "http://server/articles/42/star")
    }

    @Test(arguments: [0, 1, 2])
    func `a write that names an entity of another scope waits until that is created`(_ heldCount: Int) async throws {
        let gate = TransportGate()
        let backend = Backend { request, _ in
            guard request.method == .post else { return ClientFixture.json(#"{"id":"note_1","title":"Moved"}"#) }
            let isFolder = request.url.hasSuffix("/folders")
            let reply = ClientFixture.json(isFolder ? #"{"id":"folder_1"}"# : #"{"id":"note_1"}"#, status: .created)
            // The reply to the folder's creation comes with that to the note's, after it, or before.
            let isHeld = heldCount == 0 ? false : heldCount == 1 ? isFolder : !isFolder
            return isHeld ? reply.held(by: gate) : reply
        }
        let client = try await fixture.client(backend.transport)
        fixture.scene.isOnline.withLock { $0 = false }
        let (folder, note) = (APIClient.localID(), APIClient.localID())
        try client.write(.post, "/folders", creating: Article(id: folder, title: "Folder"))
        try client.write(.post, "/notes", creating: Article(id: note, title: "Note"))
        try client.write(.patch, "/notes/\(note)", ["folder": folder], changing: Article.self, note) {
            $0.title = "Moved"
        }
        fixture.scene.isOnline.withLock { $0 = true }
        client.cache.networkReturned()
        if heldCount > 0 {
            await gate.waitForHeld()
            await backend.transport.waitForRequests(2)
            await reached { client.cache.outbox.entries.count == 2 }
            gate.open()
        }
        await reached {
            client.cache.networkReturned()
            return client.cache.outbox.entries.allSatisfy { $0.state == .rejected }
        }
        #expect(client.cache.outbox.entries.isEmpty)
        #expect(backend.writes.last?.url == "http://server/notes/note_1")
        #expect(backend.writes.last.map { String(decoding: $0.body, as: UTF8.self) } == #"{"folder":"folder_1"}"#)
        client.close()
    }

    @Test func `an entity whose ID is a number at the server is created offline`() async throws {
        let backend = Backend { request, _ in
            request.method == .post
                ? ClientFixture.json(#"{"id":42}"#, status: .created)
                : ClientFixture.json(#"{"id":42,"isSent":true}"#)
        }
        let local = APIClient.localID()
        fixture.scene.isOnline.withLock { $0 = false }
        let client = try await fixture.client(backend.transport)
        try client.write(.post, "/parcels", creating: Parcel(id: NumberOrText(local)))
        try client.write(.patch, "/parcels/\(local)", ["isSent": true], changing: Parcel.self, NumberOrText(local)) {
            $0.isSent = true
        }
        fixture.scene.isOnline.withLock { $0 = true }
        client.cache.networkReturned()
        try await sent(client)
        #expect(backend.writes.map(\.url) == ["http://server/parcels", "http://server/parcels/42"])
        let parcel = Resource<Parcel>.entity(NumberOrText("42")) { _ in .gone }
        #expect(client.cache.stored(parcel)?.value == Parcel(id: NumberOrText("42"), isSent: true))
    }

    @Test func `a write behind a rejected creation is not sent with the local ID`() async throws {
        let backend = Backend { _, _ in ClientFixture.json(#"{"title":"No"}"#, status: .unprocessableContent) }
        let client = try await fixture.client(backend.transport)
        let local = APIClient.localID()
        try client.write(.post, "/articles", creating: Article(id: local, title: "Draft"))
        try client.write(.put, "/articles/\(local)/star")
        try await sent(client)
        #expect(backend.writes.count == 1)
        #expect(client.cache.outbox.rejected.count == 2)
        #expect(client.cache.outbox.rejected.last?.rejection?.title.contains(local) == true)
    }

    @Test func `words that begin as local IDs are sent as they are, and a local ID is replaced before any punctuation`()
        async throws
    {
        let backend = Backend { request, _ in
            request.url.hasSuffix("/articles")
                ? ClientFixture.json(#"{"id":"42","title":"Draft"}"#, status: .created)
                : ScriptedTransport.Reply(status: .noContent)
        }
        fixture.scene.isOnline.withLock { $0 = false }
        let client = try await fixture.client(backend.transport)
        let local = APIClient.localID()
        try client.write(.post, "/articles", creating: Article(id: local, title: "Draft"))
        try client.write(.post, "/articles/\(local):publish")
        try client.write(.put, "/local-offers/7/star?sort=local-first")
        try await client.cache.put(Article(id: "local-news", title: "One"), for: article(client, "local-news"))
        try client.write(.put, "/articles/local-news/star", changing: Article.self, "local-news") {
            $0.isStarred = true
        }
        fixture.scene.isOnline.withLock { $0 = true }
        client.cache.networkReturned()
        try await sent(client)
        #expect(client.cache.outbox.rejected.isEmpty)
        #expect(
            Set(backend.writes.map(\.url)) == [
                "http://server/articles", "http://server/articles/42:publish",
                "http://server/local-offers/7/star?sort=local-first", "http://server/articles/local-news/star",
            ]
        )
    }

    @Test func `a deleted entity is hidden, and a repeated deletion that finds nothing has succeeded`() async throws {
        let backend = Backend { _, _ in ClientFixture.json(#"{"title":"Gone"}"#, status: .notFound) }
        let client = try await fixture.client(backend.transport)
        _ = try await client.cache.value(article(client))
        fixture.scene.isOnline.withLock { $0 = false }
        try client.write(.delete, "/articles/7", removing: Article.self, "7")
        #expect(client.cache.stored(article(client)) == nil)
        fixture.scene.isOnline.withLock { $0 = true }
        client.cache.networkReturned()
        try await sent(client)
        #expect(client.cache.outbox.rejected.isEmpty)
        #expect(client.cache.stored(article(client)) == nil)
    }

    @Test func `of unsent writes with one coalescing key the last is sent, with the changes of all`() async throws {
        let backend = Backend { _, _ in ScriptedTransport.Reply(status: .noContent) }
        let client = try await fixture.client(backend.transport)
        _ = try await client.cache.value(article(client))
        fixture.scene.isOnline.withLock { $0 = false }
        for isStarred in [true, false, true] {
            var write = APIClient.Write(isStarred ? .put : .delete, "/articles/7/star")
            write.coalescingKey = "star"
            write.modify(Article.self, "7") { $0.isStarred = isStarred }
            try client.write(write)
        }
        for (name, value) in [("title", "A"), ("subtitle", "B"), ("title", "C")] {
            var write = APIClient.Write(.patch, "/articles/7", [name: value])
            write.coalescingKey = "edit"
            write.modify(Article.self, "7") { article in
                if name == "title" { article.title = value } else { article.tags = ["subtitle": value] }
            }
            try client.write(write)
        }
        let shown = client.cache.stored(article(client))?.value
        #expect(shown == Article(id: "7", title: "C", isStarred: true, tags: ["subtitle": "B"]))
        fixture.scene.isOnline.withLock { $0 = true }
        client.cache.networkReturned()
        try await sent(client)
        #expect(
            backend.writes.map { "\($0.method) \($0.url)" } == [
                "PUT http://server/articles/7/star", "PATCH http://server/articles/7",
            ]
        )
        #expect(
            backend.writes.last.map { String(decoding: $0.body, as: UTF8.self) } == #"{"title":"C","subtitle":"B"}"#
        )
    }

    @Test func `the key stands in the path or in the body where the server expects it there`() async throws {
        let backend = Backend { _, _ in ScriptedTransport.Reply(status: .noContent) }
        let client = try await fixture.client(backend.transport)
        try client.write(
            .put,
            "/rooms/1/send/\(APIClient.Write.keyPlaceholder)",
            ["txn": APIClient.Write.keyPlaceholder]
        )
        try await sent(client)
        let request = try #require(backend.writes.first)
        let key = try #require(request.url.split(separator: "/").last.map(String.init))
        #expect(key.count == 36)
        #expect(String(decoding: request.body, as: UTF8.self) == #"{"txn":"\#(key)"}"#)
        #expect(request.fields["Idempotency-Key"] == nil)
    }

    @Test func `a change of an entity that is not stored fails and writes nothing`() async throws {
        let backend = Backend { _, _ in ScriptedTransport.Reply(status: .noContent) }
        let client = try await fixture.client(backend.transport)
        do {
            try client.write(.put, "/articles/7/star", changing: Article.self, "7") { $0.isStarred = true }
            Issue.record("The write was accepted.")
        } catch {
            #expect(error.code == .invalidArgument)
            #expect(error.description.contains("article/7"))
        }
        #expect(client.cache.outbox.entries.isEmpty)
    }

    @Test func `an entity whose type cannot be found after a restart is not created`() async throws {
        struct Local: CacheEntity {
            static let entityType = "local"
            var id: String
        }
        let client = try await fixture.client(Backend { _, _ in ScriptedTransport.Reply(status: .noContent) }.transport)
        do {
            try client.write(.post, "/locals", creating: Local(id: "1"))
            Issue.record("The write was accepted.")
        } catch { #expect(error.code == .invalidArgument) }
        #expect(client.cache.outbox.entries.isEmpty)
    }

    @Test func `an awaited write shows its change and its reply when the server has carried it out`() async throws {
        let backend = Backend { _, _ in
            ClientFixture.json(#"{"id":"7","title":"New","isStarred":false}"#, [.etag: "\"2\""])
        }
        let client = try await fixture.client(backend.transport)
        _ = try await client.cache.value(article(client))
        var write = APIClient.Write(.patch, "/articles/7", ["title": "New"])
        write.modify(Article.self, "7") { $0.title = "New" }
        let reply = try await client.commit(write, as: Article.self)
        #expect(reply.value.title == "New")
        #expect(client.cache.stored(article(client))?.value?.title == "New")
        fixture.scene.isOnline.withLock { $0 = false }
        do {
            try await client.commit(write)
            Issue.record("The write was accepted.")
        } catch { #expect(error.code == .offline) }
        #expect(client.cache.outbox.entries.isEmpty)
    }

    @Test func `an operation of the configuration sends with the client's source what an earlier process has stored`()
        async throws
    {
        let backend = Backend { _, _ in ScriptedTransport.Reply(status: .noContent) }
        let operations: @Sendable (HTTPSource, LarderCache) -> [any CacheConfiguration.Operation] = { source, _ in
            [Self.starring(source)]
        }
        fixture.scene.isOnline.withLock { $0 = false }
        do {
            let client = try await fixture.client(backend.transport) { $0.operations = operations }
            try client.cache.enqueue("7", Self.starring(client.source))
            client.close()
        }
        fixture.scene.isOnline.withLock { $0 = true }
        let client = try await fixture.client(backend.transport) { $0.operations = operations }
        try await sent(client)
        #expect(backend.writes.map(\.url) == ["http://server/articles/7/star"])
        #expect(
            !fixture.scene.events.withLock { events in
                events.contains { if case .unregistered = $0 { true } else { false } }
            }
        )
    }

    private static func starring(_ source: HTTPSource) -> WriteBehind<String, Void> {
        WriteBehind(
            "star",
            scope: { $0 },
            changes: { _, _ in },
            send: { attempts in
                for each in attempts { try await source.send(.put, "/articles/\(each.input)/star") }
                return attempts.map { _ in .accepted(()) }
            }
        )
    }
}
