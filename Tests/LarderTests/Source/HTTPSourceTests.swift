import Foundation
import LarderEvents
import LarderHTTP
import LarderTesting
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import Larder
@testable import LarderDemo
@testable import LarderHTTPCache
@testable import LarderResources
@testable import LarderStorage
@testable import LarderTransport

/// An authorizer whose renewals fail with a given error.
private struct FailingAuthorizer: HTTPSource.Authorizer {
    let failure: LarderError

    func authorize(_ request: inout TransportRequest) async throws(LarderError) {
        request.fields.set(.authorization, "Bearer old")
    }

    func renew(after request: TransportRequest) async throws(LarderError) -> Bool { throw failure }
}

private struct Word: CacheEntity, Hashable {
    static let entityType = "word"
    var id: String
    var text: String
}

@Suite("HTTPSource", .oneMinute)
struct HTTPSourceTests {
    private struct Item: Codable, Sendable, Equatable {
        var name: String
    }

    private let scene = CacheScene()
    private static let bounded = Freshness.Demand.rule(
        Freshness.Rule(.timeToLive(.seconds(30)), level: .boundedStaleness(.seconds(30)))
    )
    private static let json: Fields = [.contentType: "application/json"]

    private static func item(_ name: String, _ fields: Fields = Fields()) -> ScriptedTransport.Reply {
        var all = json
        for field in fields { all.add(field.name, field.value) }
        return .text("{\"name\":\"\(name)\"}", fields: all)
    }

    private func resource(_ source: HTTPSource) -> Resource<Item> {
        Resource("item", freshness: .timeToLive(.seconds(60))) { try await source.fetch("/item", context: $0) }
    }

    // MARK: Authorization

    @Test(
        arguments: [
            ErrorCode<LarderError>.rejected, .unexpectedReply, .timedOut, .untrusted, .storage, .invalidArgument,
        ]
    )
    func `a failed renewal rejects no pending write`(code: ErrorCode<LarderError>) async throws {
        let cache = try scene.cache()
        let transport = ScriptedTransport { _, _ throws(TransportError) in
            .text("{}", status: .unauthorized, fields: Self.json)
        }
        let authorizer = FailingAuthorizer(failure: LarderError(code, "invalid_grant", status: 400))
        let source = HTTPSource("http://server", transport: transport, authorizer: authorizer)
        let tap = WriteBehind<String, String>("tap", scope: { $0 }, changes: { _, _ in }) { attempts in
            var outcomes: [Outbox.Outcome<String>] = []
            for attempt in attempts {
                outcomes.append(.accepted(try await source.send(.post, "/tap", attempt.input, as: String.self).value))
            }
            return outcomes
        }
        cache.outbox.register(tap)
        let statuses = SequenceRecorder(cache.outbox.statuses)
        try cache.enqueue("a", tap)
        cache.outbox.resume()
        await statuses.wait { _ in cache.outbox.entries.first?.error != nil }
        let entry = try #require(cache.outbox.entries.first)
        #expect(entry.state == .pending, "\(String(describing: entry.error))")
        let known: [ErrorCode<LarderError>: ErrorCode<LarderError>] = [.timedOut: .offline, .untrusted: .untrusted]
        #expect(entry.error?.code == known[code] ?? .unauthorized)
        #expect(known[code] != nil || entry.error?.status == 400)
    }

    @Test func `a server whose certificate is not trusted is not offline, and has got nothing`() async throws {
        let cache = try scene.cache()
        let isTrusted = Mutex(false)
        let transport = ScriptedTransport { _, _ throws(TransportError) in
            guard isTrusted.withLock({ $0 }) else { throw TransportError(.untrusted, "The certificate has expired.") }
            return .text(#"{"name": "a"}"#, fields: Self.json)
        }
        let source = HTTPSource("http://server", transport: transport)
        let item = Resource<Item>("item") { try await source.fetch("/item", context: $0, as: Item.self) }
        let error = await #expect(throws: LarderError.self) { try await cache.value(item) }
        #expect(error?.code == .untrusted && error?.mayHaveBeenCarriedOut == false)
        let tap = WriteBehind<String, Item>("tap", scope: { $0 }, changes: { _, _ in }) { attempts in
            var outcomes: [Outbox.Outcome<Item>] = []
            for _ in attempts {
                outcomes.append(.accepted(try await source.send(.post, "/tap", "a", as: Item.self).value))
            }
            return outcomes
        }
        cache.outbox.register(tap)
        try cache.enqueue("a", tap)
        cache.outbox.resume()
        await reached { cache.outbox.entries.first?.error?.code == .untrusted }
        #expect(cache.outbox.entries.first?.state == .pending)
        isTrusted.withLock { $0 = true }
        cache.networkReturned()
        try await cache.outbox.drained()
        #expect(try await cache.value(item).name == "a")
    }

    @Test func `a write-through with a failed renewal was not sent`() async throws {
        let cache = try scene.cache()
        let transport = ScriptedTransport { _, _ throws(TransportError) in
            .text("{}", status: .unauthorized, fields: Self.json)
        }
        let authorizer = FailingAuthorizer(failure: LarderError(.rejected, "invalid_grant", status: 400))
        let source = HTTPSource("http://server", transport: transport, authorizer: authorizer)
        let order = WriteThrough<String, String>("order", scope: { $0 }) { attempt in
            .accepted(try await source.send(.post, "/order", attempt.input, as: String.self).value)
        }
        cache.outbox.register(order)
        cache.outbox.resume()
        let error = await #expect(throws: LarderError.self) { try await cache.commit("a", order) }
        #expect(error?.code == .unauthorized && error?.description.contains("invalid_grant") == true)
        #expect(cache.outbox.entries.isEmpty)
    }

    @Test func `a 401 after a renewal leaves a write pending`() async throws {
        let transport = ScriptedTransport { _, _ throws(TransportError) in
            .text("{}", status: .unauthorized, fields: Self.json)
        }
        let session = try await BearerSession(
            try scene.cache(inMemory: true),
            HTTPSource("http://server", transport: transport),
            .demo
        )
        let source = HTTPSource("http://server", transport: transport, authorizer: session)
        let error = await #expect(throws: LarderError.self) { try await source.send(.put, "/item", Item(name: "a")) }
        #expect(error?.code == .unauthorized && error?.status == 401)
        // Without an authorizer a 401 is a rejection, as of wrong credentials.
        let plain = HTTPSource("http://server", transport: transport)
        let rejected = await #expect(throws: LarderError.self) { try await plain.send(.put, "/item", Item(name: "a")) }
        #expect(rejected?.code == .rejected && rejected?.status == 401)
    }

    @Test func `a 401 to the repetition of a lost copy leaves the outcome unknown`() async throws {
        let transport = ScriptedTransport { _, _ throws(TransportError) in
            LostCopies.current?.note()
            return .text("{}", status: .unauthorized, fields: Self.json)
        }
        let plain = HTTPSource("http://server", transport: transport)
        let session = try await BearerSession(try scene.cache(inMemory: true), plain, .none)
        try await session.use(token: "t", userID: "ana")
        let source = HTTPSource("http://server", transport: transport, authorizer: session)
        let error = await #expect(throws: LarderError.self) { try await source.send(.put, "/item", Item(name: "a")) }
        #expect(error?.mayHaveBeenCarriedOut == true)
    }

    @Test(arguments: [408, 421, 425, 429])
    func `a postponement of the repetition of a lost copy leaves the outcome unknown`(status: Int) async throws {
        let transport = ScriptedTransport { _, _ throws(TransportError) in
            LostCopies.current?.note()
            return .text("{}", status: Status(code: status), fields: Self.json)
        }
        let plain = HTTPSource("http://server", transport: transport)
        let session = try await BearerSession(try scene.cache(inMemory: true), plain, .none)
        try await session.use(token: "t", userID: "ana")
        let source = HTTPSource("http://server", transport: transport, authorizer: session)
        let error = await #expect(throws: LarderError.self) { try await source.send(.put, "/item", Item(name: "a")) }
        #expect(error?.mayHaveBeenCarriedOut == true)
    }

    // MARK: Redirects

    /// What the URL redirected to before; nil: it did not redirect.
    @Test(arguments: ["/items/7", nil])
    func `a 304 confirms nothing if a URL redirects elsewhere since`(before: String?) async throws {
        let fixture = ClientFixture()
        let target = Mutex(before)
        let transport = ScriptedTransport { request, _ in
            if request.url == "http://server/item", let location = target.withLock({ $0 }) {
                return .text("", status: Status(code: 302), fields: [.location: location])
            }
            if request.fields[.ifNoneMatch] == "\"1\"" {
                return .text("", status: .notModified, fields: [.etag: "\"1\""])
            }
            return Self.item(request.url, [.etag: "\"1\""])
        }
        let client = try await fixture.client(transport)
        let resource = resource(client.source)
        #expect(try await client.cache.refresh(resource).value?.name == "http://server\(before ?? "/item")")
        target.withLock { $0 = "/items/8" }
        #expect(try await client.cache.refresh(resource).value?.name == "http://server/items/8")
        client.close()
    }

    @Test(arguments: [401, 404])
    func `an error of another origin to which a URL redirects neither renews the tokens nor removes the value`(
        status: Int
    ) async throws {
        let fixture = ClientFixture()
        let isFailing = Mutex(false)
        let transport = ScriptedTransport { request, _ in
            if request.url == "http://server/item" {
                return .text("", status: Status(code: 302), fields: [.location: "http://files/item"])
            }
            return isFailing.withLock { $0 }
                ? .text("{}", status: Status(code: status), fields: Self.json) : Self.item("a")
        }
        let client = try await fixture.client(transport)
        try await client.session.signIn { _ throws(LarderError) in ClientFixture.grant("1") }
        let resource = resource(client.source)
        _ = try await client.cache.refresh(resource)
        isFailing.withLock { $0 = true }
        let error = await #expect(throws: LarderError.self) { try await client.cache.refresh(resource) }
        #expect(error?.status == status && error?.code == .rejected)
        #expect(!transport.requests.contains { $0.url.hasSuffix("/token") })
        #expect(client.cache.stored(resource)?.value?.name == "a")
        client.close()
    }

    // MARK: Writes without content in the reply

    @Test(arguments: [200, 201, 202, 204])
    func `a write is done when the server accepts it, whatever the reply contains`(status: Int) async throws {
        let transport = ScriptedTransport(script: [.text("", status: Status(code: status))])
        let source = HTTPSource("http://server", transport: transport)
        try await source.send(.put, "/item", Item(name: "a"), [.ifMatch: "\"1\""])
        let request = try #require(transport.requests.first)
        #expect(request.body == Array("{\"name\":\"a\"}".utf8) && request.fields[.ifMatch] == "\"1\"")
        #expect(request.fields[.contentType] == "application/json")
    }

    @Test func `the page of a captive portal is not the reply to a write`() async throws {
        let transport = ScriptedTransport { _, _ throws(TransportError) in
            .text("<!doctype html>", fields: [.contentType: "text/html"])
        }
        let source = HTTPSource("http://server", transport: transport)
        let error = await #expect(throws: LarderError.self) { try await source.send(.put, "/item", Item(name: "a")) }
        #expect(error?.code == .unexpectedReply)
        let bare = await #expect(throws: LarderError.self) { try await source.send(.delete, "/item") }
        #expect(bare?.code == .unexpectedReply)
    }

    @Test(arguments: ["", "{}", "[1]"])
    func `an accepted write with an undecodable reply is retried a limited number of times`(
        body: String
    ) async throws {
        let cache = try scene.cache()
        let transport = ScriptedTransport { _, _ throws(TransportError) in .text(body, fields: Self.json) }
        let source = HTTPSource("http://server", transport: transport)
        let tap = WriteBehind<String, Item>("tap", scope: { $0 }, changes: { _, _ in }) { attempts in
            var outcomes: [Outbox.Outcome<Item>] = []
            for attempt in attempts {
                outcomes.append(.accepted(try await source.send(.post, "/tap", attempt.input, as: Item.self).value))
            }
            return outcomes
        }
        cache.outbox.register(tap)
        let statuses = SequenceRecorder(cache.outbox.statuses)
        try cache.enqueue("a", tap)
        cache.outbox.resume()
        for attempt in 1...4 {
            await statuses.wait { _ in
                cache.outbox.entries.first.map { $0.attempts == attempt && $0.state == .inDoubt } ?? false
            }
            cache.networkReturned()
        }
        await statuses.wait { _ in cache.outbox.entries.first?.state == .rejected }
        #expect(transport.requests.count == 5)
        let error = cache.outbox.entries.first?.error
        #expect(error?.code == .unexpectedReply && error?.status == 200)
        #expect(error?.description.contains("The server accepted the operation") == true)
    }

    // MARK: no-store

    @Test func `a no-store value is in memory only, also if a 304 says no-store`()
        async throws
    {
        let cache = try scene.cache()
        let transport = ScriptedTransport(script: [
            Self.item("4111-1111", [.cacheControl: "no-store", .etag: "\"1\""]),
            .text("", status: .notModified, fields: [.etag: "\"1\""]),
            Self.item("4222-2222", [.etag: "\"2\""]),
            .text("", status: .notModified, fields: [.etag: "\"2\"", .cacheControl: "no-store"]),
        ])
        let source = HTTPSource("http://server", transport: transport)
        let item = resource(source)
        func onDisk() throws -> Item? {
            let key = EntityKey(type: "=item", id: item.key.canonicalParameters)
            return try cache.disk?.entity(key).map { try JSONDecoder().decode(Item.self, from: Data($0.payload)) }
        }
        #expect(try await cache.value(item).name == "4111-1111")
        #expect(try await cache.value(item, .cacheOnly).name == "4111-1111")
        #expect(try onDisk() == nil)
        #expect(try await cache.refresh(item).value?.name == "4111-1111")
        #expect(try onDisk() == nil)
        #expect(try await cache.refresh(item).value?.name == "4222-2222")
        #expect(try onDisk()?.name == "4222-2222")
        #expect(try await cache.refresh(item).value?.name == "4222-2222")
        #expect(try onDisk() == nil)
        #expect(try await cache.value(item, .cacheOnly).name == "4222-2222")
        let names = FileManager.default.enumerator(atPath: scene.path)?.allObjects as? [String] ?? []
        for name in names {
            let content = FileManager.default.contents(atPath: scene.path + "/" + name) ?? Data()
            #expect(content.range(of: Data("4111-1111".utf8)) == nil, "\(name)")
        }
        // Another process has no value.
        let other = try scene.cache()
        let error = await #expect(throws: LarderError.self) { try await other.value(item, .cacheOnly) }
        #expect(error?.code == .notCached)
    }

    @Test func `a no-store list leaves neither its index nor its items on disk`()
        async throws
    {
        let cache = try scene.cache()
        var fields = Self.json
        fields.set(.cacheControl, "private, no-store")
        let page = "{\"items\":[{\"id\":\"1\",\"text\":\"secret\"}],\"nextCursor\":null,\"previousCursor\":null}"
        let transport = ScriptedTransport(script: [.text(page, fields: fields)])
        let source = HTTPSource("http://server", transport: transport)
        let notes = Resource<EntityList<Word>>("notes", of: EntityList.normalizer(showing: .complete)) {
            try await source.page("/notes", PageRequest($0, limit: 20), by: .demo)
        }
        #expect(try await cache.value(notes).items.map(\.text) == ["secret"])
        #expect(try await cache.value(notes, .cacheOnly).items.map(\.text) == ["secret"])
        #expect(try cache.disk?.entity(Word.key("1")) == nil)
        #expect(try cache.disk?.list(notes.key) == nil)
    }

    // MARK: Intermediate caches

    /// A source behind an HTTP cache whose replies are fresh for an hour. Each reply contains the number of its request.
    private func cached() -> (HTTPSource, ScriptedTransport) {
        let clock = scene.clock
        let transport = ScriptedTransport { _, number throws(TransportError) in
            Self.item(
                "\(number)",
                [.cacheControl: "max-age=3600", .etag: "\"\(number)\"", .date: HTTPDate.format(clock.now)]
            )
        }
        let configuration = HTTPCache.Configuration(storage: DiskHTTPCacheStorage(inMemory: 16 << 20), clock: clock)
        return (HTTPSource("http://server", transport: HTTPCache(transport, configuration)), transport)
    }

    @Test func `an invalidated value is not revalidated by an intermediate HTTP cache`() async throws {
        let (source, transport) = cached()
        let cache = try scene.cache()
        let item = resource(source)
        #expect(try await cache.value(item).name == "1")
        try await cache.invalidate(item)
        #expect(try await cache.value(item).name == "2")
        #expect(transport.requests.last?.fields[.cacheControl] == "no-cache")
    }

    @Test func `a gate is not satisfied by an intermediate HTTP cache`() async throws {
        let (source, transport) = cached()
        let cache = try scene.cache()
        let item = resource(source)
        #expect(try await cache.value(item).name == "1")
        scene.clock.advance(by: .seconds(120))
        // The value is stale by the rule of the resource; the HTTP cache replies with a value that is 120 s old.
        let aged = try await cache.snapshot(item)
        #expect(aged.value?.name == "1" && transport.requests.count == 1)
        #expect(aged.freshness == .stale(.expired))
        #expect(try await cache.requireValidated(item, within: .seconds(10)).value.name == "2")
        #expect(transport.requests.count == 2)
    }

    @Test func `networkOnly bypasses an intermediate HTTP cache`() async throws {
        let (source, _) = cached()
        let cache = try scene.cache()
        let item = resource(source)
        #expect(try await cache.value(item).name == "1")
        #expect(try await cache.value(item, .networkOnly).name == "2")
        let seen = SequenceRecorder(cache.snapshots(item, .networkOnly))
        await seen.wait { $0.last?.value?.name == "3" }
    }

    @Test func `bounded staleness counts from the origin server, not from an intermediate cache`() async throws {
        let (source, transport) = cached()
        let cache = try scene.cache()
        let item = Resource<Item>("item", freshness: Self.bounded) {
            try await source.fetch("/item", context: $0)
        }
        #expect(try await cache.value(item).name == "1")
        scene.clock.advance(by: .seconds(31))
        #expect(try await cache.value(item).name == "2")
        #expect(transport.requests.count == 2)
    }

    @Test func `a bounded value that an intermediate cache keeps too old is not requested in a loop`() async throws {
        let cache = try scene.cache()
        let transport = ScriptedTransport { _, number throws(TransportError) in
            Self.item("\(number)", [.age: "100"])
        }
        let source = HTTPSource("http://server", transport: transport)
        let item = Resource<Item>("item", freshness: Self.bounded) {
            try await source.fetch("/item", context: $0)
        }
        let seen = SequenceRecorder(cache.snapshots(item))
        await seen.wait { $0.last?.value?.name == "1" && $0.last?.isFetching == false }
        #expect(seen.elements.last?.freshness == .stale(.expired))
        try await scene.clock.waitForSleepers()
        scene.clock.advance(by: .seconds(20))
        #expect(transport.requests.count == 1)
        scene.clock.advance(by: .seconds(10))
        await transport.waitForRequests(2)
    }

    // MARK: Foreign replies

    @Test(arguments: [404, 410], ["text/plain; charset=utf-8", "text/html", nil])
    func `a 404 without JSON keeps the stored value`(status: Int, type: String?) async throws {
        let cache = try scene.cache()
        var fields = Fields()
        if let type { fields.set(.contentType, type) }
        let page = "{\"items\":[{\"id\":\"1\",\"text\":\"kept\"}],\"nextCursor\":null,\"previousCursor\":null}"
        let transport = ScriptedTransport(script: [
            .text(page, fields: Self.json), .text("404 page not found", status: Status(code: status), fields: fields),
            .text("404 page not found", status: Status(code: status), fields: fields),
            .text("{}", status: Status(code: status), fields: [.contentType: "application/problem+json"]),
        ])
        let source = HTTPSource("http://server", transport: transport)
        let notes = Resource<EntityList<Word>>("notes", of: EntityList.normalizer(showing: .complete)) {
            try await source.page("/notes", PageRequest($0, limit: 20), by: .demo)
        }
        let note = Resource<Word>.entity("1") { try await source.fetch("/notes/1", context: $0) }
        #expect(try await cache.value(notes).items.map(\.text) == ["kept"])
        for attempt in [0, 1] {
            let error = await #expect(throws: LarderError.self) {
                if attempt == 0 { _ = try await cache.refresh(notes) } else { _ = try await cache.refresh(note) }
            }
            #expect(error?.code == .unexpectedReply && error?.status == status)
            #expect(try await cache.value(notes, .cacheOnly).items.map(\.text) == ["kept"])
        }
        // A 404 of the API counts.
        let gone = await #expect(throws: LarderError.self) { try await cache.refresh(note) }
        #expect(gone?.code == .gone)
        #expect(try await cache.value(notes, .cacheOnly).items.isEmpty)
    }

    @Test func `an unrequested partial reply is rejected`() async throws {
        let cache = try scene.cache()
        var fields = Self.json
        fields.set(.contentRange, "bytes 0-13/400")
        let transport = ScriptedTransport(script: [
            .text("{\"name\":\"half\"}", status: .partialContent, fields: fields)
        ])
        let source = HTTPSource("http://server", transport: transport)
        let error = await #expect(throws: LarderError.self) { try await cache.value(resource(source)) }
        #expect(error?.code == .unexpectedReply && error?.status == 206)
    }
}
