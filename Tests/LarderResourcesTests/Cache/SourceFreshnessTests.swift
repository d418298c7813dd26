import LarderStorage
import LarderTesting
import LarderTime
import SDKTestSupport
import TestSupport
import Testing

@testable import LarderResources

@Suite("Freshness: as the source says", .oneMinute)
struct SourceFreshnessTests {
    let scene = CacheScene()

    private func word(
        _ source: ScriptedSource<String>,
        _ freshness: Freshness.Demand = .source,
        _ policy: ReadPolicy = .cacheFirst
    ) -> Resource<String> {
        Resource("word", freshness: freshness, policy: policy) { try await source.fetch($0) }
    }

    private func stored<Value>(_ cache: LarderCache, _ resource: Resource<Value>) async throws -> Freshness {
        try await cache.snapshot(resource, .cacheOnly).freshness
    }

    private static func answer(_ text: String, _ lifetime: Duration?, mustRevalidate: Bool = false) -> Fetched<String> {
        var answer = Fetched.value(text, validator: "v", lifetime: lifetime)
        answer.mustRevalidate = mustRevalidate
        return answer
    }

    @Test(arguments: [5, 500, 30 * 86_400, 365 * 86_400], [false, true])
    func `a resource without a freshness has the lifetime that its source states, also after a restart`(
        seconds: Int,
        isRestarted: Bool
    ) async throws {
        var cache = try scene.cache()
        let source = ScriptedSource<String>()
        let resource = Resource<String>("word") { try await source.fetch($0) }
        source.prepare(Self.answer("a", .seconds(seconds)))
        let snapshot = try await cache.snapshot(resource)
        #expect(snapshot.freshness == .fresh && snapshot.expiresAt == scene.clock.now + .seconds(seconds))
        if isRestarted { cache = try scene.cache() }
        scene.clock.advance(by: .seconds(seconds) - .milliseconds(1))
        #expect(try await stored(cache, resource) == .fresh)
        scene.clock.advance(by: .milliseconds(1))
        #expect(try await stored(cache, resource) == .stale(.expired))
    }

    @Test func `a source that states no lifetime leaves it to the table`() async throws {
        var configuration = scene.configuration()
        configuration.freshness[.interactive] = .timeToLive(.seconds(20))
        let cache = try LarderCache(configuration)
        let source = ScriptedSource<String>()
        source.prepare(Self.answer("a", nil))
        _ = try await cache.value(word(source))
        scene.clock.advance(by: .milliseconds(19_999))
        #expect(try await stored(cache, word(source)) == .fresh)
        scene.clock.advance(by: .milliseconds(1))
        #expect(try await stored(cache, word(source)) == .stale(.expired))
    }

    @Test(arguments: [nil, 30, 90, 1_000] as [Int?], [nil, 30, 90, 1_000] as [Int?])
    func `items of two pages are fresh together only while each page is`(_ older: Int?, _ newer: Int?) {
        let rule = Freshness.Rule(.source(otherwise: .seconds(60)))
        let start = WallTime(nanosecondsSinceEpoch: 1_000_000_000_000)
        func times(_ lifetime: Int?, at seconds: Int) -> Freshness.Times {
            Freshness.Times(lifetime.map { StatedFreshness(lifetime: .seconds($0)) }, at: start + .seconds(seconds))
        }
        let pages = [times(older, at: 0), times(newer, at: 40)]
        let both = pages[0].mixed(with: pages[1])
        for seconds in stride(from: 40, to: 1_100, by: 10) {
            let now = Moment(wall: start + .seconds(seconds), uptime: MonotonicTime(nanoseconds: 0))
            let isFresh = ([both] + pages).map { rule.judge(FreshnessFacts(times: $0), at: now).isFresh }
            #expect(!isFresh[0] || isFresh[1] && isFresh[2], "after \(seconds) s")
        }
    }

    @Test(arguments: [5, 500])
    func `a stated freshness overrides the lifetime of the source`(seconds: Int) async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<String>()
        let resource = word(source, .timeToLive(.seconds(60)))
        source.prepare(Self.answer("a", .seconds(seconds), mustRevalidate: true))
        let snapshot = try await cache.snapshot(resource)
        #expect(snapshot.expiresAt == scene.clock.now + .seconds(60))
        scene.clock.advance(by: .milliseconds(59_999))
        #expect(try await stored(cache, resource) == .fresh)
        scene.clock.advance(by: .milliseconds(1))
        #expect(try await stored(cache, resource) == .stale(.expired))
        // The app has stated what it wants: it is shown when there is no network.
        source.prepare(failure: LarderError(.offline, "cut"))
        #expect(try await cache.value(resource) == "a")
    }

    @Test(arguments: [false, true])
    func `a confirmation without a lifetime continues the known one, and one with a lifetime replaces it`(
        isList: Bool
    ) async throws {
        var cache = try scene.cache()
        let source = ScriptedSource<String>()
        let items = ScriptedSource<EntityList<Note>>()
        let list = Resource<EntityList<Note>>.list("notes", policy: .cacheFirst) { try await items.fetch($0) }
        let resource = word(source)
        func prepare(_ lifetime: Duration?, first: Bool = false) {
            guard !first else {
                items.prepare(.value(EntityList([]), validator: "v", lifetime: lifetime))
                return source.prepare(Self.answer("a", lifetime))
            }
            items.prepare(.notModified(lifetime: lifetime))
            source.prepare(.notModified(lifetime: lifetime))
        }
        func read() async throws -> Freshness {
            isList ? try await cache.snapshot(list).freshness : try await cache.snapshot(resource).freshness
        }
        func present() async throws -> Freshness {
            isList ? try await stored(cache, list) : try await stored(cache, resource)
        }
        prepare(.seconds(100), first: true)
        #expect(try await read() == .fresh)
        scene.clock.advance(by: .seconds(100))
        cache = try scene.cache()
        prepare(nil)
        #expect(try await read() == .fresh)
        scene.clock.advance(by: .seconds(99))
        #expect(try await present() == .fresh)
        scene.clock.advance(by: .seconds(1))
        prepare(.seconds(10))
        #expect(try await read() == .fresh)
        scene.clock.advance(by: .seconds(10))
        #expect(try await present() == .stale(.expired))
    }

    @Test(
        arguments: [ReadPolicy.cacheFirst, .staleWhileRevalidate, .networkFirst(timeout: .seconds(1))],
        [false, true]
    )
    func `an expired value that requires validation is shown with its reason and never returned bare`(
        policy: ReadPolicy,
        isRestarted: Bool
    ) async throws {
        var cache = try scene.cache()
        let source = ScriptedSource<String>()
        let resource = word(source, .source, policy)
        source.prepare(Self.answer("a", .seconds(10), mustRevalidate: true))
        #expect(try await cache.value(resource) == "a")
        #expect(try await cache.value(resource, .cacheOnly) == "a")
        scene.clock.advance(by: .seconds(10))
        if isRestarted { cache = try scene.cache() }
        source.prepare(failure: LarderError(.offline, "cut"))
        let error = await #expect(throws: LarderError.self) { try await cache.value(resource) }
        #expect(error?.code == .offline)
        let rejection = await #expect(throws: LarderError.self) { try await cache.value(resource, .cacheOnly) }
        #expect(rejection?.code == .notValidated)
        let shown = try await cache.snapshot(resource, .cacheOnly)
        #expect(shown.value == "a" && shown.freshness == .stale(.validationRequired))
        scene.clock.advance(by: .seconds(1))
        source.prepare(.notModified())
        #expect(try await cache.value(resource, .networkFirst(timeout: nil)) == "a")
        #expect(try await stored(cache, resource) == .fresh)
    }

    @Test func `an observed value that requires validation is shown as stale when it expires`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<String>()
        source.prepare(Self.answer("a", .seconds(10), mustRevalidate: true))
        let seen = SequenceRecorder(cache.snapshots(word(source)))
        await seen.wait { $0.last?.freshness == .fresh }
        try await scene.clock.waitForSleepers()
        scene.clock.advance(by: .seconds(10))
        await seen.wait { $0.last?.freshness == .stale(.validationRequired) }
        #expect(seen.elements.last?.value == "a")
    }

    @Test func `an item of a list has the lifetime of the list, unless its own is longer`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<EntityList<Note>>()
        let list = Resource<EntityList<Note>>.list("notes", policy: .networkOnly) { try await source.fetch($0) }
        let one = Resource<Note>.entity("1") { _ in
            .value(Note(id: "1", text: "a"), validator: "1", lifetime: .seconds(100))
        }
        let two = Resource<Note>.entity("2") { _ in throw Broken() }
        let page = EntityList([Note(id: "1", text: "a"), Note(id: "2", text: "b")])
        source.prepare(.value(page, lifetime: .seconds(5)), .value(page, lifetime: .seconds(5)))
        _ = try await cache.value(list)
        #expect(try await stored(cache, one) == .fresh)
        scene.clock.advance(by: .seconds(5))
        #expect(try await stored(cache, one) == .stale(.expired))
        #expect(try await stored(cache, two) == .stale(.expired))
        _ = try await cache.value(one)
        _ = try await cache.value(list)
        scene.clock.advance(by: .seconds(99))
        #expect(try await stored(cache, one) == .fresh)
        #expect(try await stored(cache, two) == .stale(.expired))
        scene.clock.advance(by: .seconds(1))
        #expect(try await stored(cache, one) == .stale(.expired))
    }
}
