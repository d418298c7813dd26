import LarderResources
import LarderStorage
import LarderTesting
import LarderTime
import SDKTestSupport
import TestSupport
import Testing

/// An article of which one endpoint returns the text and another one the bookmark.
private struct Article: CacheEntity {
    static let entityType = "article"
    static let merge: Merge? = { new, stored in
        var merged = new
        merged.text = new.text ?? stored.text
        merged.isBookmarked = new.isBookmarked ?? stored.isBookmarked
        return merged
    }

    var id: Int
    var text: String?
    var isBookmarked: Bool?
    var revision: Int64?

    var entityVersion: Int64? { revision }
}

@Suite("Entities: merging and identifiers", .oneMinute)
struct MergingTests {
    private let scene = CacheScene()

    private func article(_ source: ScriptedSource<Article>) -> Resource<Article> {
        .entity(7, freshness: .timeToLive(.seconds(60))) { try await source.fetch($0) }
    }

    /// In memory, on disk only, and as another process sees it.
    @Test(arguments: ["memory", "disk", "restart"])
    func `the parts of several endpoints are merged`(place: String) async throws {
        var cache = try scene.cache()
        let source = ScriptedSource<Article>()
        source.prepare(
            .value(Article(id: 7, text: "a"), validator: "1"),
            .value(Article(id: 7, text: "b"), validator: "2")
        )
        _ = try await cache.value(article(source))
        let list = Resource<EntityList<Article>>.list("bookmarks") { _ in
            .value(EntityList([Article(id: 7, isBookmarked: true)]))
        }
        if place == "disk" { cache.trimMemory(toBytes: 0) }
        if place == "restart" { cache = try scene.cache() }
        #expect(try await cache.refresh(list).value?.items == [Article(id: 7, text: "a", isBookmarked: true)])
        #expect(try await cache.value(article(source)) == Article(id: 7, text: "a", isBookmarked: true))
        let new = try await cache.refresh(article(source))
        #expect(new.value == Article(id: 7, text: "b", isBookmarked: true) && new.validator == "2")
        #expect(try await cache.value(list, .cacheOnly).items.first?.text == "b")
        #expect(try await scene.cache().value(article(source), .cacheOnly).isBookmarked == true)
    }

    @Test func `a part that must not be stored keeps the merged value off the disk`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<Article>()
        var secret = Fetched.value(Article(id: 7, text: "secret"))
        secret.mayStore = false
        source.prepare(secret)
        _ = try await cache.value(article(source))
        let list = Resource<EntityList<Article>>.list("bookmarks", showing: .partial) { _ in
            .value(EntityList([Article(id: 7, isBookmarked: true)]))
        }
        #expect(try await cache.refresh(list).value?.items == [Article(id: 7, text: "secret", isBookmarked: true)])
        #expect(try cache.disk?.entity(Article.key(7)) == nil)
    }

    private func opened(_ killable: KillableStore, _ place: CacheScene) throws -> LarderCache {
        var configuration = place.configuration()
        configuration.storage = .store(try killable.store())
        return try LarderCache(configuration)
    }

    /// A cache with the whole article on the disk and not in memory.
    private func onDiskAlone(_ killable: KillableStore, _ place: CacheScene) async throws -> LarderCache {
        let cache = try opened(killable, place)
        try await cache.put(Article(id: 7, text: "a", revision: 1), for: article(ScriptedSource()))
        cache.trimMemory(toBytes: 0)
        return cache
    }

    /// A list whose items have no text.
    private func bookmarks(_ revision: Int64) -> Resource<EntityList<Article>> {
        Resource<EntityList<Article>>.list("bookmarks", showing: .partial) { _ in
            .value(EntityList([Article(id: 7, isBookmarked: true, revision: revision)]))
        }
    }

    @Test func `a part that arrives while the disk fails is shown, and no older row in its place`() async throws {
        let killable = KillableStore(DiskStore.Configuration(directory: scene.path, clock: scene.clock))
        var cache = try await onDiskAlone(killable, scene)
        killable.fail(.full, untilHealed: true)
        // The disk is still read.
        let merged = Article(id: 7, text: "a", isBookmarked: true, revision: 2)
        #expect(try await cache.refresh(bookmarks(2)).value?.items == [merged])
        cache.trimMemory(toBytes: 0)
        #expect(cache.stored(article(ScriptedSource())) == nil)
        killable.heal()
        try await cache.update { $0.setToken("t", for: "feed") }
        cache.close()
        killable.abandon()
        cache = try opened(killable, scene)
        #expect(cache.stored(article(ScriptedSource())) == nil)
    }

    @Test func `"not modified" of a list confirms no entity of which it shows a part`() async throws {
        let cache = try scene.cache()
        let (source, lists) = (ScriptedSource<Article>(), ScriptedSource<EntityList<Article>>())
        source.prepare(.value(Article(id: 7, text: "a")))
        _ = try await cache.value(article(source))
        let list = Resource<EntityList<Article>>.list("bookmarks", showing: .partial) { try await lists.fetch($0) }
        let bookmarks = EntityList([Article(id: 7, isBookmarked: true)])
        lists.prepare(.value(bookmarks, validator: "v"), .value(bookmarks, validator: "v"))
        _ = try await cache.refresh(list)
        // Its text has changed, which the list does not show.
        try await cache.update { $0.invalidate(Article.self, 7) }
        _ = try await cache.refresh(list)
        #expect(lists.requests.last?.validator == nil)
        #expect(try await cache.snapshot(article(source), .cacheOnly).freshness == .stale(.invalidated))
    }

    @Test func `a part does not renew the value that it is merged into`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<Article>()
        source.prepare(.value(Article(id: 7, text: "a")))
        _ = try await cache.value(article(source))
        let list = Resource<EntityList<Article>>.list("bookmarks", showing: .partial) { _ in
            .value(EntityList([Article(id: 7, isBookmarked: true)]))
        }
        for _ in 0..<2 {
            scene.clock.advance(by: .seconds(40))
            _ = try await cache.refresh(list)
        }
        let snapshot = try await cache.snapshot(article(source), .cacheOnly)
        #expect(snapshot.value?.isBookmarked == true && snapshot.freshness == .stale(.expired))
    }

    @Test func `an older version is not merged, and an equal one is, however complete it is`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<Article>()
        func stored() async throws -> Article { try await cache.value(article(source), .cacheOnly) }
        try await cache.update { $0.put(Article(id: 7, text: "new", revision: 2)) }
        try await cache.update { $0.put(Article(id: 7, text: "old", isBookmarked: false, revision: 1)) }
        #expect(try await stored() == Article(id: 7, text: "new", revision: 2))
        try await cache.update { $0.put(Article(id: 7, isBookmarked: true, revision: 2), completeness: .partial) }
        #expect(try await stored() == Article(id: 7, text: "new", isBookmarked: true, revision: 2))
        #expect(try await cache.snapshot(article(source), .cacheOnly).completeness == .complete)
    }

    @Test func `a value that was removed is not merged`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<Article>()
        try await cache.update { $0.put(Article(id: 7, isBookmarked: true)) }
        try await cache.update { update in
            update.remove(Article.self, 7)
            update.put(Article(id: 7, text: "again"))
        }
        #expect(try await cache.value(article(source), .cacheOnly) == Article(id: 7, text: "again"))
    }

    @Test func `identifiers may be integers, in lists, timelines and updates`() async throws {
        let cache = try scene.cache()
        let pages = PagedResource<Article>("articles", pageSize: 2) { request in
            let first = request.cursor.flatMap { Int($0) } ?? 4
            let items = [Article(id: first, text: "\(first)"), Article(id: first - 1, text: "\(first - 1)")]
            return .value(EntityList(items, nextCursor: first > 2 ? "\(first - 2)" : nil))
        }
        let timeline = cache.timeline(pages)
        _ = try await timeline.snapshot()
        #expect(try await timeline.loadOlder() == .finished)
        try await cache.update { $0.insertNewest(Article(id: 5, text: "5"), in: timeline.key, isOwn: true) }
        try await cache.update { update in
            update.modify(Article.self, 3) { $0.text = "changed" }
            update.remove(Article.self, 2)
        }
        let items = try await timeline.snapshot().items
        #expect(items.map(\.id) == [5, 4, 3, 1] && items[2].text == "changed")
        #expect(ListDifference(from: Array(items.dropFirst()), to: items).insertions.map(\.id) == [5])
        #expect(Article.key(3) == items[2].entityKey && items[2].entityKey == EntityKey(type: "article", id: "3"))
    }
}
