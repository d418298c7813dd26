import LarderStorage
import LarderTesting
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import LarderResources

/// A disk that fails: what changes is in memory only until the disk takes it again, and replaces there what the disk had before.
@Suite("Cache: a disk that fails", .oneMinute)
struct DiskFailureTests {
    private let scene = CacheScene()
    private let killable: KillableStore
    private let note = Resource<Note>.entity("1") { _ in .gone }
    private let notes = Resource<EntityList<Note>>.list("notes", of: Note.self) { _ in .gone }

    /// Encodes no payload that contains a text, as a key that is not available for a while does.
    private final class Lock: DiskStore.PayloadTransform {
        let refused = Mutex<String?>(nil)
        var identifier: String { "lock" }

        func encode(_ payload: [UInt8]) throws -> [UInt8] {
            let text = String(decoding: payload, as: UTF8.self)
            if let refused = refused.withLock({ $0 }), text.contains(refused) { throw Broken() }
            return payload
        }

        func decode(_ stored: [UInt8]) throws -> [UInt8] { stored }
    }

    private let lock = Lock()
    private let disk: DiskStore.Configuration

    init() {
        var configuration = DiskStore.Configuration(directory: scene.path, clock: scene.clock)
        configuration.bytesMaximum = 4 << 20
        configuration.transform = lock
        disk = configuration
        killable = KillableStore(configuration)
    }

    /// A cache with a store of its own on the directory.
    private func anotherProcess() throws -> LarderCache {
        var configuration = scene.configuration()
        configuration.storage = .disk(disk)
        return try LarderCache(configuration)
    }

    private func open() throws -> LarderCache {
        var configuration = scene.configuration()
        configuration.storage = .store(try killable.store())
        return try LarderCache(configuration)
    }

    /// Changes the cache while the disk fails.
    private func whileFailing(_ cache: LarderCache, _ body: (inout CacheUpdate) -> Void) async {
        killable.fail(.full, untilHealed: true)
        await cache.updateIfPossible(body)
    }

    /// Heals the disk, commits a change token, and opens the store as a new process.
    private func restart(_ cache: LarderCache) async throws -> LarderCache {
        killable.heal()
        try await cache.update { $0.setToken("t2", for: "feed") }
        cache.close()
        killable.abandon()
        return try open()
    }

    private func list(_ ids: [String], _ update: inout CacheUpdate) {
        let keys = ids.map { EntityKey(type: "note", id: $0) }
        update.edit(notes.key) { $0 = keys }
        for id in ids { update.put(Note(id: id, text: id, revision: 1)) }
    }

    private func shown(_ cache: LarderCache) -> [String]? { cache.stored(notes)?.value?.items.map(\.text) }

    /// A cache with the note in its first version and a list of it.
    private func filled() async throws -> LarderCache {
        let cache = try open()
        let note = Note(id: "1", text: "1", revision: 1)
        try await cache.put(EntityList([note]), for: notes)
        return cache
    }

    @Test func `a version that memory has evicted is not followed by the older one of the disk`() async throws {
        let cache = try await filled()
        await whileFailing(cache) { $0.put(Note(id: "1", text: "new", revision: 2)) }
        #expect(cache.stored(note)?.version == 2)
        cache.trimMemory(toBytes: 0)
        #expect(cache.stored(note) == nil)
        #expect(shown(cache) != ["1"])
        let next = try await restart(cache)
        #expect(next.stored(note) == nil)
    }

    @Test func `what changes while the disk fails is shown, also after the disk works again`() async throws {
        let cache = try await filled()
        await whileFailing(cache) { update in
            list(["1", "2", "3"], &update)
            update.modify(Note.self, "3") { $0.text = "three" }
        }
        #expect(!cache.isDiskTierOn)
        await whileFailing(cache) { $0.modify(Note.self, "2") { $0.text = "two" } }
        #expect(shown(cache) == ["1", "two", "three"])
        killable.heal()
        try await cache.update { $0.setToken("t2", for: "feed") }
        #expect(cache.isDiskTierOn && shown(cache) == ["1", "two", "three"])
        cache.close()
        killable.abandon()
        #expect(shown(try open()) == ["1", "two", "three"])
    }

    @Test func `an equal value and a list that is confirmed get rows again after the disk has failed`() async throws {
        let cache = try open()
        let source = ScriptedSource<EntityList<Note>>()
        let notes = Resource<EntityList<Note>>.list("notes", of: Note.self) { try await source.fetch($0) }
        source.prepare(.value(EntityList([Note(id: "1", text: "old", revision: 1)]), validator: "v1"))
        _ = try await cache.value(notes)
        killable.fail(.full, untilHealed: true)
        let value = EntityList([Note(id: "1", text: "a", revision: 2)])
        source.prepare(.value(value, validator: "v2"))
        #expect(try await cache.refresh(notes).value == value)
        killable.heal()
        source.prepare(.notModified())
        _ = try await cache.refresh(notes)
        #expect(source.requests.count == 3)
        #expect(try cache.disk?.statistics().items == 2)
        cache.close()
        killable.abandon()
        #expect(try await open().value(notes, .cacheOnly) == value)
    }

    @Test func `what the disk has is read while it takes no changes, and stays`() async throws {
        let cache = try await filled()
        cache.trimMemory(toBytes: 0)
        await whileFailing(cache) { $0.put(Note(id: "2", text: "2", revision: 1)) }
        #expect(shown(cache) == ["1"])
        await whileFailing(cache) { $0.modify(Note.self, "1") { $0.text = "one" } }
        #expect(shown(cache) == ["one"])
        let next = try await restart(cache)
        #expect(next.stored(note)?.value?.text == "one")
        #expect(try next.disk?.query(notes.key)?.ids.map(\.id) == ["1"])
    }

    @Test func `a commit that fails leaves hidden what the disk has missed`() async throws {
        let cache = try await filled()
        await whileFailing(cache) { $0.put(Note(id: "1", text: "new", revision: 2)) }
        cache.trimMemory(toBytes: 0)
        killable.fail(.full, untilHealed: true)
        await #expect(throws: LarderError.self) {
            try await cache.update { $0.put(Note(id: "1", text: "newer", revision: 3)) }
        }
        #expect(cache.stored(note) == nil)
        #expect(shown(cache) != ["1"])
    }

    @Test func `an invalidation does not show again what the disk has missed`() async throws {
        let cache = try await filled()
        await whileFailing(cache) { $0.put(Note(id: "1", text: "new", revision: 2)) }
        cache.trimMemory(toBytes: 0)
        await whileFailing(cache) { $0.invalidate(Note.self, "1") }
        #expect(cache.stored(note) == nil)
        // A query without an index reads all rows.
        #expect(try await cache.entities(Note.self).values().map(\.text) == [])
    }

    @Test func `a later row of another process outlives what the disk has missed`() async throws {
        let cache = try await filled()
        let other = try anotherProcess()
        await whileFailing(cache) { $0.put(Note(id: "1", text: "two", revision: 2)) }
        try await other.update { $0.put(Note(id: "1", text: "three", revision: 3)) }
        killable.heal()
        try await cache.update { $0.setToken("t2", for: "feed") }
        scene.clock.advance(by: .milliseconds(100))
        #expect(try await cache.snapshot(note, .cacheOnly).value?.text == "three")
        #expect(try await other.snapshot(note, .cacheOnly).value?.text == "three")
    }

    @Test(arguments: [false, true])
    func `what another process has invalidated stays invalid when the disk has caught up`(isEarlier: Bool) async throws
    {
        let cache = try await filled()
        let other = try anotherProcess()
        killable.fail(.full, untilHealed: true)
        if isEarlier { try await other.update { $0.invalidate(Note.self, "1") } }
        await cache.updateIfPossible { $0.put(Note(id: "1", text: "two", revision: 2)) }
        #expect(cache.stored(note)?.freshness == .fresh)
        if !isEarlier { try await other.update { $0.invalidate(Note.self, "1") } }
        killable.heal()
        try await cache.update { $0.setToken("t2", for: "feed") }
        scene.clock.advance(by: .milliseconds(100))
        let shown = try await cache.snapshot(note, .cacheOnly)
        #expect(shown.value?.text == "two" && shown.freshness == (isEarlier ? .fresh : .stale(.invalidated)))
    }

    @Test func `what this process has invalidated stays invalid over a row of another process`() async throws {
        let cache = try await filled()
        let other = try anotherProcess()
        await whileFailing(cache) { $0.put(Note(id: "1", text: "two", revision: 2)) }
        try await other.update { $0.put(Note(id: "1", text: "three", revision: 3)) }
        await cache.updateIfPossible { $0.invalidate(Note.self, "1") }
        killable.heal()
        try await cache.update { $0.setToken("t2", for: "feed") }
        scene.clock.advance(by: .milliseconds(100))
        let shown = try await cache.snapshot(note, .cacheOnly)
        #expect(shown.value?.text == "three" && shown.freshness == .stale(.invalidated))
    }

    @Test func `what this process has invalidated stays invalid under the higher version of an earlier request`()
        async throws
    {
        let cache = try await filled()
        let other = try anotherProcess()
        let early = other.core.stamps.next()
        await whileFailing(cache) { $0.put(Note(id: "1", text: "two", revision: 2)) }
        await cache.updateIfPossible { $0.invalidate(Note.self, "1") }
        var late = CacheUpdate()
        late.put(Note(id: "1", text: "three", revision: 3))
        try other.core.commit(late, askedAt: early)
        killable.heal()
        try await cache.update { $0.setToken("t2", for: "feed") }
        scene.clock.advance(by: .milliseconds(100))
        let shown = try await cache.snapshot(note, .cacheOnly)
        #expect(shown.value?.text == "three" && shown.freshness == .stale(.invalidated))
    }

    @Test func `a value whose row has left memory while the disk fails is on the disk again after its next change`()
        async throws
    {
        let cache = try await filled()
        await whileFailing(cache) { $0.put(Note(id: "1", text: "two", revision: 2)) }
        try cache.core.memoryRows.trim(toCost: 0)
        await cache.updateIfPossible { $0.modify(Note.self, "1") { $0.text = "changed" } }
        #expect(try await restart(cache).stored(note)?.value?.text == "changed")
    }

    @Test func `a disk that heals while its tier is off takes no content`() async throws {
        let cache = try await filled()
        await whileFailing(cache) { $0.put(Note(id: "1", text: "two", revision: 2)) }
        // It is off, although the setting could not be stored.
        await #expect(throws: LarderError.self) { try await cache.setDiskTier(isOn: false) }
        killable.heal()
        try await cache.update { $0.put(Note(id: "2", text: "2", revision: 1)) }
        #expect(cache.stored(note)?.value?.text == "two")
        #expect(try cache.disk?.entity(EntityKey(type: "note", id: "1")) == nil)
    }

    @Test func `keys that the disk does not have hide nothing while it fails`() async throws {
        let cache = try await filled()
        await whileFailing(cache) { update in
            for number in 0..<20_000 { update.invalidate(Note.self, "unknown \(number)") }
        }
        #expect(shown(cache) == ["1"])
        #expect(shown(try await restart(cache)) == ["1"])
    }

    @Test func `a change that is not tolerant changes nothing while the disk fails`() async throws {
        let cache = try await filled()
        killable.fail(.full, untilHealed: true)
        for _ in 0..<2 {
            await #expect(throws: LarderError.self) {
                try await cache.update { $0.put(Note(id: "1", text: "new", revision: 2)) }
            }
        }
        #expect(shown(cache) == ["1"] && cache.isDiskTierOn)
        killable.heal()
        try await cache.update { $0.setToken("t2", for: "feed") }
        #expect(try cache.disk?.statistics().items == 2)
    }

    @Test func `a list that memory has evicted is not followed by the older one of the disk`() async throws {
        let cache = try await filled()
        await whileFailing(cache) { list(["1", "2"], &$0) }
        cache.trimMemory(toBytes: 0)
        #expect(shown(cache) == nil)
        #expect(shown(try await restart(cache)) == nil)
    }

    @Test func `what is removed or invalidated while the disk fails is not shown after a restart`() async throws {
        let cache = try await filled()
        try await cache.update { $0.put(Note(id: "2", text: "2", revision: 1)) }
        await whileFailing(cache) { update in
            update.remove(Note.self, "1")
            update.invalidate(Note.self, "2")
            update.invalidate(tag: "old")
        }
        #expect(cache.stored(note) == nil)
        let next = try await restart(cache)
        #expect(next.stored(note) == nil)
        #expect(next.stored(Resource<Note>.entity("2") { _ in .gone })?.freshness != .fresh)
        #expect(next.core.invalidations.hasMarks)
    }

    @Test func `a move between declared lists while the disk fails is shown`() async throws {
        let board = JobBoard()
        for rank in 1...3 { board.set(status: 0, rank: rank * 10) }
        let cache = try open()
        for status in 0...1 { _ = try await cache.value(board.resource(status)) }
        let job = board.set("j2", status: 1)
        await whileFailing(cache) { $0.put(job) }
        func shown(_ cache: LarderCache, _ status: Int) -> [String]? {
            cache.stored(board.resource(status))?.value?.items.map(\.id)
        }
        #expect(shown(cache, 0) == ["j1", "j3"] && shown(cache, 1) == ["j2"])
        killable.heal()
        // Each list is written, with the change that was made before.
        for status in 0...1 { _ = try await cache.refresh(board.resource(status)) }
        let next = try await restart(cache)
        #expect(shown(next, 0) == ["j1", "j3"] && shown(next, 1) == ["j2"])
    }

    @Test(arguments: [false, true])
    func `a value that does not fit into the store blocks no later commit`(_ isList: Bool) async throws {
        let cache = try await filled()
        let text = String(repeating: "x", count: 6 << 20)
        let keys = (0..<100_000).map { EntityKey(type: "note", id: "\($0)") }
        await cache.updateIfPossible { update in
            if isList {
                update.edit(notes.key) { $0 = keys }
            } else {
                update.put(Note(id: "1", text: text, revision: 2))
            }
        }
        #expect(cache.isDiskTierOn)
        try await cache.update { $0.put(Note(id: "2", text: "two", revision: 1)) }
        if !isList { #expect(cache.stored(note)?.value?.text == text) }
        let next = try await restart(cache)
        #expect(next.stored(Resource<Note>.entity("2") { _ in .gone })?.value?.text == "two")
        #expect(isList ? shown(next) == nil : next.stored(note) == nil)
    }

    @Test func `a value that does not fit into the store is replaced by what another process stores`() async throws {
        let cache = try await filled()
        let other = try anotherProcess()
        let large = String(repeating: "x", count: 6 << 20)
        await cache.updateIfPossible { $0.put(Note(id: "1", text: large, revision: 2)) }
        #expect(cache.stored(note)?.version == 2)
        try await other.update { $0.put(Note(id: "1", text: "three", revision: 3)) }
        scene.clock.advance(by: .milliseconds(100))
        #expect(try await cache.snapshot(note, .cacheOnly).value?.text == "three")
    }

    @Test func `values that a transform cannot encode for a while are written when they change`() async throws {
        let cache = try await filled()
        lock.refused.withLock { $0 = "id" }
        await cache.updateIfPossible { update in
            update.put(Note(id: "1", text: "new", revision: 2))
            list(["1", "2"], &update)
        }
        #expect(cache.isDiskTierOn && shown(cache) == ["new", "2"])
        lock.refused.withLock { $0 = nil }
        try await cache.update { update in
            update.put(Note(id: "1", text: "newer", revision: 3))
            update.put(Note(id: "2", text: "two", revision: 2))
        }
        #expect(shown(try await restart(cache)) == ["newer", "two"])
    }

    @Test func `a value that no store can take is found by local queries`() async throws {
        let cache = try await filled()
        lock.refused.withLock { $0 = "new" }
        await cache.updateIfPossible { $0.put(Note(id: "1", text: "new", revision: 2)) }
        #expect(cache.isDiskTierOn)
        #expect(try await cache.entities(Note.self).values().map(\.text) == ["new"])
    }

    @Test func `values that a transform cannot encode are not followed by older ones after a restart`() async throws {
        let cache = try await filled()
        lock.refused.withLock { $0 = "id" }
        await cache.updateIfPossible { update in
            update.put(Note(id: "1", text: "new", revision: 2))
            list(["1", "2"], &update)
        }
        let next = try await restart(cache)
        #expect(next.stored(note)?.value == nil)
        // The list itself is on the disk. Its items are not.
        #expect(shown(next)?.isEmpty ?? true)
    }

    @Test func `a value that replaces one that a transform cannot encode stays on the disk`() async throws {
        let cache = try await filled()
        lock.refused.withLock { $0 = "new" }
        await cache.updateIfPossible { $0.put(Note(id: "1", text: "new", revision: 2)) }
        try await cache.update { $0.put(Note(id: "1", text: "later", revision: 3)) }
        try await cache.update { $0.put(Note(id: "2", text: "two", revision: 1)) }
        #expect(try await restart(cache).stored(note)?.value?.text == "later")
    }

    @Test func `a value that a transform cannot encode removes nothing that another process stores later`() async throws
    {
        let cache = try await filled()
        let other = try anotherProcess()
        lock.refused.withLock { $0 = "new" }
        await cache.updateIfPossible { $0.put(Note(id: "1", text: "new", revision: 2)) }
        try await cache.update { $0.put(Note(id: "2", text: "two", revision: 1)) }
        try await other.update { $0.put(Note(id: "1", text: "three", revision: 3)) }
        try await cache.update { $0.put(Note(id: "2", text: "two again", revision: 2)) }
        scene.clock.advance(by: .milliseconds(100))
        #expect(try await other.snapshot(note, .cacheOnly).value?.text == "three")
    }

    @Test func `a value that cannot be encoded is not followed by the older one of the disk`() async throws {
        let cache = try open()
        let entry = Resource<Measured>.entity("m") { _ in .gone }
        try await cache.update { $0.put(Measured(id: "m", number: 1)) }
        await cache.updateIfPossible { $0.put(Measured(id: "m", number: .nan)) }
        #expect(cache.stored(entry)?.value?.number.isNaN ?? false)
        cache.trimMemory(toBytes: 0)
        #expect(cache.stored(entry) == nil)
    }

    @Test(arguments: [false, true])
    func `what an operation has changed at the server is stale at once although the disk takes nothing`(
        _ isAwaited: Bool
    ) async throws {
        let cache = try await filled()
        let (through, behind) = (payment, report)
        cache.outbox.register(through)
        cache.outbox.register(behind)
        cache.outbox.resume()
        #expect(cache.stored(note)?.freshness == .fresh)
        let seen = SequenceRecorder(cache.snapshots(note, .cacheOnly))
        if isAwaited { #expect(try await cache.commit("1", through) == 2) } else { try cache.enqueue("1", behind) }
        await seen.wait { $0.last?.freshness == .stale(.invalidated) }
        killable.heal()
        cache.networkReturned()
        try await cache.outbox.drained()
        #expect(cache.stored(note)?.value?.text == "paid" && cache.stored(note)?.version == 2)
    }

    private var payment: WriteThrough<String, Int> {
        var operation = WriteThrough<String, Int>("pay", scope: { $0 }) { [killable] attempt in
            if attempt.number == 1 { killable.fail(.full, untilHealed: true) }
            return .accepted(2)
        }
        operation.acknowledge = { id, _, update in update.put(Note(id: id, text: "paid", revision: 2)) }
        return operation
    }

    private var report: WriteBehind<String, Int> {
        var operation = WriteBehind<String, Int>("report", scope: { $0 }, changes: { _, _ in }) {
            [killable] attempts in
            if attempts.contains(where: { $0.number == 1 }) { killable.fail(.full, untilHealed: true) }
            return attempts.map { _ in .accepted(2) }
        }
        operation.acknowledge = { id, _, update in update.put(Note(id: id, text: "paid", revision: 2)) }
        return operation
    }
}

/// Not a number cannot be encoded.
private struct Measured: CacheEntity {
    static let entityType = "measured"
    var id: String
    var number: Double
    var entityVersion: Int64? { nil }
}
