import LarderStorage
import LarderTesting
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import LarderResources

/// A list of notes that answers with whole pages, indexes and items by identifiers.
private final class IndexedSource: Sendable {
    private struct State {
        var notes: [Note] = []
        var calls: [String] = []
        var missing: Set<String> = []
        var lag: Int64 = 0
    }

    private let state = Mutex(State())

    /// The items that the batch reads do not return.
    var missing: Set<String> {
        get { state.withLock { $0.missing } }
        set { state.withLock { $0.missing = newValue } }
    }

    /// By how much the items of batch reads are older than the index.
    var lag: Int64 {
        get { state.withLock { $0.lag } }
        set { state.withLock { $0.lag = newValue } }
    }

    var notes: [Note] {
        get { state.withLock { $0.notes } }
        set { state.withLock { $0.notes = newValue } }
    }

    /// The calls since the last time.
    func take() -> [String] {
        state.withLock { state in
            defer { state.calls = [] }
            return state.calls
        }
    }

    private func validator(_ kind: String) -> String {
        kind + notes.map { "\($0.id):\($0.revision ?? 0)" }.joined(separator: " ")
    }

    private func note(_ call: String, _ request: PageRequest) {
        state.withLock { $0.calls.append(call + (request.validator == nil ? "" : " conditional")) }
    }

    func resource(batchMaximum: Int = 2) -> PagedResource<Note> {
        PagedResource("indexed", pageSize: 6, freshness: .timeToLive(.seconds(60))) { request in
            try await request.page(
                batchMaximum: batchMaximum,
                index: { (request: PageRequest) async throws(LarderError) -> Fetched<PageRequest.Index> in
                    self.note("index", request)
                    let validator = self.validator("index of ")
                    if request.validator == validator { return .notModified() }
                    let entries = self.notes.map { PageRequest.Index.Entry(id: $0.id, version: $0.revision ?? 0) }
                    return .value(PageRequest.Index(entries), validator: validator)
                },
                items: { (ids: [String]) async throws(LarderError) -> Fetched<[Note]> in
                    self.state.withLock { $0.calls.append(ids.joined(separator: " ")) }
                    var found = self.notes.filter { ids.contains($0.id) && !self.missing.contains($0.id) }
                    for index in found.indices where self.lag > 0 {
                        found[index].revision = (found[index].revision ?? 0) - self.lag
                    }
                    return .value(found)
                },
                whole: { (request: PageRequest) async throws(LarderError) -> Fetched<EntityList<Note>> in
                    self.note("whole", request)
                    let validator = self.validator("whole ")
                    if request.validator == validator { return .notModified() }
                    return .value(EntityList(self.notes), validator: validator)
                }
            )
        }
    }
}

@Suite("Pages by index", .oneMinute)
struct PageIndexTests {
    private let scene = CacheScene()
    private let source = IndexedSource()

    init() { source.notes = (1...6).reversed().map { Note($0) } }

    private func loaded() async throws -> (LarderCache, Timeline<Note>) {
        let cache = try scene.cache()
        let timeline = cache.timeline(source.resource(), .cacheOnly, readerIsAtTop: true)
        try await timeline.refresh()
        #expect(source.take() == ["whole"])
        return (cache, timeline)
    }

    private func change(_ id: Int, _ text: String, revision: Int64) {
        source.notes = source.notes.map { $0.id == "\(id)" ? Note(id, text, revision: revision) : $0 }
    }

    @Test func `only older, missing and invalidated items are fetched, in batches`() async throws {
        let (cache, timeline) = try await loaded()
        scene.clock.advance(by: .seconds(7_200))
        change(5, "five", revision: 2)
        source.notes.insert(Note(7), at: 0)
        try await cache.update { $0.invalidate(Note.self, "2") }
        try await timeline.refresh()
        #expect(source.take() == ["index", "7 5", "2"])
        let shown = try await timeline.snapshot()
        #expect(shown.items == source.notes && shown.freshness == .fresh)
        // Stored items keep their values in another process too.
        let other = try scene.cache().timeline(source.resource(), .cacheOnly, readerIsAtTop: true)
        #expect(try await other.snapshot().items == source.notes)
        // The validator of the index confirms the list, also when it was just confirmed.
        try await timeline.refresh()
        #expect(source.take() == ["index conditional"])
        change(1, "one", revision: 2)
        try await timeline.refresh()
        #expect(source.take() == ["index conditional", "1"])
    }

    @Test func `a page that was just confirmed, or that is not stored, is fetched as a whole`() async throws {
        let (cache, timeline) = try await loaded()
        defer { cache.close() }
        scene.clock.advance(by: .seconds(299))
        try await timeline.refresh()
        #expect(source.take() == ["whole conditional"])
        let other = CacheScene()
        let empty = try other.cache()
        try await empty.timeline(source.resource(), .cacheOnly).refresh()
        #expect(source.take() == ["whole"])
    }

    @Test func `an item that is newer than the index is not fetched`() async throws {
        let (cache, timeline) = try await loaded()
        scene.clock.advance(by: .seconds(7_200))
        change(3, "three", revision: 2)
        let event = Note(3, "by event", revision: 3)
        try await cache.update { $0.put(event) }
        try await timeline.refresh()
        #expect(source.take() == ["index"])
        #expect(try await timeline.snapshot().items.first { $0.id == "3" } == event)
    }

    @Test func `items that were invalidated by their type are fetched`() async throws {
        let (cache, timeline) = try await loaded()
        scene.clock.advance(by: .seconds(7_200))
        try await cache.update { $0.invalidate(all: Note.self) }
        try await timeline.refresh()
        #expect(source.take() == ["index", "6 5", "4 3", "2 1"])
    }

    @Test func `an item that a replica lacks is left out, and returns with the next page`() async throws {
        let (cache, timeline) = try await loaded()
        defer { cache.close() }
        scene.clock.advance(by: .seconds(7_200))
        change(3, "three", revision: 2)
        source.missing = ["3"]
        try await timeline.refresh()
        #expect(source.take() == ["index", "3"])
        #expect(try await timeline.snapshot().items.map(\.id) == ["6", "5", "4", "2", "1"])
        source.missing = []
        scene.clock.advance(by: .seconds(1))
        try await timeline.refresh()
        #expect(source.take() == ["whole"])
        #expect(try await timeline.snapshot().items == source.notes)
    }

    @Test func `an item that is older than its index says fails the page and changes nothing`() async throws {
        let (cache, timeline) = try await loaded()
        defer { cache.close() }
        let before = try await timeline.snapshot().items
        scene.clock.advance(by: .seconds(7_200))
        change(3, "three", revision: 5)
        source.lag = 1
        let error = await #expect(throws: LarderError.self) { try await timeline.refresh() }
        #expect(error?.code == .unexpectedReply)
        #expect(try await timeline.snapshot().items == before)
    }
}
