import Foundation
import Larder
import LarderHTTP
import LarderTesting
import LarderTime
import SDKTestSupport
import TestSupport
import Testing

@Suite("HTTPSource: the server's word", .oneMinute)
struct ServerFreshnessTests {
    private struct Item: Codable, Sendable, Equatable {
        var name: String
    }

    private let scene = CacheScene()

    private func reply(_ fields: Fields, status: Status = .ok) -> ScriptedTransport.Reply {
        var all: Fields = [.contentType: "application/json", .date: HTTPDate.format(scene.clock.now)]
        for field in fields { all.add(field.name, field.value) }
        return .text(status == .ok ? "{\"name\":\"a\"}" : "", status: status, fields: all)
    }

    private func resource(_ transport: ScriptedTransport) -> Resource<Item> {
        var source = HTTPSource("http://server", transport: transport)
        source.wallClock = scene.clock
        let configured = source
        return Resource("item") { try await configured.fetch("/item", context: $0) }
    }

    private func date(_ offset: Duration) -> String { HTTPDate.format(scene.clock.now + offset) }

    /// How long the reply is fresh in seconds; -1: not at all; 60 is the lifetime of a reply that states none.
    @Test(
        arguments: [
            ("max-age=5", nil, nil, nil, 5), ("max-age=0", nil, nil, nil, -1), ("max-age=100", nil, nil, "40", 60),
            ("max-age=100", nil, nil, "100", -1), (nil, 30, nil, nil, 30), (nil, -30, nil, nil, -1),
            ("max-age=10", 30, nil, nil, 10), (nil, nil, -1_000, nil, 100), (nil, nil, nil, nil, 60),
            ("no-cache", nil, nil, nil, -1), ("no-cache, max-age=60", nil, nil, nil, -1),
            ("no-cache=\"Set-Cookie\", max-age=7", nil, nil, nil, 7), ("private", nil, nil, nil, 60),
            ("max-age=abc", nil, nil, nil, -1), ("max-age=31536000, immutable", nil, nil, nil, 31_536_000),
        ] as [(String?, Int?, Int?, String?, Int)]
    )
    func `a reply is fresh for as long as the server says`(
        control: String?,
        expires: Int?,
        modified: Int?,
        age: String?,
        fresh: Int
    ) async throws {
        let cache = try scene.cache()
        var fields = Fields()
        if let control { fields.set(.cacheControl, control) }
        if let expires { fields.set(.expires, date(.seconds(expires))) }
        if let modified { fields.set(.lastModified, date(.seconds(modified))) }
        if let age { fields.set(.age, age) }
        let item = resource(ScriptedTransport(script: [reply(fields)]))
        _ = try await cache.snapshot(item)
        func present() async throws -> Bool { try await cache.snapshot(item, .cacheOnly).freshness == .fresh }
        guard fresh >= 0 else {
            #expect(try await !present())
            return
        }
        scene.clock.advance(by: .seconds(fresh) - .milliseconds(1))
        #expect(try await present())
        scene.clock.advance(by: .milliseconds(1))
        #expect(try await !present())
    }

    @Test(arguments: [false, true])
    func `a resource with a modification date only is revalidated and not downloaded, also after a restart`(
        isRestarted: Bool
    ) async throws {
        var cache = try scene.cache()
        let modified = date(.seconds(-10))
        let transport = ScriptedTransport(script: [
            reply([.lastModified: modified]), reply([.lastModified: modified], status: .notModified),
        ])
        let item = resource(transport)
        #expect(try await cache.snapshot(item).validator == modified)
        scene.clock.advance(by: .seconds(100))
        if isRestarted { cache = try scene.cache() }
        let snapshot = try await cache.snapshot(item)
        #expect(snapshot.value?.name == "a" && snapshot.validatedAt == scene.clock.now)
        let request = try #require(transport.requests.last)
        #expect(request.fields[.ifModifiedSince] == modified && !request.fields.contains(.ifNoneMatch))
    }

    @Test func `a modification in the second of the reply is no validator, because another one may follow`()
        async throws
    {
        let cache = try scene.cache()
        let transport = ScriptedTransport(script: [reply([.lastModified: date(.zero)]), reply([:])])
        let item = resource(transport)
        #expect(try await cache.snapshot(item).validator == nil)
        scene.clock.advance(by: .seconds(100))
        _ = try await cache.snapshot(item)
        #expect(transport.requests.last?.fields.contains(.ifModifiedSince) == false)
    }

    @Test(arguments: ["\"1\"", "W/\"1\"", "unquoted"])
    func `an entity tag is preferred to a modification date`(tag: String) async throws {
        let cache = try scene.cache()
        let transport = ScriptedTransport(script: [
            reply([.etag: tag, .lastModified: date(.seconds(-10)), .cacheControl: "no-cache"]),
            reply([.etag: tag], status: .notModified),
        ])
        let item = resource(transport)
        _ = try await cache.snapshot(item)
        _ = try await cache.snapshot(item)
        let request = try #require(transport.requests.last)
        #expect(request.fields[.ifNoneMatch] == tag && !request.fields.contains(.ifModifiedSince))
    }

    @Test func `a validator that an earlier version has stored is still used`() async throws {
        let cache = try scene.cache()
        let now = scene.clock.now
        let transport = ScriptedTransport(script: [reply([:], status: .notModified)])
        let item = resource(transport)
        let row = DiskEntity(
            EntityKey(type: "=item", id: item.key.canonicalParameters),
            payload: Array("{\"name\":\"old\"}".utf8),
            entityTag: "\"7\"",
            fetchedAt: now,
            expiresAt: now + .seconds(30 * 86_400)
        )
        try cache.disk?.put(row)
        scene.clock.advance(by: .seconds(61))
        #expect(try await cache.value(item).name == "old")
        #expect(transport.requests.map { $0.fields[.ifNoneMatch] } == ["\"7\""])
    }

    @Test(arguments: ["max-age=10, must-revalidate", "no-cache"])
    func `a value that the server wants validated is not returned without its freshness`(control: String) async throws {
        let cache = try scene.cache()
        let transport = ScriptedTransport(script: [
            reply([.cacheControl: control, .etag: "\"1\""]), .failure(TransportError(.unreachable, "cut")),
            .failure(TransportError(.unreachable, "cut")), reply([.cacheControl: control], status: .notModified),
        ])
        let item = resource(transport)
        #expect(try await cache.value(item).name == "a")
        scene.clock.advance(by: .seconds(10))
        let error = await #expect(throws: LarderError.self) { try await cache.value(item) }
        #expect(error?.code == .offline)
        scene.clock.advance(by: .seconds(600))
        let shown = try await cache.snapshot(item)
        #expect(shown.value?.name == "a" && shown.freshness == .stale(.validationRequired))
        #expect(shown.refreshError?.code == .offline)
        scene.clock.advance(by: .seconds(600))
        #expect(try await cache.value(item).name == "a")
    }

    @Test func `no-store wins over a stated freshness`() async throws {
        let cache = try scene.cache()
        let transport = ScriptedTransport(script: [reply([.cacheControl: "no-store, max-age=60"])])
        var item = resource(transport)
        item.freshness = .reference
        #expect(try await cache.value(item).name == "a")
        #expect(try await cache.value(item).name == "a" && transport.requests.count == 1)
        #expect(try cache.disk?.entity(EntityKey(type: "=item", id: item.key.canonicalParameters)) == nil)
    }

    @Test func `paging back may be answered by caches on the way`() async throws {
        let cache = try scene.cache(inMemory: true)
        struct Word: CacheEntity { static let entityType = "word"; var id: String }
        let transport = ScriptedTransport { request, _ throws(TransportError) in
            let isFirst = !request.url.contains("cursor=")
            return .text(
                isFirst ? "{\"items\":[{\"id\":\"2\"}],\"next\":\"c\"}" : "{\"items\":[{\"id\":\"1\"}]}",
                fields: [.contentType: "application/json"]
            )
        }
        struct Envelope: Decodable, Sendable { var items: [Word]; var next: String? }
        let source = HTTPSource("http://server", transport: transport)
        let words = PagedResource<Word>("words") {
            try await source.page(
                "/words",
                $0,
                by: .cursor(items: { (page: Envelope) in page.items }, next: { $0.next })
            )
        }
        let timeline = cache.timeline(words)
        _ = try await timeline.snapshot()
        #expect(try await timeline.loadOlder() == .finished)
        try await timeline.refresh()
        #expect(transport.requests.map { $0.fields[.cacheControl] } == [nil, nil, "no-cache"])
        #expect(try await timeline.snapshot().items.map(\.id) == ["2", "1"])
    }
}
