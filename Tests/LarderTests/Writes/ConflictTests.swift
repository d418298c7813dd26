import Larder
import LarderEvents
import LarderHTTP
import LarderResources
import LarderTesting
import LarderTransport
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@Suite("Client: conflicts of writes", .oneMinute)
struct ConflictTests {
    private let fixture = ClientFixture()

    /// How a backend tells of a conflict.
    enum Telling: CaseIterable {
        case status412, status409, withState, withMember, withoutETag
    }

    /// A backend of one article that takes an edit only under the right ETag or `*`, and has made an edit of its own.
    private final class Backend: Sendable {
        struct State {
            var title = "One"
            var isStarred = false
            var version = 1
            var bodies: [String] = []
        }

        let state = Mutex(State())
        let telling: Telling

        init(_ telling: Telling) { self.telling = telling }

        var transport: ScriptedTransport { ScriptedTransport { [self] request, _ in reply(request) } }

        private static func text(_ state: State) -> String {
            #"{"id":"7","title":"\#(state.title)","isStarred":\#(state.isStarred)}"#
        }

        func reply(_ request: TransportRequest) -> ScriptedTransport.Reply {
            state.withLock { state in
                let fields: Fields = [.etag: "\"\(state.version)\"", .contentType: "application/json"]
                guard request.method == .patch else { return ClientFixture.json(Self.text(state), fields) }
                state.bodies.append(String(decoding: request.body, as: UTF8.self))
                guard ["\"\(state.version)\"", "*"].contains(request.fields[.ifMatch]) else {
                    let problem: Fields = [.contentType: "application/problem+json"]
                    switch telling {
                    case .status412:
                        return .text(#"{"title":"Old"}"#, status: .preconditionFailed, fields: problem)
                    case .status409: return .text(#"{"title":"Old"}"#, status: .conflict, fields: problem)
                    case .withState:
                        return .text(Self.text(state), status: .preconditionFailed, fields: fields)
                    case .withMember, .withoutETag:
                        let body = #"{"title":"Old","current":\#(Self.text(state))}"#
                        var all = problem
                        if telling == .withMember { all.set(.etag, "\"\(state.version)\"") }
                        return .text(body, status: .conflict, fields: all)
                    }
                }
                let body = state.bodies.last ?? ""
                if body.contains("\"isStarred\":true") { state.isStarred = true }
                if let title = body.split(separator: "\"title\":\"").dropFirst().first?.split(separator: "\"").first {
                    state.title = String(title)
                }
                state.version += 1
                return ClientFixture.json(Self.text(state), [.etag: "\"\(state.version)\""])
            }
        }
    }

    private func article(_ client: APIClient) -> Resource<Article> {
        .entity("7") { try await client.source.fetch("/articles/7", context: $0) }
    }

    /// A client whose edit of the star, and perhaps of the title, was rejected, because the title has changed; restarted since.
    private func rejected(_ backend: Backend, title: String? = nil) async throws -> (APIClient, OperationID) {
        let client = try await fixture.client(backend.transport)
        _ = try await client.cache.value(article(client))
        backend.state.withLock { ($0.title, $0.version) = ("Two", 2) }
        var write = APIClient.Write(.patch, "/articles/7", Body(isStarred: true, title: title))
        write.fields.set(.ifMatch, "\"1\"")
        write.modify(Article.self, "7") { article in
            article.isStarred = true
            if let title { article.title = title }
        }
        let id = try #require(try client.write(write))
        for await rejected in client.cache.outbox.rejections where !rejected.isEmpty { break }
        client.close()
        return (try await fixture.client(backend.transport), id)
    }

    private struct Body: Encodable, Sendable {
        var isStarred: Bool
        var title: String?
    }

    private func sent(_ client: APIClient) async throws {
        _ = try await client.cache.outbox.drain(within: .seconds(60))
        #expect(client.cache.outbox.entries.isEmpty)
    }

    @Test(arguments: Telling.allCases)
    func `a conflict has its three versions after a restart, and edits of different fields are merged`(
        _ telling: Telling
    )
        async throws
    {
        let backend = Backend(telling)
        let (client, id) = try await rejected(backend)
        let outbox = client.cache.outbox
        #expect(outbox.rejected.map(\.id) == [id])
        #expect(outbox.rejected.first?.rejection?.status == ([.status412, .withState].contains(telling) ? 412 : 409))
        let conflict = try #require(try outbox.conflict(id, of: Article.self))
        #expect(conflict.base == Article(id: "7", title: "One"))
        #expect(conflict.mine == Article(id: "7", title: "One", isStarred: true))
        #expect(conflict.theirs == Article(id: "7", title: "Two"))
        #expect(conflict.validator == (telling == .withoutETag ? nil : "\"2\""))
        #expect(try conflict.myFields == ["isStarred"])
        #expect(try conflict.theirFields == ["title"])
        // Until the decision the server's value is shown.
        #expect(client.cache.stored(article(client))?.value == conflict.theirs)
        try outbox.merge(id)
        #expect(client.cache.stored(article(client))?.value == Article(id: "7", title: "Two", isStarred: true))
        try await sent(client)
        #expect(backend.state.withLock { $0.bodies } == [#"{"isStarred":true}"#, #"{"isStarred":true}"#])
        #expect(client.cache.stored(article(client))?.value == Article(id: "7", title: "Two", isStarred: true))
    }

    @Test(arguments: [false, true])
    func `two edits of one validator that wait for the network are sent, and only somebody else's edit is a conflict`(
        _ hasOther: Bool
    ) async throws {
        let backend = Backend(.status412)
        do {
            let client = try await fixture.client(backend.transport)
            _ = try await client.cache.value(article(client))
            client.close()
        }
        fixture.scene.isOnline.withLock { $0 = false }
        let offline = try await fixture.client(backend.transport)
        for title in ["Mine", "Mine again", "Mine at last"] {
            var write = APIClient.Write(.patch, "/articles/7", Body(isStarred: true, title: title))
            let validator = try #require(offline.cache.stored(article(offline))?.validator)
            write.fields.set(.ifMatch, validator)
            write.modify(Article.self, "7") { $0.title = title }
            try offline.write(write)
        }
        offline.close()
        if hasOther { backend.state.withLock { ($0.title, $0.version) = ("Theirs", 2) } }
        fixture.scene.isOnline.withLock { $0 = true }
        let client = try await fixture.client(backend.transport)
        _ = try await client.cache.outbox.drain(within: .seconds(60))
        let state = backend.state.withLock { $0 }
        #expect(state.title == (hasOther ? "Theirs" : "Mine at last") && state.version == (hasOther ? 2 : 4))
        #expect(client.cache.outbox.rejected.isEmpty != hasOther)
    }

    @Test func `an edit of which a lost copy was carried out is no conflict, nor is the edit behind it`() async throws {
        let backend = Backend(.withState)
        let losesReply = Mutex(true)
        let transport = ScriptedTransport { request, _ in
            guard request.method == .patch else { return backend.reply(request) }
            let isLost = losesReply.withLock { losesReply in
                defer { losesReply = false }
                return losesReply
            }
            if isLost {
                _ = backend.reply(request)
                LostCopies.current?.note()
            }
            return backend.reply(request)
        }
        let client = try await fixture.client(transport)
        _ = try await client.cache.value(article(client))
        fixture.scene.isOnline.withLock { $0 = false }
        for title in ["Mine", "Mine again"] {
            var write = APIClient.Write(.patch, "/articles/7", Body(isStarred: true, title: title))
            write.fields.set(.ifMatch, "\"1\"")
            write.modify(Article.self, "7") { $0.title = title }
            try client.write(write)
        }
        fixture.scene.isOnline.withLock { $0 = true }
        client.cache.networkReturned()
        try await sent(client)
        let state = backend.state.withLock { $0 }
        #expect(state.title == "Mine again" && state.version == 3)
    }

    @Test func `an edit of which a lost copy was carried out is not rejected while the state cannot be read`()
        async throws
    {
        let backend = Backend(.status412)
        let losesReply = Mutex(true)
        let failsRead = Mutex(false)
        let transport = ScriptedTransport { request, _ in
            if request.method == .get, failsRead.withLock({ $0 }) {
                failsRead.withLock { $0 = false }
                return .failure(TransportError(.unreachable, "Nothing was sent."))
            }
            guard request.method == .patch, losesReply.withLock({ $0 }) else { return backend.reply(request) }
            losesReply.withLock { $0 = false }
            failsRead.withLock { $0 = true }
            _ = backend.reply(request)
            LostCopies.current?.note()
            return backend.reply(request)
        }
        let client = try await fixture.client(transport)
        _ = try await client.cache.value(article(client))
        var write = APIClient.Write(.patch, "/articles/7", Body(isStarred: true))
        write.fields.set(.ifMatch, "\"1\"")
        write.modify(Article.self, "7") { $0.isStarred = true }
        try client.write(write)
        await reached { client.cache.outbox.entries.first.map { $0.error != nil } ?? true }
        #expect(client.cache.outbox.rejected.isEmpty && client.cache.outbox.entries.count == 1)
        client.cache.networkReturned()
        try await sent(client)
        #expect(backend.state.withLock { $0.isStarred && $0.version == 2 })
    }

    /// A backend that carries out the first change, whose reply is lost, and answers the second copy with 412.
    private func losing(_ method: Method, then read: ScriptedTransport.Reply) -> ScriptedTransport {
        let count = Mutex(0)
        return ScriptedTransport { request, _ in
            guard request.method == method else {
                return count.withLock { $0 } == 0
                    ? ClientFixture.json(#"{"id":"7","title":"One","isStarred":false}"#) : read
            }
            count.withLock { $0 += 1 }
            LostCopies.current?.note()
            return .text(
                #"{"title":"Old"}"#,
                status: .preconditionFailed,
                fields: [.contentType: "application/problem+json"]
            )
        }
    }

    @Test func `a deletion of which a lost copy was carried out is no conflict`() async throws {
        let gone = ScriptedTransport.Reply.text("{}", status: .notFound, fields: [.contentType: "application/json"])
        let client = try await fixture.client(losing(.delete, then: gone))
        _ = try await client.cache.value(article(client))
        var write = APIClient.Write(.delete, "/articles/7")
        write.fields.set(.ifMatch, "\"1\"")
        write.remove(Article.self, "7")
        try client.write(write)
        try await sent(client)
        #expect(client.cache.outbox.rejected.isEmpty)
    }

    @Test func `a creation of which a lost copy was carried out is no conflict`() async throws {
        let made = ClientFixture.json(#"{"id":"8","title":"New","isStarred":false}"#)
        let client = try await fixture.client(losing(.put, then: made))
        var write = APIClient.Write(.put, "/articles/8", ["title": "New"])
        write.fields.set(.ifNoneMatch, "*")
        write.create(Article(id: "8", title: "New"))
        try client.write(write)
        try await sent(client)
        #expect(client.cache.outbox.rejected.isEmpty)
        let shown = Resource<Article>.entity("8") { try await client.source.fetch("/articles/8", context: $0) }
        #expect(client.cache.stored(shown)?.value?.title == "New")
    }

    @Test(arguments: [Telling.status412, .withState])
    func `the conflict of an awaited write stores the server's state`(_ telling: Telling) async throws {
        let backend = Backend(telling)
        let client = try await fixture.client(backend.transport)
        _ = try await client.cache.value(article(client))
        backend.state.withLock { ($0.title, $0.version) = ("Two", 2) }
        var write = APIClient.Write(.patch, "/articles/7", Body(isStarred: true))
        write.fields.set(.ifMatch, "\"1\"")
        write.modify(Article.self, "7") { $0.isStarred = true }
        do {
            try await client.commit(write)
            Issue.record("The write was accepted.")
        } catch { #expect(error.status == 412) }
        let stored = try #require(client.cache.stored(article(client)))
        #expect(stored.value == Article(id: "7", title: "Two") && stored.validator == "\"2\"")
        #expect(stored.freshness == .fresh && client.cache.outbox.entries.isEmpty)
    }

    @Test func `after the conflict of an awaited write that does not tell the state, the stored value is stale`()
        async throws
    {
        let backend = Backend(.status412)
        let transport = ScriptedTransport { request, _ in
            guard request.method == .delete else { return backend.reply(request) }
            let problem: Fields = [.contentType: "application/problem+json"]
            return .text(#"{"title":"Old"}"#, status: .preconditionFailed, fields: problem)
        }
        let client = try await fixture.client(transport)
        _ = try await client.cache.value(article(client))
        var write = APIClient.Write(.delete, "/articles/7")
        write.remove(Article.self, "7")
        do {
            try await client.commit(write)
            Issue.record("The write was accepted.")
        } catch { #expect(error.code == .conflict) }
        #expect(client.cache.stored(article(client))?.freshness == .stale(.invalidated))
    }

    @Test func `edits of one field are not merged, and mine is kept if the user decides so`() async throws {
        let backend = Backend(.status412)
        let (client, id) = try await rejected(backend, title: "Mine")
        let outbox = client.cache.outbox
        let error = #expect(throws: LarderError.self) { try outbox.merge(id) }
        #expect(error?.code == .conflict)
        #expect(error?.description.contains("title") == true)
        #expect(outbox.rejected.map(\.id) == [id])
        try outbox.keepMine(id)
        try await sent(client)
        #expect(client.cache.stored(article(client))?.value == Article(id: "7", title: "Mine", isStarred: true))
    }

    @Test func `theirs is taken without another request to change it`() async throws {
        let backend = Backend(.withState)
        let (client, id) = try await rejected(backend, title: "Mine")
        try client.cache.outbox.takeTheirs(id)
        try await sent(client)
        #expect(try await client.cache.value(article(client)) == Article(id: "7", title: "Two"))
        #expect(backend.state.withLock { $0.bodies.count } == 1)
        #expect(throws: LarderError.self) { try client.cache.outbox.merge(id) }
    }

    @Test func `a conflict is settled by a value of the user, which sends only what differs`() async throws {
        let backend = Backend(.withMember)
        let (client, id) = try await rejected(backend, title: "Mine")
        try client.cache.outbox.edit(id, toValue: Article(id: "7", title: "Both"))
        try await sent(client)
        #expect(backend.state.withLock { $0.bodies.last } == #"{"title":"Both"}"#)
        #expect(client.cache.stored(article(client))?.value == Article(id: "7", title: "Both"))
    }

    @Test func `theirs is not taken of a write that is to be sent again meanwhile`() async throws {
        let backend = Backend(.withState)
        let (client, id) = try await rejected(backend, title: "Mine")
        let outbox = client.cache.outbox
        outbox.pause()
        try outbox.retry(id)
        let error = #expect(throws: LarderError.self) { try outbox.takeTheirs(id) }
        #expect(error?.code == .invalidArgument)
        #expect(outbox.entries.map(\.id) == [id] && outbox.entries.first?.state == .pending)
        #expect(client.cache.stored(article(client))?.pendingChanges == 1)
    }
}
