import LarderTesting
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import LarderResources
@testable import LarderStorage

/// Whatever happens in whatever order, a run of items without a gap is a run of the server's list.
@Suite("Timelines: random runs against an oracle", .oneMinute)
struct TimelinePropertyTests {
    /// In 6520 no cursor between two gaps is known any more.
    @Test(arguments: seeds(16) + [6520])
    func `every shown run of items is a run of the server's list, and finally the whole list is shown`(_ seed: UInt64)
        async throws
    {
        let story = try FeedStory(seed)
        for step in 0..<100 {
            try await story.step("seed \(seed), step \(step)")
            try await story.check("seed \(seed), step \(step)")
        }
        try await story.end("seed \(seed)")
    }
}

/// The kinds of requests.
private final class Busy: Sendable {
    let names = Mutex<Set<String>>([])
}

/// A server, one device, and everything that can happen between them.
private final class FeedStory {
    private let scene = CacheScene()
    private let server: FeedModel
    private var generator: SeededGenerator
    private var cache: LarderCache
    private var feed: PagedResource<Note>
    private var readers: [Task<Void, Never>] = []
    private let busy = Busy()
    private var events: [@Sendable (inout CacheUpdate) -> Void] = []
    private var expected = 0
    private let isBounded: Bool
    private let seed: UInt64

    init(_ seed: UInt64) throws {
        self.seed = seed
        generator = SeededGenerator(seed: seed)
        let server = FeedModel(cursorsDie: seed % 2 == 0, clock: scene.clock)
        self.server = server
        isBounded = seed % 5 == 4
        cache = try scene.cache()
        feed = Self.feed(server, life: server.answerByHand(), seed)
        for _ in 0..<generator.uniform(in: 0..<20) { _ = server.insert() }
    }

    private static let requestTimeout = Duration.seconds(30)

    private static func feed(_ server: FeedModel, life: Int, _ seed: UInt64) -> PagedResource<Note> {
        var feed = PagedResource<Note>("feed", pageSize: 3 + Int(seed % 3)) { await server.fetch($0, life: life) }
        feed.timeout = requestTimeout
        if seed % 5 == 4 { feed.itemsMaximum = 14 }
        return feed
    }

    private var timeline: Timeline<Note> { cache.timeline(feed, .cacheOnly) }

    private func snapshot() async throws -> Timeline<Note>.Snapshot? {
        do { return try await timeline.snapshot() } catch let error where error.code == .notCached { return nil }
    }

    func step(_ place: String) async throws {
        scene.clock.advance(by: .milliseconds(generator.uniform(in: 1..<2_000)))
        // Readers whose requests reach their timeout end without a reply.
        expected += server.timeOut(after: Self.requestTimeout)
        await server.wait(forEvents: expected)
        try await act()
        // Nothing runs any more, so the next reads are of one moment.
        #expect(server.events == expected, "\(place): a request or a reader made progress that no step waited for")
    }

    private func act() async throws {
        switch generator.uniform(in: 0..<24) {
        case 0, 1, 2: insert()
        case 3: delete()
        case 4: edit()
        case 5, 6, 7: try deliver(generator.uniform(in: 0..<max(1, events.count)))
        case 8, 9, 10:
            await read("refresh \(expected)") { timeline in try await timeline.refresh() }
        case 11, 12, 13: await read("older") { timeline in _ = try await timeline.loadOlder() }
        case 14, 15:
            let gaps = try await snapshot()?.segments.compactMap(\.gap) ?? []
            guard !gaps.isEmpty else { return }
            let gap = gaps[generator.uniform(in: 0..<gaps.count)]
            await read(gap.id) { timeline in _ = try await timeline.fill(gap) }
        case 16, 17, 18:
            guard server.waiting > 0 else { return }
            let index = generator.uniform(in: 0..<server.waiting)
            if server.release(index, isEarly: generator.uniform(in: 0..<2) == 0) { expected += 1 }
            await server.wait(forEvents: expected)
        case 19, 20:
            let items = try await snapshot()?.items ?? []
            guard !items.isEmpty else { return }
            let id = items[generator.uniform(in: 0..<items.count)].id
            let isUserInitiated = generator.uniform(in: 0..<2) == 0
            // One at a time, because two for one page would share a request.
            await read("renewal") { try await $0.refresh(around: [id], isUserInitiated: isUserInitiated) }
        case 21, 22: cache.trimMemory(toBytes: 0)
        default: if generator.uniform(in: 0..<2) == 0 { try await restart() }
        }
    }

    private func insert() {
        for _ in 0..<generator.uniform(in: 1..<6) {
            let number = server.insert()
            guard generator.uniform(in: 0..<2) == 0 else { continue }
            let key = feed.key
            events.append { $0.insertNewest(Note(number, "first"), in: key) }
        }
    }

    private func anyPost() -> Int? {
        let numbers = server.posts.keys.sorted()
        return numbers.isEmpty ? nil : numbers[generator.uniform(in: 0..<numbers.count)]
    }

    private func delete() {
        guard let number = anyPost(), let version = server.delete(number) else { return }
        events.append { $0.remove(Note.self, "\(number)", deletedInVersion: version) }
    }

    private func edit() {
        guard let number = anyPost(), let post = server.edit(number, "edit \(expected)") else { return }
        events.append { $0.put(Note(number, post.text, revision: post.revision)) }
    }

    /// Events come in any order: versions and tombstones tell what is newer.
    private func deliver(_ index: Int) throws {
        guard !events.isEmpty else { return }
        let event = events.remove(at: index)
        try cache.updateBlocking { event(&$0) }
    }

    /// Begins to read, and waits until the request has arrived or none was needed.
    private func read(_ name: String, _ body: @escaping @Sendable (Timeline<Note>) async throws -> Void) async {
        // A second request would join the first, and no request would arrive.
        guard busy.names.withLock({ $0.insert(name).inserted }) else { return }
        expected += 1
        let timeline = timeline
        let server = server
        let busy = busy
        readers.append(
            Task {
                // A failure shows in the snapshots.
                try? await body(timeline)
                busy.names.withLock { _ = $0.remove(name) }
                server.note()
            }
        )
        await server.wait(forEvents: expected)
    }

    private func restart() async throws {
        cache.close()
        server.answerAll()
        for reader in readers { await reader.value }
        readers = []
        feed = Self.feed(server, life: server.answerByHand(), seed)
        expected = server.events
        cache = try scene.cache()
    }

    func check(_ place: String) async throws {
        guard let snapshot = try await snapshot() else { return }
        let posts = server.posts
        let shown = snapshot.items.compactMap { Int($0.id) }
        #expect(Set(shown).count == shown.count, "\(place): something is shown twice: \(snapshot.line)")
        let loose = try looseNumbers()
        var (last, end): (Int?, Int?)
        for segment in snapshot.segments {
            guard case .items(let items) = segment else {
                // Behind the gap there may be only items whose places are not known.
                end = nil
                continue
            }
            let run = items.compactMap { Int($0.id) }.filter { !loose.contains($0) }
            // A deleted post whose event has not arrived may be shown behind a gap.
            if let last, let first = run.first(where: { posts[$0] != nil }) {
                #expect(last > first, "\(place): the runs are not in order: \(snapshot.line)")
            }
            for (upper, lower) in zip(run, run.dropFirst()) {
                #expect(upper > lower, "\(place): not in order: \(snapshot.line)")
                let missing = posts.keys.filter { lower < $0 && $0 < upper && !shown.contains($0) }
                #expect(missing.isEmpty, "\(place): \(missing) is missing in \(snapshot.line)")
            }
            (last, end) = (run.last { posts[$0] != nil } ?? last, run.last ?? end)
        }
        for page in snapshot.pages {
            for item in snapshot.items[page.range] {
                guard let number = Int(item.id), !loose.contains(number) else { continue }
                #expect(
                    server.served(number).map { $0 >= page.times.validatedAt } ?? false,
                    "\(place): \(number) counts as confirmed at \(page.times.validatedAt): \(snapshot.line)"
                )
            }
        }
        #expect(snapshot.pages.reduce(0) { $0 + $1.range.count } == snapshot.items.count, "\(place)")
        if snapshot.hasReachedEnd, let end {
            #expect(!posts.keys.contains { $0 < end && !shown.contains($0) }, "\(place): no end: \(snapshot.line)")
        }
        let allowed = feed.keptMaximum + 2 * feed.pageSize
        if isBounded { #expect(shown.count <= allowed + loose.count, "\(place): \(snapshot.line)") }
    }

    private func looseNumbers() throws -> Set<Int> {
        // After an eviction the list is only on the disk.
        guard let query = try timeline.core.query(feed.key)?.stored.query ?? cache.disk?.query(feed.key) else {
            return []
        }
        return Set(query.members.entries.lazy.filter { $0.mark != nil }.compactMap { Int($0.key.id) })
    }

    /// Delivers all replies and reads to the end: the result is the server's list.
    func end(_ place: String) async throws {
        server.answerAll()
        for reader in readers { await reader.value }
        while !events.isEmpty { try deliver(0) }
        try await check(place)
        for _ in 0..<300 {
            scene.clock.advance(by: .seconds(60))
            let gaps = try await snapshot()?.segments.compactMap(\.gap) ?? []
            guard let gap = gaps.first else {
                if try await timeline.loadOlder() == .more { continue }
                break
            }
            try await timeline.fill(gap)
            try await check(place)
        }
        scene.clock.advance(by: .seconds(60))
        try await timeline.refresh()
        while let gap = try await snapshot()?.segments.compactMap(\.gap).first { try await timeline.fill(gap) }
        if !isBounded { while try await timeline.loadOlder() == .more {} }
        try await check(place)
        let posts = server.posts
        let all = posts.keys.sorted(by: >).map { "\($0) \(posts[$0]?.text ?? "")" }
        // A late event may have inserted an old item after its page came, and a bounded list does not ask for that page again.
        let loose = isBounded ? try looseNumbers() : []
        for cache in [cache, try scene.cache()] {
            let items = try await cache.timeline(feed, .cacheOnly).snapshot().items
                .filter { !loose.contains(Int($0.id) ?? 0) }
            let shown = items.map { "\($0.id) \($0.text)" }
            #expect(shown == (isBounded ? Array(all.prefix(shown.count)) : all), "\(place)")
        }
    }
}
