import Foundation
import LarderResources
import LarderTesting
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import LarderStorage

@Suite("Resources: configuration of equal identities", .oneMinute)
struct ResourceSettingsTests {
    let scene = CacheScene()

    private static let secret = "4111-1111-1111-1111"

    private func word(
        _ source: ScriptedSource<String>,
        _ isMemoryOnly: Bool = false
    ) -> Resource<String> {
        var resource = Resource<String>("word") { try await source.fetch($0) }
        resource.isMemoryOnly = isMemoryOnly
        return resource
    }

    /// The files of the store that contain a text.
    private func files(with text: String) throws -> [String] {
        try FileManager.default.subpathsOfDirectory(atPath: scene.path).filter { name in
            FileManager.default.contents(atPath: scene.path + "/" + name)?.range(of: Data(text.utf8)) != nil
        }
    }

    // MARK: Retention

    @Test
    func `a value read with disk and then with memory retention is removed from the disk, and no answer is written`()
        async throws
    {
        let cache = try scene.cache()
        let source = ScriptedSource<String>()
        source.prepare(.value("first \(Self.secret)"), .value("second \(Self.secret)"), .value("third \(Self.secret)"))
        _ = try await cache.value(word(source))
        #expect(try !files(with: Self.secret).isEmpty)
        // This read is a memory hit, and the reader's retention still applies.
        #expect(try await cache.value(word(source, true)) == "first \(Self.secret)")
        #expect(try files(with: Self.secret) == [])
        _ = try await cache.refresh(word(source, true))
        #expect(try files(with: Self.secret) == [])
        _ = try await cache.refresh(word(source))
        #expect(try files(with: Self.secret) == [])
        #expect(try await cache.value(word(source), .cacheOnly) == "third \(Self.secret)")
        await #expect(throws: LarderError.self) { try await scene.cache().value(word(source), .cacheOnly) }
    }

    @Test func `a value of an earlier process is removed from the disk by the first read with memory retention`()
        async throws
    {
        let source = ScriptedSource<String>()
        source.prepare(.value(Self.secret))
        _ = try await scene.cache().value(word(source))
        let cache = try scene.cache()
        // The value is not lost, because this process has read it.
        #expect(try await cache.value(word(source, true), .cacheOnly) == Self.secret)
        #expect(try files(with: Self.secret) == [])
        #expect(try await cache.value(word(source), .cacheOnly) == Self.secret)
    }

    @Test func `a value in a file of its own is removed from the disk too`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<String>()
        source.prepare(.value(String(repeating: Self.secret, count: 20_000)))
        _ = try await cache.value(word(source))
        #expect(try !files(with: Self.secret).isEmpty)
        _ = try await cache.value(word(source, true))
        #expect(try files(with: Self.secret) == [])
    }

    @Test(arguments: [false, true])
    func `the answer to a shared request is not written if one of its readers keeps it in memory only`(
        _ isMemoryFirst: Bool
    ) async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<String>()
        let resources = [word(source, isMemoryFirst), word(source, !isMemoryFirst)]
        let first = Task { try await cache.value(resources[0]) }
        await source.waitForRequests(1)
        let second = SequenceRecorder(cache.snapshots(resources[1]))
        await second.wait(for: 1)
        source.answer(0, .value(Self.secret))
        #expect(try await first.value == Self.secret)
        await second.wait { $0.last?.value == Self.secret }
        #expect(try files(with: Self.secret) == [])
        #expect(source.requests.count == 1)
    }

    @Test func `nothing is written under a key with memory retention, also after memory was trimmed`()
        async throws
    {
        let cache = try scene.cache()
        let source = ScriptedSource<String>()
        source.prepare(.value(Self.secret), .value(Self.secret))
        _ = try await cache.value(word(source, true))
        cache.trimMemory(toBytes: 0)
        #expect(try await cache.refresh(word(source)).value == Self.secret)
        #expect(source.requests.count == 2)
        #expect(try files(with: Self.secret) == [])
    }

    @Test func `a list that becomes memory-only removes itself and its own entities from the disk`() async throws {
        let cache = try scene.cache()
        func list(_ name: String, _ ids: [String], _ isMemoryOnly: Bool)
            -> Resource<EntityList<Note>>
        {
            var list = Resource<EntityList<Note>>.list(name, of: Note.self) { _ in
                .value(EntityList(ids.map { Note(id: $0, text: "text-of-\($0)", revision: 1) }))
            }
            list.isMemoryOnly = isMemoryOnly
            return list
        }
        _ = try await cache.value(list("open", ["b"], false))
        _ = try await cache.value(list("secret-list", ["a", "b"], false))
        #expect(try await cache.value(list("secret-list", ["a", "b"], true)).items.count == 2)
        for text in ["secret-list", "text-of-a"] { #expect(try files(with: text) == [], "\(text)") }
        // The other list contains the entity too.
        #expect(try !files(with: "text-of-b").isEmpty)
        #expect(try await cache.value(list("secret-list", [], false), .cacheOnly).items.map(\.id) == ["a", "b"])
        #expect(try await scene.cache().value(list("open", [], false), .cacheOnly).items.map(\.id) == ["b"])
    }

    @Test func `a timeline opened with disk and then with memory retention is removed from the disk`() async throws {
        let cache = try scene.cache()
        let source = PageSource()
        source.script.prepare(.value(EntityList([Note(1, "secret-text")])))
        _ = try await cache.timeline(source.resource()).snapshot()
        #expect(try !files(with: "secret-text").isEmpty)
        var resource = source.resource()
        resource.isMemoryOnly = true
        let timeline = cache.timeline(resource)
        #expect(try await timeline.snapshot().items.map(\.text) == ["secret-text"])
        source.script.prepare(.value(EntityList([Note(2, "secret-text"), Note(1, "secret-text")])))
        try await timeline.refresh()
        #expect(try files(with: "secret-text") == [])
    }

    // MARK: Settings of a read

    @Test func `each reader applies its own freshness rule`() async throws {
        for isStrictFirst in [false, true] {
            let cache = try scene.cache(inMemory: true)
            let source = ScriptedSource<String>()
            source.prepare(.value("a"))
            func word(_ seconds: Int) -> Resource<String> {
                Resource("word", freshness: .timeToLive(.seconds(seconds))) { try await source.fetch($0) }
            }
            _ = try await cache.value(word(isStrictFirst ? 10 : 60))
            let seen = [10, 60].map { SequenceRecorder(cache.snapshots(word($0), .cacheOnly)) }
            for each in seen { await each.wait(for: 1) }
            scene.clock.advance(by: .seconds(10))
            #expect(try await cache.snapshot(word(10), .cacheOnly).freshness == .stale(.expired))
            #expect(try await cache.snapshot(word(60), .cacheOnly).freshness == .fresh)
            await seen[0].wait { $0.last?.freshness == .stale(.expired) }
            #expect(seen[1].elements.allSatisfy { $0.freshness == .fresh })
            #expect(seen[1].elements.first?.expiresAt == seen[0].elements.first?.expiresAt.map { $0 + .seconds(50) })
            source.prepare(.value("b"))
            #expect(try await cache.value(word(60)) == "a")
            #expect(try await cache.value(word(10)) == "b")
        }
    }

    @Test func `each reader reads by the policy of its own resource`() async throws {
        let cache = try scene.cache(inMemory: true)
        let source = ScriptedSource<String>()
        source.prepare(.value("a"), .value("b"))
        let fetch: @Sendable (FetchContext) async throws -> Fetched<String> = { try await source.fetch($0) }
        #expect(try await cache.value(Resource("word", policy: .cacheFirst, fetch: fetch)) == "a")
        #expect(try await cache.value(Resource("word", policy: .networkOnly, fetch: fetch)) == "b")
        #expect(try await cache.value(Resource("word", policy: .cacheOnly, fetch: fetch)) == "b")
        #expect(source.requests.count == 2)
    }

    @Test func `a reader waits at most its own timeout for a request of another reader`() async throws {
        let cache = try scene.cache(inMemory: true)
        let source = ScriptedSource<String>()
        var patient = word(source)
        patient.timeout = nil
        let first = Task { [patient] in try await cache.value(patient) }
        await source.waitForRequests(1)
        var hasty = word(source)
        hasty.timeout = .seconds(5)
        let second = Task { [hasty] in try await cache.value(hasty) }
        try await scene.clock.waitForSleepers(1)
        scene.clock.advance(by: .seconds(5))
        let error = await #expect(throws: LarderError.self) { try await second.value }
        #expect(error?.code == .timedOut)
        source.answer(0, .value("late"))
        #expect(try await first.value == "late")
    }

    @Test func `a request has the timeout of the reader that begins it`() async throws {
        let cache = try scene.cache(inMemory: true)
        let source = ScriptedSource<String>()
        source.prepare(.value("a"))
        // A request without a timeout has no sleeper: the only sleeper below is that of the second request.
        var patient = word(source)
        patient.timeout = nil
        _ = try await cache.value(patient)
        var hasty = word(source)
        hasty.timeout = .seconds(5)
        let reader = Task { [hasty] in try await cache.value(hasty, .networkOnly) }
        await source.waitForRequests(2)
        try await scene.clock.waitForSleepers(1)
        scene.clock.advance(by: .seconds(5))
        let error = await #expect(throws: LarderError.self) { try await reader.value }
        #expect(error?.code == .timedOut)
    }

    @Test func `a value is stale after the invalidation of any tag of any of its readers`() async throws {
        let cache = try scene.cache(inMemory: true)
        let source = ScriptedSource<String>()
        source.prepare(.value("a"))
        _ = try await cache.value(word(source))
        var tagged = word(source)
        tagged.tags = ["words"]
        _ = try await cache.value(tagged)
        try await cache.invalidate(tag: "words")
        #expect(try await cache.snapshot(tagged, .cacheOnly).freshness == .stale(.invalidated))
        #expect(try await cache.snapshot(word(source), .cacheOnly).freshness == .stale(.invalidated))
    }

    @Test func `a reader that needs a partial entity does not fetch the complete one`() async throws {
        let cache = try scene.cache(inMemory: true)
        let source = ScriptedSource<Note>()
        let whole = Resource<Note>.entity("1") { try await source.fetch($0) }
        var part = whole
        part.demands = .partial
        try await cache.update {
            $0.put(Note(id: "1", text: "headline", revision: 1), completeness: .partial, lifetime: .seconds(60))
        }
        #expect(try await cache.snapshot(whole, .cacheOnly).freshness == .stale(.partial))
        #expect(try await cache.snapshot(part).freshness == .fresh)
        #expect(source.requests.isEmpty)
    }

    // MARK: Shapes

    @Test(arguments: [false, true])
    func `a value stored whole and an entity with the same key are separate`(_ isWholeFirst: Bool) async throws {
        let cache = try scene.cache()
        let whole = Resource<Note>("note", ["id": "1"]) { _ in .value(Note(id: "1", text: "whole", revision: 1)) }
        let entity = Resource<Note>.entity("1") { _ in .value(Note(id: "1", text: "entity", revision: 1)) }
        for resource in isWholeFirst ? [whole, entity] : [entity, whole] { _ = try await cache.value(resource) }
        try await cache.update { $0.modify(Note.self, "1") { $0.text = "modified" } }
        #expect(try await cache.value(entity, .cacheOnly).text == "modified")
        #expect(try await cache.value(whole, .cacheOnly).text == "whole")
        cache.trimMemory(toBytes: 0)
        #expect(try await cache.value(entity, .cacheOnly).text == "modified")
        #expect(try await cache.value(whole, .cacheOnly).text == "whole")
    }
}
