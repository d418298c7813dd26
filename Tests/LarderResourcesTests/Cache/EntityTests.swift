import LarderResources
import LarderStorage
import LarderTesting
import LarderTime
import SDKTestSupport
import TestSupport
import Testing

@Suite("Entities in lists", .oneMinute)
struct EntityTests {
    let scene = CacheScene()

    private func notes(_ ids: [Int], text: String = "", revision: Int64 = 1) -> [Note] {
        ids.map { Note(id: "\($0)", text: "\(text)\($0)", revision: revision) }
    }

    private func list(
        _ name: String,
        _ source: ScriptedSource<EntityList<Note>>,
        tags: Set<String> = []
    ) -> Resource<EntityList<Note>> {
        var list = Resource<EntityList<Note>>.list(name, ["order": "new"], of: Note.self) { try await source.fetch($0) }
        list.tags = tags
        return list
    }

    private func note(_ id: String, _ source: ScriptedSource<Note> = ScriptedSource()) -> Resource<Note> {
        .entity(id) { try await source.fetch($0) }
    }

    private func read(_ cache: LarderCache, _ list: Resource<EntityList<Note>>) async throws -> [String] {
        try await cache.value(list, .cacheOnly).items.map(\.text)
    }

    @Test(arguments: [false, true])
    func `an entity is stored once, and a change to it is shown by every list and by itself`(_ inMemory: Bool)
        async throws
    {
        let cache = try scene.cache(inMemory: inMemory)
        let source = ScriptedSource<EntityList<Note>>()
        source.prepare(.value(EntityList(notes([1, 2, 3]))), .value(EntityList(notes([3, 4]), nextCursor: "c")))
        let (first, second) = (list("first", source), list("second", source))
        _ = try await cache.value(first)
        _ = try await cache.value(second)
        let seen = SequenceRecorder(cache.snapshots(second, .cacheOnly))
        await seen.wait(for: 1)
        try await cache.update { $0.put(Note(id: "3", text: "edited", revision: 2)) }
        #expect(try await read(cache, first) == ["1", "2", "edited"])
        #expect(try await read(cache, second) == ["edited", "4"])
        #expect(try await cache.value(note("3"), .cacheOnly).text == "edited")
        await seen.wait { $0.last?.value?.items.first?.text == "edited" }
        #expect(try await cache.value(second, .cacheOnly).nextCursor == "c")
        try await cache.update { $0.modify(Note.self, "4") { $0.text += "!" } }
        #expect(try await read(cache, second) == ["edited", "4!"])
        guard !inMemory else { return }
        let again = try scene.cache()
        #expect(try await read(again, first) == ["1", "2", "edited"])
        #expect(try await read(again, second) == ["edited", "4!"])
    }

    /// All parts of a snapshot except its times.
    private func shown(_ cache: LarderCache, _ list: Resource<EntityList<Note>>) async throws -> String {
        let snapshot = try await cache.snapshot(list, .cacheOnly)
        let state = [snapshot.freshness, snapshot.completeness, snapshot.pendingChanges] as [Any]
        return "\(snapshot.value?.items ?? []) \(state) \(snapshot.validator ?? "–")"
    }

    @Test(arguments: seeds(3))
    func `a list that is assembled incrementally equals one assembled from scratch`(_ seed: UInt64)
        async throws
    {
        var generator = SeededGenerator(seed: seed)
        let cache = try scene.cache(inMemory: seed % 2 == 0)
        let server = LikeServer(posts: 0)
        let source = ScriptedSource<EntityList<Note>>()
        let ids = Array(0..<12)
        source.prepare(.value(EntityList(notes(ids)), validator: "\"1\""))
        let list = list("list", source)
        _ = try await cache.value(list)
        var operation = WriteBehind<Tap, Liked>(
            "mark",
            scope: { $0.post },
            changes: { tap, changes in changes.modify(Note.self, tap.post) { $0.text += tap.isLike ? "+" : "-" } },
            send: { try server.send($0) }
        )
        operation.coalesce = { _, _ in .keepBoth }
        var pending: [OperationID] = []
        for round in 0..<150 {
            let id = "\(generator.uniform(in: ids.startIndex..<ids.endIndex))"
            let what = generator.uniform(in: 0..<9)
            switch what {
            case 0, 1: try await cache.update { $0.modify(Note.self, id) { $0.text += "m" } }
            case 2:
                try await cache.update { $0.put(Note(id: id, text: "put \(round)", revision: Int64(round + 2))) }
            case 3:
                let isLike = round % 2 == 0
                if let new = try cache.enqueue(Tap(post: id, isLike: isLike), operation) { pending.append(new) }
            case 4: if let old = pending.popLast() { try cache.outbox.drop(old) }
            case 5: try await cache.update { $0.invalidate(Note.self, id) }
            case 6:
                try await cache.update { update in
                    for number in ids.prefix(generator.uniform(in: 1..<12)) {
                        update.modify(Note.self, "\(number)") { $0.text += "a" }
                    }
                }
            case 7 where round % 5 == 0: try await cache.update { $0.remove(Note.self, id) }
            case 7: try await cache.update { $0.invalidate(all: Note.self) }
            default:
                try await cache.update { update in
                    update.edit(list.key) { keys in
                        guard let first = keys.first else { return }
                        keys = Array(keys.dropFirst()) + [first]
                    }
                }
            }
            // Several changes may come between two reads.
            if generator.uniform(in: 0..<3) == 0 { continue }
            let shownNow = try await shown(cache, list)
            // Drops the parts of the last assembly.
            for number in ids { await cache.noteVersion(0, of: Note.self, "\(number)") }
            #expect(try await shown(cache, list) == shownNow, "seed \(seed), round \(round), step \(what)")
        }
    }

    @Test func `changes of one commit are never shown separately`() async throws {
        let cache = try scene.cache(inMemory: true)
        let source = ScriptedSource<EntityList<Note>>()
        source.prepare(.value(EntityList(notes([1, 2, 3]))))
        let list = list("list", source)
        _ = try await cache.value(list)
        try await cache.update { update in for id in ["1", "2", "3"] { update.modify(Note.self, id) { $0.text = "0" } }
        }
        let writer = Task.detached {
            for round in 1...300 {
                try await cache.update { update in
                    for id in ["1", "2", "3"] { update.modify(Note.self, id) { $0.text = "\(round)" } }
                }
            }
        }
        let seen = Task.detached {
            var seen = 0
            for await snapshot in cache.snapshots(list, .cacheOnly) {
                guard let texts = snapshot.value?.items.map(\.text) else { continue }
                #expect(Set(texts).count == 1 && texts.count == 3)
                seen += 1
                if texts.first == "300" { break }
            }
            return seen
        }
        var last: String?
        while last != "300", !Task.isCancelled {
            let texts = try await cache.value(list, .cacheOnly).items.map(\.text)
            #expect(Set(texts).count == 1 && texts.count == 3)
            last = texts.first
            // A read from memory does not suspend: with one thread the writer would not run.
            await Task.yield()
        }
        try await writer.value
        #expect(await seen.value > 0)
    }

    @Test func `a removed entity leaves every list, and no older reply restores it`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<EntityList<Note>>()
        source.prepare(.value(EntityList(notes([1, 2, 3]))), .value(EntityList(notes([1, 2, 3]))))
        let list = list("all", source)
        _ = try await cache.value(list)
        try await cache.update { $0.remove(Note.self, "2", deletedInVersion: 5) }
        #expect(try await read(cache, list) == ["1", "3"])
        #expect(try await cache.snapshot(list, .cacheOnly).freshness == .fresh)
        try await cache.update { $0.put(Note(id: "2", text: "ghost", revision: 4)) }
        await #expect(throws: LarderError.self) { try await cache.value(note("2"), .cacheOnly) }
        // A page from a lagging replica still contains the entity, which is not shown.
        _ = try await cache.refresh(list)
        #expect(try await read(cache, list) == ["1", "3"])
        #expect(try await read(scene.cache(), list) == ["1", "3"])
    }

    @Test func `removing a list keeps the entities of other lists`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<EntityList<Note>>()
        source.prepare(.value(EntityList(notes([1, 2]))), .value(EntityList(notes([2, 3]))))
        let (first, second) = (list("first", source), list("second", source))
        _ = try await cache.value(first)
        _ = try await cache.value(second)
        try await cache.update { $0.remove(first.key) }
        await #expect(throws: LarderError.self) { try await cache.value(first, .cacheOnly) }
        #expect(try await read(cache, second) == ["2", "3"])
    }

    @Test func `an edited index shows entities in its new order`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<EntityList<Note>>()
        source.prepare(.value(EntityList(notes([1, 2, 3]))))
        let list = list("all", source)
        _ = try await cache.value(list)
        try await cache.update { update in
            update.put(Note(id: "9", text: "new", revision: 1))
            update.edit(list.key) { $0.insert(Note.key("9"), at: 0) }
        }
        #expect(try await read(cache, list) == ["new", "1", "2", "3"])
        #expect(try await read(scene.cache(), list) == ["new", "1", "2", "3"])
    }

    enum Way: String, CaseIterable, Sendable { case entity, type, list, predicate, prefix, tag }

    @Test(arguments: Way.allCases, [false, true])
    func `an invalidated value is stale and an observed one is fetched again`(
        _ way: Way,
        _ isRestarted: Bool
    ) async throws {
        var cache = try scene.cache()
        let source = ScriptedSource<EntityList<Note>>()
        source.prepare(.value(EntityList(notes([1, 2]))))
        let list = list("all", source, tags: ["mine"])
        _ = try await cache.value(list)
        let other = Resource<String>("other") { _ in .value("x") }
        _ = try await cache.value(other)
        scene.clock.advance(by: .seconds(1))
        switch way {
        case .entity: try await cache.update { $0.invalidate(Note.self, "2") }
        case .type: try await cache.update { $0.invalidate(all: Note.self) }
        case .list: try await cache.invalidate(list)
        case .predicate: try await cache.invalidate(startingWith: "al") { $0.parameters.contains { $0.value == "new" } }
        case .prefix: try await cache.invalidate(startingWith: "not")
        case .tag: try await cache.invalidate(tag: "mine")
        }
        if isRestarted { cache = try scene.cache() }
        scene.clock.advance(by: .seconds(1))
        #expect(try await cache.snapshot(list, .cacheOnly).freshness == .stale(.invalidated))
        #expect(try await cache.snapshot(other, .cacheOnly).freshness == .fresh)
        let seen = SequenceRecorder(cache.snapshots(list))
        await source.waitForRequests(2)
        source.answer(1, .value(EntityList(notes([1, 2], text: "v", revision: 2))))
        await seen.wait { $0.last?.freshness == .fresh && $0.last?.value?.items.first?.text == "v1" }
        // An observer gets the next change.
        try await cache.update { $0.invalidate(Note.self, "1") }
        await source.waitForRequests(3)
    }

    @Test func `a request that began before an invalidation does not clear it`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<String>()
        var word = Resource<String>("word") { try await source.fetch($0) }
        word.tags = ["t"]
        let resource = word
        for byTag in [false, true] {
            let count = source.requests.count
            let reader = Task { try await cache.snapshot(resource, .networkOnly) }
            await source.waitForRequests(count + 1)
            if byTag { try await cache.invalidate(tag: "t") } else { try await cache.invalidate(resource) }
            source.answer(count, .value("old news \(byTag)"))
            #expect(try await reader.value.freshness == .stale(.invalidated))
            source.prepare(.value("current \(byTag)"))
            #expect(try await cache.value(resource) == "current \(byTag)")
            #expect(try await cache.snapshot(resource).freshness == .fresh)
        }
    }

    @Test func `an empty list differs from a list that was never fetched`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<EntityList<Note>>()
        source.prepare(.value(EntityList([]), completeness: .partial))
        let list = list("all", source)
        await #expect(throws: LarderError.self) { try await cache.value(list, .cacheOnly) }
        let empty = try await cache.snapshot(list)
        #expect(empty.value?.items.isEmpty ?? false)
        // The list was never fetched, so its end is unknown.
        #expect(empty.completeness == .partial)
        #expect(try await scene.cache().snapshot(list, .cacheOnly).completeness == .partial)
    }

    @Test func `a list with an evicted item is incomplete and is fetched again`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<EntityList<Note>>()
        source.prepare(.value(EntityList(notes([1, 2, 3])), validator: "v"), .value(EntityList(notes([1, 2, 3]))))
        let list = list("all", source)
        _ = try await cache.value(list)
        cache.close()
        let store = try DiskStore(DiskStore.Configuration(directory: scene.path, clock: scene.clock))
        try store.remove(Note.key("2"))
        let again = try scene.cache()
        let snapshot = try await again.snapshot(list, .cacheOnly)
        #expect(snapshot.value?.items.count == 2 && snapshot.completeness == .gapped(1))
        #expect(snapshot.freshness == .stale(.partial))
        #expect(try await again.value(list, .cacheFirst).items.count == 3)
        // An incomplete value must not be confirmed.
        #expect(source.requests.last?.validator == nil)
    }

    @Test func `a list is not confirmed for an item that has changed since and was invalidated`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<EntityList<Note>>()
        source.prepare(.value(EntityList(notes([1, 2])), validator: "v"), .value(EntityList(notes([1, 2]))))
        let list = list("all", source)
        _ = try await cache.value(list)
        try await cache.update { $0.invalidate(Note.self, "1") }
        #expect(try await cache.snapshot(list, .cacheOnly).validator == "v")
        scene.clock.advance(by: .seconds(1))
        try await cache.update { $0.put(Note(id: "1", text: "changed", revision: 9)) }
        try await cache.update { $0.invalidate(Note.self, "1") }
        #expect(try await cache.snapshot(list, .cacheOnly).validator == nil)
        _ = try await cache.value(list, .networkOnly)
        #expect(source.requests.last?.validator == nil)
    }

    @Test(arguments: [false, true])
    func `a list is not confirmed for an item that was modified since and was invalidated`(_ isReopened: Bool)
        async throws
    {
        let first = try scene.cache()
        let source = ScriptedSource<EntityList<Note>>()
        source.prepare(.value(EntityList(notes([1, 2])), validator: "v"), .value(EntityList(notes([1, 2]))))
        let list = list("all", source)
        _ = try await first.value(list)
        try await first.update { update in
            update.modify(Note.self, "1") { $0.text = "a guess" }
            update.invalidate(Note.self, "1")
        }
        let cache = try isReopened ? scene.cache() : first
        let new = try await cache.value(list, .networkOnly)
        #expect(source.requests.last?.validator == nil)
        #expect(new.items.map(\.text) == notes([1, 2]).map(\.text))
    }

    @Test func `an equal value is not shown again and neither is a confirmation of a fresh value`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<EntityList<Note>>()
        source.prepare(.value(EntityList(notes([1, 2]))))
        let list = list("all", source)
        let seen = SequenceRecorder(cache.snapshots(list))
        await seen.wait { $0.last?.value != nil }
        source.prepare(.value(EntityList(notes([1, 2]))), .value(EntityList(notes([1, 2, 3]))))
        _ = try await cache.refresh(list)
        try await cache.update { $0.put(notes([1])[0]) }
        _ = try await cache.refresh(list)
        await seen.wait { $0.last?.value?.items.count == 3 }
        let shown = seen.elements.filter { $0.isFetching == false }.compactMap(\.value)
        #expect(shown.map(\.items.count) == [2, 3])
    }

    /// Random commits by several writers, compared with a dictionary.
    @Test(arguments: seeds(4))
    func `memory, disk and a new process agree with a model after random changes`(_ seed: UInt64)
        async throws
    {
        var generator = SeededGenerator(seed: seed)
        var configuration = scene.configuration()
        // Small limits, so that entities are evicted from memory all the time.
        configuration.memoryEntriesMaximum = 64
        var cache = try LarderCache(configuration)
        let source = ScriptedSource<EntityList<Note>>()
        let lists = (0..<4).map { list("list\($0)", source) }
        var texts: [String: (text: String, version: Int64)] = [:]
        var graves: [String: Int64] = [:]
        var indexes: [Int: [String]] = [:]
        for step in 0..<300 {
            let id = "\(generator.uniform(in: 0..<150))"
            let version = Int64(generator.uniform(in: 0..<20))
            switch generator.uniform(in: 0..<10) {
            case 0..<4:
                try await cache.update { $0.put(Note(id: id, text: "\(step)", revision: version)) }
                if (graves[id] ?? -1) < version, (texts[id]?.version ?? -1) <= version {
                    texts[id] = ("\(step)", version)
                    graves[id] = nil
                }
            case 4:
                try await cache.update { $0.modify(Note.self, id) { $0.text = "m\(step)" } }
                if let known = texts[id] { texts[id] = ("m\(step)", known.version) }
            case 5:
                try await cache.update { $0.remove(Note.self, id, deletedInVersion: version) }
                if (texts[id]?.version ?? -1) <= version, (graves[id] ?? -1) <= version {
                    texts[id] = nil
                    graves[id] = version
                    for index in indexes.keys { indexes[index]?.removeAll { $0 == id } }
                }
            case 6, 7:
                let index = generator.uniform(in: 0..<4)
                let ids = (0..<generator.uniform(in: 0..<20)).map { _ in generator.uniform(in: 0..<150) }
                let unique = ids.reduce(into: [Int]()) { if !$0.contains($1) { $0.append($1) } }
                source.prepare(.value(EntityList(notes(unique, text: "\(step)/", revision: version))))
                _ = try await cache.refresh(lists[index])
                let names = unique.map { "\($0)" }
                for id in names where (graves[id] ?? -1) < version && (texts[id]?.version ?? -1) <= version {
                    texts[id] = ("\(step)/\(id)", version)
                    graves[id] = nil
                }
                // The reply says nothing about what was deleted later.
                indexes[index] = names.filter { texts[$0] != nil }
            case 8: cache = try LarderCache(configuration)
            default:
                let index = generator.uniform(in: 0..<4)
                guard let ids = indexes[index] else { continue }
                let shown = try await cache.value(lists[index], .cacheOnly).items.map { "\($0.id)=\($0.text)" }
                #expect(
                    shown == ids.compactMap { id in texts[id].map { "\(id)=\($0.text)" } },
                    "seed \(seed), step \(step)"
                )
            }
        }
        for (index, ids) in indexes {
            let expected = ids.compactMap { id in texts[id].map { "\(id)=\($0.text)" } }
            for reader in [cache, try LarderCache(configuration)] {
                let shown = try await reader.value(lists[index], .cacheOnly).items.map { "\($0.id)=\($0.text)" }
                #expect(shown == expected, "seed \(seed), list \(index)")
            }
        }
    }
}
