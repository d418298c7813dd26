import Foundation
import LarderStorage
import LarderTesting
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import LarderResources

@Suite("Stamps", .oneMinute)
struct StampTests {
    private let scene = CacheScene()

    /// A source whose time is set by the test.
    private final class Boot: Sendable {
        let time = Mutex<Int64>(0)
        let id: String

        init(_ id: String) { self.id = id }

        func source() -> StampSource { StampSource(bootID: id) { [self] in time.withLock { $0 } } }
    }

    private func configuration(_ source: StampSource) -> CacheConfiguration {
        var configuration = scene.configuration()
        configuration.stamps = source
        return configuration
    }

    @Test(arguments: 1...8 as ClosedRange<UInt64>)
    func `stamps of a process grow, whatever the clock says`(_ seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let boot = Boot("a")
        let clock = StampClock(boot.source(), boot: 3)
        var last = Stamp.never
        for step in 0..<1_000 {
            boot.time.withLock { $0 += Int64(generator.uniform(in: 0..<4)) - 1 }
            let next = clock.next()
            #expect(next > last && next.boot == 3, "seed \(seed), step \(step)")
            last = next
        }
    }

    @Test func `no stamp is taken twice by tasks at once`() async {
        let clock = StampClock(.system, boot: 1)
        let stamps = await withTaskGroup(of: [Stamp].self) { group in
            for _ in 0..<8 { group.addTask { (0..<1_000).map { _ in clock.next() } } }
            return await group.reduce(into: []) { $0 += $1 }
        }
        #expect(Set(stamps).count == stamps.count)
    }

    @Test func `two processes with one clock agree about what began first, and a boot is later than those before it`() {
        let boot = Boot("a")
        let (one, two) = (StampClock(boot.source(), boot: 1), StampClock(boot.source(), boot: 1))
        var last = Stamp.never
        for step in 0..<100 {
            boot.time.withLock { $0 += 1_000 }
            let next = (step.isMultiple(of: 3) ? one : two).next()
            #expect(next > last)
            last = next
        }
        #expect(StampClock(Boot("b").source(), boot: 2).next() > last)
    }

    @Test func `a store counts the boots in which it is used, and writes once for each`() throws {
        let first = Boot("first")
        first.time.withLock { $0 = 5_000_000 }
        let one = try LarderCache(configuration(first.source()))
        let stamp = one.core.stamps.next()
        let outbox = try #require(one.core.outboxDisk)
        let before = try outbox.rowChanges()
        let two = try LarderCache(configuration(first.source()))
        for _ in 0..<100 { _ = two.core.stamps.next() }
        #expect(try outbox.rowChanges() == before)
        #expect(two.core.stamps.next().boot == stamp.boot)
        one.close()
        two.close()
        let later = try LarderCache(configuration(Boot("second").source()))
        #expect(later.core.stamps.next() > stamp)
        #expect(later.core.stamps.next().boot == stamp.boot + 1)
    }

    @Test func `a store that has lost the number of the boot takes one behind its items`() async throws {
        let boot = Boot("first")
        do {
            let cache = try LarderCache(configuration(boot.source()))
            try await cache.update { $0.put(Note(id: "1", text: "a")) }
        }
        let again = try LarderCache(configuration(Boot("second").source()))
        try await again.update { $0.put(Note(id: "1", text: "b")) }
        try #require(again.core.outboxDisk).write { try $0.setMetadata(nil, for: "larder.boot") }
        let stamp = again.core.stamps.next()
        again.close()
        let last = try LarderCache(configuration(Boot("third").source()))
        #expect(last.core.stamps.next() > stamp)
    }

    /// A transform whose key is away.
    private struct Locked: DiskStore.PayloadTransform {
        struct NoKey: Error {}

        let hasKey: Bool
        var identifier: String { "locked" }

        func encode(_ payload: [UInt8]) throws -> [UInt8] {
            guard hasKey else { throw NoKey() }
            return payload
        }

        func decode(_ stored: [UInt8]) throws -> [UInt8] {
            guard hasKey else { throw NoKey() }
            return stored
        }
    }

    @Test func `a store whose key is away at a start continues the boots`() throws {
        func next(_ boot: String, hasKey: Bool) throws -> Int64 {
            var configuration = configuration(Boot(boot).source())
            configuration.editStore { $0.transform = Locked(hasKey: hasKey) }
            let cache = try LarderCache(configuration)
            defer { cache.close() }
            return cache.core.stamps.next().boot
        }
        #expect(try next("a", hasKey: true) == 1)
        #expect(try next("b", hasKey: true) == 2)
        #expect(try next("b", hasKey: false) == 2)
        #expect(try next("c", hasKey: false) == 3)
        #expect(try next("c", hasKey: true) == 3)
    }

    @Test func `a process that goes on while the content is removed agrees with later ones about what was invalidated`()
        async throws
    {
        let kept = StoreDirectory()
        func open(_ boot: Boot) throws -> LarderCache {
            var configuration = configuration(boot.source())
            configuration.editStore { settings in
                settings.outboxDirectory = kept.path + "/outbox"
                settings.restartsWhileExists = kept.path + "/outbox/store.lock"
            }
            return try LarderCache(configuration)
        }
        try open(Boot("first")).close()
        let boot = Boot("second")
        let one = try open(boot)
        try FileManager.default.removeItem(atPath: scene.path)
        let two = try open(boot)
        #expect(one.core.stamps.next().boot == 2 && two.core.stamps.next().boot == 2)
        try await one.update { $0.put(Note(id: "1", text: "a"), lifetime: .seconds(60)) }
        boot.time.withLock { $0 += 1_000 }
        try await two.update { $0.invalidate(Note.self, "1") }
        let note = Resource<Note>.entity("1", freshness: .timeToLive(.seconds(60))) { _ in .gone }
        #expect(two.stored(note)?.freshness == .stale(.invalidated))
    }

    @Test func `the largest stamps of a machine stay in order, and the boots begin again only without items`()
        async throws
    {
        #expect(Stamp(boot: 1, time: 1 << 47) < Stamp(boot: 2, time: 0))
        #expect(Stamp(boot: Stamp.bootMaximum, time: 1 << 47) > Stamp(boot: 1, time: 0))
        let cache = try LarderCache(configuration(Boot("a").source()))
        try await cache.update { $0.put(Note(id: "1", text: "a")) }
        let largest = Array("\(Stamp.bootMaximum) b".utf8)
        try #require(cache.core.outboxDisk).write { try $0.setPlainMetadata(largest, for: "larder.boot") }
        cache.close()
        let again = try LarderCache(configuration(Boot("c").source()))
        #expect(again.core.stamps.next().boot == 1)
        #expect(try again.heldVersions(ofType: "note").isEmpty)
    }

    // MARK: Two processes

    private func list(_ source: ScriptedSource<EntityList<Note>>) -> Resource<EntityList<Note>> {
        .list("notes", freshness: .timeToLive(.seconds(60))) { try await source.fetch($0) }
    }

    @Test(arguments: [false, true])
    func `the reply to an earlier request does not undo what another process has edited since`(_ isRemoval: Bool)
        async throws
    {
        let caches = (try scene.cache(), try scene.cache())
        let source = ScriptedSource<EntityList<Note>>()
        let list = list(source)
        let notes = EntityList((1...3).map { Note(id: "\($0)", text: "a") })
        source.prepare(.value(notes))
        _ = try await caches.0.value(list)
        let reading = Task { [caches] in try await caches.0.refresh(list) }
        await source.waitForRequests(2)
        try await caches.1.update { update in
            update.put(Note(id: "4", text: "new"))
            update.edit(list.key) { keys in
                if isRemoval { keys.removeAll { $0.id == "2" } } else { keys.insert(Note.key("4"), at: 1) }
            }
        }
        source.answer(1, .value(notes, validator: "v"))
        let expected = isRemoval ? ["1", "3"] : ["1", "4", "2", "3"]
        #expect(try await reading.value.value?.items.map(\.id) == expected)
        #expect(try scene.cache().stored(list)?.value?.items.map(\.id) == expected)
        // The validator stands for other keys, and the next reply contains the edit or does not.
        source.prepare(.value(notes))
        #expect(try await caches.0.refresh(list).value?.items.map(\.id) == ["1", "2", "3"])
        #expect(source.requests.last?.validator == nil)
    }

    @Test
    func `an item that was inserted behind one that is deleted since keeps its place in a reply to an earlier request`()
        async throws
    {
        let cache = try scene.cache()
        let source = ScriptedSource<EntityList<Note>>()
        let list = list(source)
        let notes = EntityList((1...3).map { Note(id: "\($0)", text: "a", revision: 1) })
        source.prepare(.value(notes))
        _ = try await cache.value(list)
        let reading = Task { try await cache.refresh(list) }
        await source.waitForRequests(2)
        try await cache.update { update in
            update.put(Note(id: "4", text: "new"))
            update.edit(list.key) { $0.insert(Note.key("4"), at: 2) }
        }
        try await cache.update { $0.remove(Note.self, "2", deletedInVersion: 2) }
        source.answer(1, .value(notes))
        #expect(try await reading.value.value?.items.map(\.id) == ["1", "4", "3"])
    }

    @Test
    func `a reply does not end a second invalidation by another process of what was invalid when it was asked for`()
        async throws
    {
        let caches = (try scene.cache(), try scene.cache())
        let source = ScriptedSource<EntityList<Note>>()
        let list = list(source)
        let notes = EntityList([Note(id: "1", text: "a")])
        source.prepare(.value(notes))
        _ = try await caches.0.value(list)
        try await caches.0.update { $0.invalidate(list.key) }
        let reading = Task { [caches] in try await caches.0.refresh(list) }
        await source.waitForRequests(2)
        try await caches.1.update { $0.invalidate(list.key) }
        source.answer(1, .value(notes))
        #expect(try await reading.value.freshness == .stale(.invalidated))
        #expect(try scene.cache().stored(list)?.freshness == .stale(.invalidated))
    }

    @Test func `a list without a deleted item is not confirmed by its old validator`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<EntityList<Note>>()
        let list = list(source)
        let notes = EntityList((1...3).map { Note(id: "\($0)", text: "a") })
        source.prepare(.value(notes, validator: "v"), .value(notes, validator: "v"))
        _ = try await cache.value(list)
        try await cache.update { $0.remove(Note.self, "2") }
        // It is there again.
        #expect(try await cache.refresh(list).value?.items.map(\.id) == ["1", "2", "3"])
        #expect(source.requests.last?.validator == nil)
    }

    @Test func `an edit of a list that is not stored makes the reply to an earlier request stale`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<EntityList<Note>>()
        let list = list(source)
        let reading = Task { try await cache.snapshot(list) }
        await source.waitForRequests(1)
        try await cache.update { $0.edit(list.key) { $0.append(Note.key("2")) } }
        source.answer(0, .value(EntityList([Note(id: "1", text: "a")])))
        #expect(try await reading.value.freshness == .stale(.invalidated))
    }

    @Test func `a change of a value does not end its invalidation`() async throws {
        let cache = try scene.cache()
        let note = Resource<Note>.entity("1", freshness: .timeToLive(.seconds(60))) { _ in
            .value(Note(id: "1", text: "a"))
        }
        for invalidate in [{ $0.invalidate(Note.self, "1") }, { $0.invalidate(all: Note.self) }]
            as [@Sendable (inout CacheUpdate) -> Void]
        {
            #expect(try await cache.refresh(note).freshness == .fresh)
            try await cache.update(invalidate)
            try await cache.update { $0.modify(Note.self, "1") { $0.text = "b" } }
            #expect(cache.stored(note)?.freshness == .stale(.invalidated))
        }
    }

    @Test(arguments: [false, true])
    func `a reply with a newer version than an event during its request counts, also if memory has evicted the value`(
        _ isInMemory: Bool
    ) async throws {
        let cache = try scene.cache(inMemory: isInMemory)
        let source = ScriptedSource<EntityList<Note>>()
        let list = list(source)
        try await cache.update { $0.put(Note(id: "1", text: "a", revision: 1)) }
        let reading = Task { try await cache.refresh(list) }
        await source.waitForRequests(1)
        try await cache.update { $0.put(Note(id: "1", text: "b", revision: 2)) }
        cache.trimMemory(toBytes: 0)
        source.answer(0, .value(EntityList([Note(id: "1", text: "c", revision: 3)])))
        #expect(try await reading.value.value?.items.map(\.text) == ["c"])
    }

    @Test func `many invalidations of another process apply to what began before them, and to nothing later`() {
        let (one, two) = (InvalidationTable(), InvalidationTable())
        for number in 0..<1_100 { one.mark(.tag("\(number)"), at: Stamp(rawValue: Int64(number + 1))) }
        two.merge(one.encoded, present: Stamp(rawValue: 2_000))
        for tag in ["0", "1099"] {
            #expect(two.latest([tag]) == one.latest([tag]))
            #expect(two.latest([tag]) <= Stamp(rawValue: 1_100))
        }
        #expect(two.latest(["0"]) >= Stamp(rawValue: 1))
        #expect(two.latest(["1099"]) == Stamp(rawValue: 1_100))
    }

    @Test func `a time of the future at which the clock was set back is not believed`() {
        let (one, two) = (InvalidationTable(), InvalidationTable())
        one.noteClockSetBack(at: Stamp(rawValue: 9))
        two.merge(one.encoded, present: Stamp(rawValue: 8))
        #expect(two.clock == .never)
        two.merge(one.encoded, present: Stamp(rawValue: 9))
        #expect(two.clock == Stamp(rawValue: 9))
    }

    @Test func `the stamps of what has no row are bounded, and the latest ones are kept`() {
        let stamps = RowlessStamps()
        for number in 1...10_000 {
            let key = StoredKey.entity(EntityKey(type: "note", id: "\(number)"))
            stamps.note(key, DiskStore.Place(asked: Stamp(rawValue: Int64(number))))
        }
        #expect(stamps[.entity(EntityKey(type: "note", id: "1"))] == nil)
        #expect(stamps[.entity(EntityKey(type: "note", id: "10000"))]?.asked == Stamp(rawValue: 10_000))
    }
}

@Suite("Edits of lists", .oneMinute)
struct ListEditsTests {
    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `an earlier reply gets exactly the later edits, also after they were stored`(_ seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        func key(_ number: Int) -> EntityKey {
            EntityKey(type: number.isMultiple(of: 3) ? "a b" : "note", id: "\(number)")
        }
        let start = (0..<10).map(key)
        var (members, edits) = (ListMembers(start), ListEdits())
        // What each stamp has found.
        var history: [[EntityKey]] = [start]
        for step in 1...40 {
            let before = members
            let choice = generator.uniform(in: 0..<5)
            if choice < 2, let gone = members.keys.randomElement(using: &generator) {
                members.remove(gone)
            } else if choice == 2, let moved = members.keys.randomElement(using: &generator) {
                members.remove(moved)
                members.insert(ListMembers.Entry(moved), at: 0)
            } else {
                let new = key(generator.uniform(in: 0..<30))
                let offset = generator.uniform(in: 0..<(members.count + 1))
                if !members.contains(new) { members.insert(ListMembers.Entry(new), at: offset) }
            }
            edits.note(before, members, at: Stamp(rawValue: Int64(step)))
            history.append(members.keys)
            if generator.uniform(in: 0..<4) == 0 { edits = try #require(ListEdits(encoded: edits.encoded[...])) }
            let asked = generator.uniform(in: 0..<(step + 1))
            var reply = edits
            let keys = reply.applied(to: history[asked], askedAt: Stamp(rawValue: Int64(asked)), in: members.keys)
            if reply.forgotten == .never {
                #expect(keys == members.keys, "seed \(seed), step \(step), asked at \(asked)")
            }
            #expect(reply.edits.allSatisfy { $0.stamp > Stamp(rawValue: Int64(asked)) })
        }
    }

    @Test
    func
        `items that were added one after another stay behind their neighbors when one of them goes, or when the reply lacks one`()
    {
        func keys(_ ids: [Int]) -> [EntityKey] { ids.map { EntityKey(type: "note", id: "\($0)") } }
        var (members, edits) = (ListMembers(keys([1, 2, 3])), ListEdits())
        for (step, ids) in [[1, 2, 3, 4], [1, 2, 3, 4, 5], [1, 2, 3, 5]].enumerated() {
            let before = members
            members = ListMembers(keys(ids))
            edits.note(before, members, at: Stamp(rawValue: Int64(step + 1)))
        }
        for (reply, expected) in [([1, 2, 3], [1, 2, 3, 5]), ([1, 2], [1, 2, 5]), ([5, 1, 2, 3], [5, 1, 2, 3])] {
            var edits = edits
            #expect(edits.applied(to: keys(reply), askedAt: .never, in: members.keys) == keys(expected))
        }
    }

    @Test func `more edits than are kept make an earlier reply stale, and no later one`() {
        var (members, edits) = (ListMembers([EntityKey]()), ListEdits())
        for number in 1...100 {
            let before = members
            members.insert(ListMembers.Entry(EntityKey(type: "note", id: "\(number)")), at: 0)
            edits.note(before, members, at: Stamp(rawValue: Int64(number)))
        }
        #expect(edits.edits.count == ListEdits.countMaximum)
        #expect(edits.forgotten == Stamp(rawValue: 36))
        var (early, late) = (edits, edits)
        _ = early.applied(to: [], askedAt: Stamp(rawValue: 10), in: members.keys)
        #expect(early.forgotten > Stamp(rawValue: 10))
        _ = late.applied(to: [], askedAt: Stamp(rawValue: 36), in: members.keys)
        #expect(late.forgotten == .never)
        #expect(late.edits.count == 64)
    }

    @Test func `damaged bytes are no edits`() {
        var (edits, members) = (ListEdits(), ListMembers([EntityKey]()))
        members.insert(ListMembers.Entry(EntityKey(type: "note", id: "1")), at: 0)
        edits.note(ListMembers([EntityKey]()), members, at: Stamp(rawValue: 7))
        let bytes = edits.encoded
        #expect(ListEdits(encoded: bytes[...]) == edits)
        for count in 0..<bytes.count where count != 8 { #expect(ListEdits(encoded: bytes.prefix(count)) == nil) }
    }
}
