import LarderTesting
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import LarderResources
@testable import LarderStorage

@Suite("Freshness", .oneMinute)
struct FreshnessTests {
    let scene = CacheScene()

    private func word(
        _ source: ScriptedSource<String>,
        _ rule: Freshness.Rule = .timeToLive(.seconds(60))
    ) -> Resource<String> {
        Resource("word", freshness: .rule(rule)) { try await source.fetch($0) }
    }

    private func stored(_ cache: LarderCache, _ resource: Resource<String>) async throws -> Freshness {
        try await cache.snapshot(resource, .cacheOnly).freshness
    }

    @Test func `the standard table has the three classes, and an unknown one counts as interactive`() {
        let table = [Freshness.Class: Freshness.Rule].standard
        #expect(table[.critical] == Freshness.Rule(.timeToLive(.seconds(15)), level: .validated))
        #expect(table[.interactive] == Freshness.Rule.timeToLive(.seconds(60)))
        #expect(table[.reference] == Freshness.Rule.timeToLive(.seconds(86_400)))
        #expect(
            Freshness.Demand.named(Freshness.Class(rawValue: "other")).rule(in: table).criterion
                == .timeToLive(.seconds(60))
        )
    }

    @Test func `a value is fresh for its lifetime, counted from the start of the request`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<String>()
        let resource = word(source)
        let reader = Task { try await cache.snapshot(resource) }
        await source.waitForRequests(1)
        let asked = scene.clock.now
        scene.clock.advance(by: .seconds(10))
        source.answer(0, .value("a"))
        let snapshot = try await reader.value
        #expect(snapshot.fetchedAt == asked && snapshot.validatedAt == asked)
        #expect(snapshot.expiresAt == asked + .seconds(60))
        scene.clock.advance(by: .milliseconds(49_999))
        #expect(try await stored(cache, resource) == .fresh)
        scene.clock.advance(by: .milliseconds(1))
        #expect(try await stored(cache, resource) == .stale(.expired))
    }

    @Test(arguments: [-86_400, -3_600, -3, 3_600, 86_400, 315_360_000], [false, true])
    func `a changed clock makes no stale value fresh, and no value stale for ever`(
        _ seconds: Int,
        _ isRestarted: Bool
    ) async throws {
        var cache = try scene.cache()
        let source = ScriptedSource<String>()
        let resource = word(source)
        source.prepare(.value("a"))
        _ = try await cache.value(resource)
        scene.clock.advance(by: .seconds(50))
        scene.clock.set(wall: scene.clock.now + .seconds(seconds))
        if isRestarted { cache = try scene.cache() }
        // Eleven seconds later the value is expired, whatever the wall clock shows.
        scene.clock.advance(by: .seconds(11))
        let freshness = try await stored(cache, resource)
        // A small step back while no process runs cannot be detected: the value looks younger by the step.
        if !(isRestarted && seconds == -3) { #expect(freshness != .fresh) }
        source.prepare(.value("b"))
        #expect(try await cache.value(resource, .networkOnly) == "b")
        #expect(try await stored(cache, resource) == .fresh)
        // The clock is corrected.
        scene.clock.set(wall: scene.clock.now - .seconds(seconds))
        source.prepare(.value("c"))
        _ = try await cache.value(resource, .networkOnly)
        #expect(try await stored(cache, resource) == .fresh)
        scene.clock.advance(by: .seconds(60))
        #expect(try await stored(cache, resource) != .fresh)
    }

    @Test(arguments: [false, true])
    func `what is stored with times from before the clock was set back is stale after a restart`(
        _ isReply: Bool
    ) async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<EntityList<Note>>()
        let list = Resource<EntityList<Note>>.list("all", of: Note.self, freshness: .timeToLive(.seconds(60))) {
            try await source.fetch($0)
        }
        let note = Resource<Note>.entity("1", freshness: .timeToLive(.seconds(60))) { _ in throw Broken() }
        let page = Fetched.value(EntityList([Note(id: "1", text: "a"), Note(id: "2", text: "b")]))
        source.prepare(page)
        _ = try await cache.value(list)
        scene.clock.advance(by: .seconds(50))
        let refresh = isReply ? Task { _ = try await cache.refresh(list) } : nil
        if isReply { await source.waitForRequests(2) }
        scene.clock.advance(by: .seconds(1))
        scene.clock.set(wall: scene.clock.now - .seconds(45))
        #expect(try await cache.snapshot(list, .cacheOnly).freshness == .stale(.clockUncertain))
        if isReply {
            source.answer(1, page)
        } else {
            try await cache.update { update in
                update.modify(Note.self, "1") { $0.text = "c" }
                update.edit(list.key) { $0.removeLast() }
            }
        }
        try await refresh?.value
        cache.close()
        scene.clock.advance(by: .seconds(50))
        let next = try scene.cache()
        #expect(try await next.snapshot(list, .cacheOnly).freshness != .fresh)
        #expect(try await next.snapshot(note, .cacheOnly).freshness != .fresh)
    }

    @Test(arguments: 1...8 as ClosedRange<UInt64>)
    func `a clock that was set back is not forgotten when the power is lost`(_ seed: UInt64) async throws {
        let settings = DiskStore.Configuration(directory: scene.path, clock: scene.clock)
        let killable = KillableStore(settings, simulatesPowerLoss: true)
        func open() throws -> LarderCache {
            var configuration = scene.configuration()
            configuration.storage = .store(try killable.store())
            return try LarderCache(configuration)
        }
        let source = ScriptedSource<String>()
        let resource = word(source)
        source.prepare(.value("a"))
        let cache = try open()
        _ = try await cache.value(resource)
        try killable.store().write(.powerLoss) { try $0.setMetadata([1], for: "synced") }
        scene.clock.advance(by: .seconds(50))
        scene.clock.set(wall: scene.clock.now - .seconds(45))
        #expect(try await stored(cache, resource) == .stale(.clockUncertain))
        // It is stored on a thread for the disk.
        try await reached { try killable.store().metadata(InvalidationTable.metadataKey) != nil }
        try killable.losePower(seed: seed)
        cache.close()
        scene.clock.advance(by: .seconds(20))
        #expect(try await stored(open(), resource) == .stale(.clockUncertain))
    }

    @Test func `that the clock was set back while no process was running is noticed until the machine is booted`()
        async throws
    {
        let clock = scene.clock
        func open(boot: String) throws -> LarderCache {
            var configuration = scene.configuration()
            configuration.stamps = StampSource(bootID: boot) { clock.uptime.nanoseconds / 1_000 }
            return try LarderCache(configuration)
        }
        let source = ScriptedSource<String>()
        let resource = word(source)
        source.prepare(.value("a"))
        var cache = try open(boot: "one")
        _ = try await cache.value(resource)
        cache.close()
        clock.advance(by: .seconds(90))
        clock.set(wall: clock.now - .seconds(80))
        cache = try open(boot: "one")
        #expect(try await stored(cache, resource) == .stale(.clockUncertain))
        source.prepare(.value("b"))
        _ = try await cache.value(resource)
        cache.close()
        clock.advance(by: .seconds(20))
        // Nothing is known about an earlier boot, and the clock shows a later time than then.
        #expect(try await stored(open(boot: "two"), resource) == .fresh)
        clock.set(wall: clock.now - .seconds(30))
        #expect(try await stored(open(boot: "three"), resource) == .stale(.clockUncertain))
    }

    @Test func `observers notice a clock that was set back`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<String>()
        let resource = word(source)
        source.prepare(.value("a"))
        _ = try await cache.value(resource)
        let seen = SequenceRecorder(cache.snapshots(resource, .cacheOnly))
        await seen.wait(for: 1)
        scene.clock.set(wall: scene.clock.now - .seconds(600))
        #expect(try await stored(cache, resource) == .stale(.clockUncertain))
        await seen.wait { $0.last?.freshness == .stale(.clockUncertain) }
        #expect(scene.events.withLock { $0.contains { if case .clockSetBack = $0 { true } else { false } } })
    }

    @Test func `an observed value is shown as stale when it expires without a request`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<String>()
        let resource = word(source)
        source.prepare(.value("a"))
        _ = try await cache.value(resource)
        let seen = SequenceRecorder(cache.snapshots(resource))
        await seen.wait(for: 1)
        try await scene.clock.waitForSleepers(1)
        scene.clock.advance(by: .seconds(60))
        await seen.wait(for: 2)
        #expect(seen.elements.map(\.freshness) == [.fresh, .stale(.expired)])
        #expect(source.requests.count == 1)
    }

    @Test func `bounded staleness is kept by one request for all observers`()
        async throws
    {
        let cache = try scene.cache()
        let source = ScriptedSource<String>()
        let resource = word(source, Freshness.Rule(.timeToLive(.seconds(60)), level: .boundedStaleness(.seconds(30))))
        source.prepare(.value("0"))
        _ = try await cache.value(resource)
        scene.clock.advance(by: .seconds(20))
        #expect(scene.clock.sleeperCount == 0)
        let viewers = (0..<3).map { _ in SequenceRecorder(cache.snapshots(resource)) }
        for viewer in viewers { await viewer.wait(for: 1) }
        for round in 1...3 {
            try await scene.clock.waitForSleepers(1)
            // The scene's random number spreads the refresh to nine tenths of the bound.
            let age = round == 1 ? 7 : 27
            scene.clock.advance(by: .seconds(age))
            await source.waitForRequests(round + 1)
            source.answer(round, .value("\(round)"))
            for viewer in viewers { await viewer.wait { $0.last?.value == "\(round)" && $0.last?.isFetching == false } }
        }
        #expect(source.requests.count == 4)
        for viewer in viewers { viewer.cancel() }
        for viewer in viewers { await viewer.waitForEnd() }
        scene.clock.advance(by: .seconds(600))
        #expect(source.requests.count == 4)
    }

    @Test func `bounded staleness of an item that the server does not know costs one request in each interval`()
        async throws
    {
        let cache = try scene.cache()
        let source = ScriptedSource<Note>()
        for _ in 0..<100 { source.prepare(.gone) }
        let rule = Freshness.Rule(.timeToLive(.seconds(60)), level: .boundedStaleness(.seconds(30)))
        let note = Resource<Note>.entity("1", freshness: .rule(rule)) { try await source.fetch($0) }
        // The outbox is not resumed: the operation waits.
        let create = WriteBehind<String, Void>(
            "create",
            scope: { $0 },
            changes: { id, changes in changes.create(Note(id: id, text: "new")) },
            send: { attempts in attempts.map { _ in .accepted(()) } }
        )
        cache.outbox.register(create)
        try cache.enqueue("1", create)
        let seen = SequenceRecorder(cache.snapshots(note))
        await rest()
        for _ in 0..<10 {
            scene.clock.advance(by: .milliseconds(1))
            await rest()
        }
        #expect(seen.elements.last?.value?.text == "new" && source.requests.count == 1)
        scene.clock.advance(by: .seconds(27))
        await rest()
        #expect(source.requests.count == 2)
    }

    @Test func `a failed refresh is retried with growing delays`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<String>()
        let resource = word(source, Freshness.Rule(.timeToLive(.seconds(60)), level: .boundedStaleness(.seconds(10))))
        source.prepare(.value("0"))
        _ = try await cache.value(resource)
        let seen = SequenceRecorder(cache.snapshots(resource))
        await seen.wait(for: 1)
        for (index, wait) in [9_000, 500, 1_000, 2_000].enumerated() {
            scene.clock.advance(by: .milliseconds(wait - 1))
            #expect(source.requests.count == index + 1)
            scene.clock.advance(by: .milliseconds(1))
            await source.waitForRequests(index + 2)
            source.fail(index + 1, Broken())
            // The expiry in between is shown with the previous error.
            await seen.wait { $0.count(where: { $0.isFetching == true }) == index + 1 && $0.last?.isFetching == false }
        }
    }

    @Test func `a value that must be validated is never returned stale`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<String>()
        let resource = Resource<String>("balance", freshness: .critical) { try await source.fetch($0) }
        source.prepare(.value("100"))
        _ = try await cache.value(resource)
        scene.clock.advance(by: .seconds(15))
        source.prepare(failure: Broken())
        await #expect(throws: LarderError.self) { try await cache.value(resource) }
        // A policy of the read overrides the rule.
        #expect(try await cache.value(resource, .cacheOnly) == "100")
    }

    @Test func `a reader of a sensitive field gets that field's lifetime`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<String>()
        var rule = Freshness.Rule.timeToLive(.seconds(3_600))
        rule.fieldLifetimes = ["price": .seconds(10)]
        let resource = word(source, rule)
        source.prepare(.value("a"), .value("b"))
        _ = try await cache.value(resource)
        scene.clock.advance(by: .seconds(10))
        #expect(try await cache.value(resource) == "a")
        #expect(try await cache.value(resource, fields: ["name"]) == "a")
        #expect(try await cache.value(resource, fields: ["price", "name"]) == "b")
    }

    @Test func `a known newer version makes the stored value stale until it is stored`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<Note>()
        let note = Resource<Note>.entity("1", freshness: .rule(Freshness.Rule(.version))) { try await source.fetch($0) }
        source.prepare(.value(Note(id: "1", text: "a", revision: 3)))
        _ = try await cache.value(note)
        scene.clock.advance(by: .seconds(1_000_000))
        #expect(try await cache.snapshot(note, .cacheOnly).freshness == .fresh)
        await cache.noteVersion(5, of: Note.self, "1")
        #expect(try await cache.snapshot(note, .cacheOnly).freshness == .stale(.olderVersion))
        source.prepare(.value(Note(id: "1", text: "b", revision: 5)))
        #expect(try await cache.snapshot(note).freshness == .fresh)
    }

    @Test func `a known newer version makes the stored value stale in other processes and after a restart`()
        async throws
    {
        let caches = (try scene.cache(), try scene.cache())
        let note = Resource<Note>.entity("1", freshness: .rule(Freshness.Rule(.version))) { _ in
            .value(Note(id: "1", text: "a", revision: 6))
        }
        for cache in [caches.0, caches.1] { _ = try await cache.value(note) }
        await caches.0.noteVersion(7, of: Note.self, "1")
        scene.clock.advance(by: .seconds(1))
        for cache in [caches.0, caches.1, try scene.cache()] {
            #expect(cache.stored(note)?.freshness.isFresh == false)
        }
    }

    @Test func `a change of a value without a version does not end its staleness by a noted version`() async throws {
        let cache = try scene.cache()
        let note = Resource<Note>.entity("1", freshness: .reference) { _ in .value(Note(id: "1", text: "a")) }
        _ = try await cache.value(note)
        await cache.noteVersion(5, of: Note.self, "1")
        try await cache.update { $0.modify(Note.self, "1") { $0.text = "b" } }
        let shown = try await cache.snapshot(note, .cacheOnly)
        #expect(shown.value?.text == "b" && !shown.freshness.isFresh)
    }

    @Test func `a list with an item of which a newer version is known is stale until that is stored`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<EntityList<Note>>()
        let list = Resource<EntityList<Note>>.list("notes", freshness: .timeToLive(.seconds(60))) {
            try await source.fetch($0)
        }
        source.prepare(.value(EntityList([Note(id: "1", text: "a", revision: 3)])))
        _ = try await cache.value(list)
        #expect(try await cache.snapshot(list, .cacheOnly).freshness == .fresh)
        await cache.noteVersion(5, of: Note.self, "1")
        #expect(try await cache.snapshot(list, .cacheOnly).freshness == .stale(.invalidated))
        scene.clock.advance(by: .seconds(1))
        source.prepare(.value(EntityList([Note(id: "1", text: "b", revision: 5)])))
        #expect(try await cache.snapshot(list, .cacheFirst).freshness == .fresh)
    }

    @Test func `a value without a version is stale until it was asked for after a version was noted`() async throws {
        let cache = try scene.cache()
        let note = Resource<Note>.entity("1", freshness: .timeToLive(.seconds(60))) { _ in
            .value(Note(id: "1", text: "a"))
        }
        let list = Resource<EntityList<Note>>.list("notes", freshness: .timeToLive(.seconds(60))) { _ in
            .value(EntityList([Note(id: "1", text: "a")]))
        }
        _ = try await cache.value(note)
        _ = try await cache.value(list)
        await cache.noteVersion(5, of: Note.self, "1")
        #expect(try await cache.snapshot(note, .cacheOnly).freshness == .stale(.olderVersion))
        #expect(try await cache.snapshot(list, .cacheOnly).freshness == .stale(.invalidated))
        _ = try await cache.refresh(list)
        #expect(try await cache.snapshot(note, .cacheOnly).freshness == .fresh)
        #expect(try await cache.snapshot(list, .cacheOnly).freshness == .fresh)
    }

    @Test func `values that a source answers with an older version than is known are asked for once each`() async throws
    {
        let cache = try scene.cache()
        let clock = scene.clock
        let requests = Atomic<Int>(0)
        let old = Note(id: "1", text: "a", revision: 3)
        @Sendable func ask() throws {
            clock.advance(by: .milliseconds(10))
            // More would be a loop.
            guard requests.wrappingAdd(1, ordering: .relaxed).newValue <= 20 else { throw Broken() }
        }
        let note = Resource<Note>.entity("1", freshness: .timeToLive(.seconds(60))) { _ in
            try ask()
            return .value(old)
        }
        let lists = ["notes", "others"].map { name in
            Resource<EntityList<Note>>.list(name, freshness: .timeToLive(.seconds(60))) { _ in
                try ask()
                return .value(EntityList([old]))
            }
        }
        var observers = lists.map { list in Task { for await _ in cache.snapshots(list) {} } }
        observers.append(Task { for await _ in cache.snapshots(note) {} })
        await rest()
        #expect(requests.load(ordering: .relaxed) == 3)
        await cache.noteVersion(5, of: Note.self, "1")
        await rest()
        #expect(requests.load(ordering: .relaxed) == 6)
        for observer in observers { observer.cancel() }
    }

    @Test func `a newer version is remembered, or the stored value is stale`() async throws {
        let cache = try scene.cache(inMemory: true)
        let source = ScriptedSource<Note>()
        let note = Resource<Note>.entity("1", freshness: .rule(Freshness.Rule(.version))) { try await source.fetch($0) }
        source.prepare(.value(Note(id: "1", text: "a", revision: 3)))
        _ = try await cache.value(note)
        await cache.noteVersion(5, of: Note.self, "1")
        for number in 0..<20_000 { await cache.noteVersion(1, of: Note.self, "other \(number)") }
        #expect(try await cache.snapshot(note, .cacheOnly).freshness == .stale(.invalidated))
        scene.clock.advance(by: .seconds(1))
        source.prepare(.value(Note(id: "1", text: "b", revision: 5)))
        #expect(try await cache.snapshot(note).freshness == .fresh)
    }

    @Test func `a changed value stays as stale as its tag says`() async throws {
        let cache = try scene.cache(inMemory: true)
        var note = Resource<Note>.entity("1", freshness: .reference) { _ in .value(Note(id: "1", text: "a")) }
        note.tags = ["mine"]
        _ = try await cache.value(note)
        try await cache.invalidate(tag: "mine")
        try await cache.update { $0.modify(Note.self, "1") { $0.text = "b" } }
        let shown = try await cache.snapshot(note, .cacheOnly)
        #expect(shown.value?.text == "b" && shown.freshness == .stale(.invalidated))
    }

    @Test func `tags with any characters are invalidated in the next process too, and no others`() async throws {
        let tags = ["a\nb", "a\r", "a\r\nb", "\u{301}x", "x\u{301}", " ", "", "%", "%0A", "\n", "9 a", "\u{0}", "🧺"]
        let others = ["a", "b", "\r", "0A", "x"]
        func resources() -> [Resource<String>] {
            (tags + others).enumerated().map { index, tag in
                var resource = Resource<String>("word", ["n": "\(index)"], freshness: .reference) { _ in .value("v") }
                resource.tags = [tag]
                return resource
            }
        }
        let cache = try scene.cache()
        for resource in resources() { _ = try await cache.value(resource) }
        scene.clock.advance(by: .seconds(1))
        for tag in tags { try await cache.invalidate(tag: tag) }
        let again = try scene.cache()
        for (tag, resource) in zip(tags + others, resources()) {
            for cache in [cache, again] {
                let freshness = try await cache.snapshot(resource, .cacheOnly).freshness
                #expect(freshness == (tags.contains(tag) ? .stale(.invalidated) : .fresh), "\(Array(tag.utf8))")
            }
        }
    }

    @Test func `an invalidated value stays stale after more invalidations than are kept by name`() async throws {
        let cache = try scene.cache(inMemory: true)
        var early = Resource<String>("early", freshness: .reference) { _ in .value("v") }
        early.tags = ["early"]
        var late = Resource<String>("late", freshness: .reference) { _ in .value("v") }
        late.tags = ["late"]
        _ = try await cache.value(early)
        for number in 0..<1_100 {
            scene.clock.advance(by: .milliseconds(1))
            try await cache.invalidate(tag: number == 0 ? "early" : "other \(number)")
        }
        _ = try await cache.value(late)
        #expect(try await cache.snapshot(early, .cacheOnly).freshness == .stale(.invalidated))
        #expect(try await cache.snapshot(late, .cacheOnly).freshness == .fresh)
    }

    @Test func `a tag never equals an entity type`() async throws {
        let cache = try scene.cache()
        let note = Resource<Note>.entity("1") { _ in .value(Note(id: "1", text: "a", revision: 1)) }
        _ = try await cache.value(note)
        for tag in ["=type note", "note", "type note"] { try await cache.invalidate(tag: tag) }
        #expect(try await cache.snapshot(note, .cacheOnly).freshness == .fresh)
        try await cache.update { $0.invalidate(all: Note.self) }
        #expect(try await cache.snapshot(note, .cacheOnly).freshness == .stale(.invalidated))
    }

    @Test func `the spread of bounded refreshes is drawn once for each observer`() async throws {
        let draws = Draws()
        var configuration = scene.configuration(inMemory: true)
        configuration.random = { draws.next() }
        let cache = try LarderCache(configuration)
        let source = ScriptedSource<String>()
        source.prepare(.value("a"))
        let rule = Freshness.Rule(.timeToLive(.seconds(60)), level: .boundedStaleness(.seconds(30)))
        _ = try await cache.value(word(source, rule))
        let seen = SequenceRecorder(cache.snapshots(word(source, rule)))
        await seen.wait(for: 1)
        // Each of these changes shows the value again.
        for _ in 0..<10 { cache.noteCaughtUp("changes", followedSince: nil) }
        #expect(draws.count == 1)
    }

    private final class Draws: Sendable {
        private let state = Mutex(0)

        var count: Int { state.withLock { $0 } }

        /// First a large number, then small ones.
        func next() -> Double {
            state.withLock { count in
                count += 1
                return count == 1 ? 0.9 : 0
            }
        }
    }

    @Test func `a change feed that has caught up keeps values fresh that were fetched since it began`()
        async throws
    {
        let cache = try scene.cache()
        let source = ScriptedSource<String>()
        let rule = Freshness.Rule(.any([.timeToLive(.seconds(60)), .feed("changes", within: .seconds(30))]))
        let resource = word(source, rule)
        source.prepare(.value("a"))
        let since = scene.clock.now
        _ = try await cache.value(resource)
        scene.clock.advance(by: .seconds(100))
        #expect(try await stored(cache, resource) == .stale(.expired))
        cache.noteCaughtUp("changes", followedSince: since)
        #expect(try await stored(cache, resource) == .fresh)
        scene.clock.advance(by: .seconds(30))
        #expect(try await stored(cache, resource) == .stale(.expired))
        // A feed that began later does not cover the value.
        cache.noteCaughtUp("changes", followedSince: scene.clock.now)
        #expect(try await stored(cache, resource) == .stale(.expired))
    }

    @Test func `without a criterion nothing is fresh`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<String>()
        let resource = word(source, Freshness.Rule(.any([])))
        source.prepare(.value("a"))
        _ = try await cache.value(resource)
        #expect(try await stored(cache, resource) == .stale(.expired))
    }

    @Test func `a fresh but incomplete value is fetched`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<Note>()
        let note = Resource<Note>.entity("1") { try await source.fetch($0) }
        try await cache.update { $0.put(Note(id: "1", text: "headline", revision: 1), completeness: .partial) }
        #expect(try await cache.snapshot(note, .cacheOnly).freshness == .stale(.partial))
        source.prepare(.value(Note(id: "1", text: "headline and body", revision: 1)))
        let whole = try await cache.snapshot(note)
        #expect(
            whole.value?.text == "headline and body" && whole.freshness == .fresh && whole.completeness == .complete
        )
        #expect(source.requests[0].validator == nil)
        // A partial entity of the same version does not replace the complete one.
        try await cache.update { $0.put(Note(id: "1", text: "headline", revision: 1), completeness: .partial) }
        #expect(try await cache.value(note, .cacheOnly).text == "headline and body")
    }

    @Test func `a gate returns a confirmed value, confirms it, or fails with a remedy`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<String>()
        let resource = word(source)
        source.prepare(.value("a", validator: "1"))
        _ = try await cache.value(resource)
        scene.clock.advance(by: .seconds(20))
        #expect(try await cache.requireValidated(resource, within: .seconds(20)).value == "a")
        #expect(source.requests.count == 1)
        source.prepare(.notModified())
        let confirmed = try await cache.requireValidated(resource, within: .seconds(19))
        #expect(confirmed.validatedAt == scene.clock.now && source.requests.count == 2)
        scene.clock.advance(by: .seconds(180))
        scene.isOnline.withLock { $0 = false }
        do {
            _ = try await cache.requireValidated(resource, within: .seconds(30))
            Issue.record("the gate let it pass")
        } catch {
            #expect(error.code == .notValidated)
            #expect(error.description.contains("3 min ago") && error.description.contains("30 s"))
        }
    }

    @Test func `a gate does not join a request that is too old for it`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<String>()
        let resource = word(source)
        let reader = Task { try await cache.value(resource) }
        await source.waitForRequests(1)
        scene.clock.advance(by: .seconds(10))
        let lenient = Task { try await cache.requireValidated(resource, within: .seconds(10)) }
        let strict = Task { try await cache.requireValidated(resource, within: .seconds(5)) }
        await source.waitForRequests(2)
        #expect(source.requests.count == 2)
        source.answer(1, .value("b"))
        #expect(try await strict.value.value == "b")
        source.answer(0, .value("a"))
        _ = try await reader.value
        _ = try await lenient.value
    }

    @Test func `a gate does not return what was invalidated since its request began`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<String>()
        let resource = word(source)
        let gate = Task { try await cache.requireValidated(resource, within: .seconds(30)).value }
        await source.waitForRequests(1)
        try await cache.invalidate(resource)
        source.prepare(.value("new"))
        source.answer(0, .value("old"))
        #expect(try await gate.value == "new")
        #expect(source.requests.count == 2)
    }

    @Test func `a read of what must be validated does not return what was invalidated during its request`() async throws
    {
        let cache = try scene.cache()
        let source = ScriptedSource<String>()
        let resource = Resource<String>("balance", freshness: .critical) { try await source.fetch($0) }
        let read = Task { try await cache.value(resource) }
        await source.waitForRequests(1)
        try await cache.update { $0.invalidate(resource.key) }
        source.answer(0, .value("old"))
        await source.waitForRequests(2)
        source.answer(1, .value("new"))
        #expect(try await read.value == "new")
    }

    @Test func `a gate does not return a value that an older answer has not confirmed`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<Note>()
        let note = Resource<Note>.entity("1") { try await source.fetch($0) }
        try await cache.update { $0.put(Note(id: "1", text: "new", revision: 2)) }
        scene.clock.advance(by: .seconds(60))
        let old = Fetched.value(Note(id: "1", text: "old", revision: 1))
        source.prepare(old, old)
        let error = await #expect(throws: LarderError.self) {
            try await cache.requireValidated(note, within: .seconds(30))
        }
        #expect(error?.code == .notValidated && source.requests.count == 2)
    }
}
