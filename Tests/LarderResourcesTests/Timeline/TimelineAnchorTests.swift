import LarderStorage
import LarderTesting
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import LarderResources

/// A list of numbers, newest first, in pages by position. A cursor is the number next to which a page begins.
private final class NumberedSource: Sendable {
    private struct State {
        var numbers: Set<Int>
        var requests: [PageRequest.Position] = []
        var statesNewer = true
        var validates = false
    }

    private let state: Mutex<State>

    init(_ numbers: some Sequence<Int>) { state = Mutex(State(numbers: Set(numbers))) }

    var numbers: Set<Int> {
        get { state.withLock { $0.numbers } }
        set { state.withLock { $0.numbers = newValue } }
    }

    var statesNewer: Bool {
        get { state.withLock { $0.statesNewer } }
        set { state.withLock { $0.statesNewer = newValue } }
    }

    /// Has validators from now on.
    func validate() { state.withLock { $0.validates = true } }

    /// The requests since the last call.
    func take() -> [PageRequest.Position] {
        state.withLock { state in
            defer { state.requests = [] }
            return state.requests
        }
    }

    func resource(pageSize: Int = 4) -> PagedResource<Note> {
        var resource = PagedResource<Note>("numbers", pageSize: pageSize, freshness: .timeToLive(.seconds(60))) {
            request in self.answer(request)
        }
        resource.isNewer = { (Int($0) ?? 0) > (Int($1) ?? 0) }
        return resource
    }

    private func answer(_ request: PageRequest) -> Fetched<EntityList<Note>> {
        state.withLock { state in
            state.requests.append(request.position)
            let all = state.numbers.sorted(by: >)
            let page: [Int]
            switch request.position {
            case .newest: page = Array(all.prefix(request.limit))
            case .older(let cursor): page = Array(all.filter { $0 < Int(cursor) ?? 0 }.prefix(request.limit))
            case .newer(let cursor): page = Array(all.filter { $0 > Int(cursor) ?? 0 }.suffix(request.limit))
            case .around(let id):
                guard let index = Int(id).flatMap({ all.firstIndex(of: $0) }) else { return .gone }
                let first = max(0, index - request.limit / 2)
                page = Array(all[first..<min(all.count, first + request.limit)])
            }
            let next = page.last.flatMap { last in all.contains { $0 < last } ? "\(last)" : nil }
            let previous = page.first.flatMap { first in all.contains { $0 > first } ? "\(first)" : nil }
            let validator = state.validates ? "\(page)" : nil
            if let validator, request.validator == validator { return .notModified() }
            return .value(
                EntityList(page.map { Note($0) }, nextCursor: next, previousCursor: state.statesNewer ? previous : nil),
                validator: validator
            )
        }
    }
}

@Suite("Timelines: opened at an item", .oneMinute)
struct TimelineAnchorTests {
    let scene = CacheScene()
    private let source = NumberedSource(1...40)
    private let cache: LarderCache
    private let timeline: Timeline<Note>

    init() throws {
        cache = try scene.cache()
        timeline = cache.timeline(source.resource(), .cacheOnly, readerIsAtTop: true)
    }

    /// What a reader sees, which must equal what a reader in another process sees.
    private func line(_ timeline: Timeline<Note>) async throws -> String {
        let line = try await timeline.snapshot().line
        let other = try scene.cache()
        let again = other.timeline(source.resource(), .cacheOnly, readerIsAtTop: true)
        #expect(try await again.snapshot().line == line)
        return line
    }

    @Test func `an empty timeline is opened at an item and read in both directions to both ends`() async throws {
        try await timeline.open(at: "20")
        #expect(try await line(timeline) == "| 22 21 20 19")
        #expect(try await timeline.loadOlder() == .more)
        #expect(try await line(timeline) == "| 22 21 20 19 18 17 16 15")
        #expect(try await timeline.loadNewer() == .more)
        #expect(try await line(timeline) == "| 26 25 24 23 22 21 20 19 18 17 16 15")
        #expect(source.take() == [.around("20"), .older("19"), .newer("22")])
        // All pages were fetched just now.
        #expect(try await timeline.snapshot().freshness == .fresh)
        while try await timeline.loadOlder() == .more {}
        while try await timeline.loadNewer() == .more {}
        #expect(try await line(timeline) == (1...40).reversed().map { "\($0)" }.joined(separator: " ") + " .")
        #expect(try await timeline.loadNewer() == .finished)
    }

    @Test func `a timeline is opened below, between and above its items, with gaps`() async throws {
        try await timeline.refresh()
        try await timeline.open(at: "10")
        #expect(try await line(timeline) == "40 39 38 37 | 12 11 10 9")
        try await timeline.open(at: "25")
        #expect(try await line(timeline) == "40 39 38 37 | 27 26 25 24 | 12 11 10 9")
        // Both directions belong to the item at which it was opened last.
        #expect(try await timeline.loadOlder() == .more)
        #expect(try await line(timeline) == "40 39 38 37 | 27 26 25 24 23 22 21 20 | 12 11 10 9")
        #expect(try await timeline.loadNewer() == .more)
        #expect(try await line(timeline) == "40 39 38 37 | 31 30 29 28 27 26 25 24 23 22 21 20 | 12 11 10 9")
        source.numbers.formUnion(41...60)
        try await timeline.open(at: "50")
        #expect(
            try await line(timeline)
                == "| 52 51 50 49 | 40 39 38 37 | 31 30 29 28 27 26 25 24 23 22 21 20 | 12 11 10 9"
        )
        // A refresh puts the newest page in front of the gap.
        try await timeline.refresh()
        #expect(try await line(timeline).hasPrefix("60 59 58 57 | 52 51 50 49 | 40 39 38 37 | 31 30"))
        _ = source.take()
        while try await timeline.loadNewer() == .more {}
        #expect(source.take() == [.newer("52"), .newer("56")])
        #expect(try await line(timeline).hasPrefix("60 59 58 57 56 55 54 53 52 51 50 49 | 40 39"))
        #expect(try await timeline.loadOlder() == .more)
        #expect(try await timeline.loadOlder() == .more)
        #expect(try await timeline.loadOlder() == .more)
        #expect(try await line(timeline).hasPrefix("52 51") == false)
        for _ in 0..<20 where try await timeline.loadOlder() == .more {}
        #expect(try await line(timeline) == (1...60).reversed().map { "\($0)" }.joined(separator: " ") + " .")
    }

    @Test func `a loaded item costs no request, and a page that overlaps closes the gap`() async throws {
        try await timeline.refresh()
        _ = source.take()
        try await timeline.open(at: "38")
        #expect(source.take() == [])
        try await timeline.open(at: "35")
        #expect(try await line(timeline) == "40 39 38 37 36 35 34")
        #expect(source.take() == [.around("35")])
        #expect(try await timeline.loadNewer() == .finished)
        #expect(source.take() == [])
    }

    @Test func `"not modified" does not confirm a newest page that a page around an item has changed`() async throws {
        source.validate()
        try await timeline.refresh()
        source.numbers.insert(41)
        try await timeline.open(at: "41")
        source.numbers.remove(41)
        try await timeline.refresh()
        #expect(try await line(timeline) == "40 39 38 37")
        var resource = source.resource()
        resource.itemsMaximum = 8
        let full = cache.timeline(resource, .cacheOnly, readerIsAtTop: true)
        try await full.loadOlder()
        try await full.open(at: "10")
        try await full.refresh()
        #expect(try await full.snapshot().line == "40 39 38 37 | 12 11 10 9")
    }

    @Test func `an item that the source does not have leaves everything as it is`() async throws {
        try await timeline.refresh()
        await #expect { try await timeline.open(at: "77") } throws: { ($0 as? LarderError)?.code == .gone }
        #expect(try await line(timeline) == "40 39 38 37")
        var plain = source.resource()
        plain.isNewer = nil
        let other = cache.timeline(plain, .cacheOnly)
        await #expect { try await other.open(at: "20") } throws: { ($0 as? LarderError)?.code == .invalidArgument }
    }

    @Test func `without a cursor for newer items the gap is filled from its newer end`() async throws {
        source.statesNewer = false
        try await timeline.refresh()
        try await timeline.open(at: "30")
        _ = source.take()
        #expect(try await timeline.loadNewer() == .more)
        #expect(source.take() == [.older("37")])
        #expect(try await timeline.loadNewer() == .finished)
        #expect(try await line(timeline) == "40 39 38 37 36 35 34 33 32 31 30 29")
    }

    @Test func `a page of newer items does not make the items next to it fresh`() async throws {
        try await timeline.refresh()
        try await timeline.open(at: "30")
        scene.clock.advance(by: .seconds(61))
        try await timeline.loadNewer()
        var shown = try await timeline.snapshot()
        #expect(shown.line == "40 39 38 37 | 36 35 34 33 32 31 30 29")
        #expect(shown.pages.map(\.range.count) == [4, 4, 4])
        #expect(shown.pages.map(\.freshness.isFresh) == [false, true, false])
        try await timeline.loadNewer()
        shown = try await timeline.snapshot()
        #expect(shown.line == "40 39 38 37 36 35 34 33 32 31 30 29")
        #expect(!shown.freshness(of: 0..<4).isFresh && !shown.freshness(of: 8..<12).isFresh)
    }

    @Test func `a full list begins again at the item`() async throws {
        var resource = source.resource()
        resource.itemsMaximum = 8
        let timeline = cache.timeline(resource, .cacheOnly, readerIsAtTop: true)
        try await timeline.refresh()
        try await timeline.loadOlder()
        #expect(try await timeline.loadOlder() == .full)
        try await timeline.open(at: "10")
        #expect(try await timeline.snapshot().line == "| 12 11 10 9")
    }

    @Test func `an evicted item of a page around an item is fetched by a request around it`() async throws {
        try await timeline.refresh()
        try await timeline.open(at: "20")
        cache.close()
        let store = try DiskStore(DiskStore.Configuration(directory: scene.path, clock: scene.clock))
        try store.remove(Note.key("20"))
        let again = try scene.cache()
        let timeline = again.timeline(source.resource(), .cacheOnly, readerIsAtTop: true)
        #expect(try await timeline.snapshot().line == "40 39 38 37 | 22 21 | 19")
        _ = source.take()
        let gaps = try await timeline.snapshot().segments.compactMap(\.gap)
        try #require(gaps.count == 2)
        #expect(try await timeline.fill(gaps[1]) == .finished)
        #expect(source.take() == [.around("20")])
        #expect(try await timeline.snapshot().line == "40 39 38 37 | 22 21 20 19")
        #expect(try await timeline.fill(gaps[0]) == .more)
        #expect(source.take() == [.older("37")])
    }

    @Test(arguments: [false, true])
    func `a page around an item between two consecutive ones has gaps, which are filled`(_ statesNewer: Bool)
        async throws
    {
        source.statesNewer = statesNewer
        source.numbers = [40, 39, 10, 9]
        try await timeline.refresh()
        source.numbers.formUnion(11...38)
        try await timeline.open(at: "25")
        #expect(try await line(timeline) == "40 39 | 27 26 25 24 | 10 9 .")
        for _ in 0..<40 {
            guard let gap = try await timeline.snapshot().segments.compactMap(\.gap).first else { break }
            try await timeline.fill(gap)
        }
        #expect(try await line(timeline) == (9...40).reversed().map { "\($0)" }.joined(separator: " ") + " .")
    }

    @Test(arguments: seeds(24))
    func `whatever is opened and loaded, each run is a run of the server's list`(_ seed: UInt64) async throws {
        var generator = SeededGenerator(seed: seed)
        source.statesNewer = seed % 3 != 0
        for step in 0..<30 {
            scene.clock.advance(by: .seconds(generator.uniform(in: 1..<20)))
            let number = generator.uniform(in: 1..<41)
            switch generator.uniform(in: 0..<6) {
            case 0: try await timeline.refresh()
            case 1, 2: try await timeline.open(at: "\(number)")
            case 3: _ = try await timeline.loadOlder()
            case 4: _ = try await timeline.loadNewer()
            default:
                guard let top = source.numbers.max(), top < 60 else { continue }
                source.numbers.insert(top + 1)
            }
            let shown = try? await timeline.snapshot()
            var last = Int.max
            for segment in shown?.segments ?? [] {
                guard case .items(let items) = segment else { continue }
                let run = items.compactMap { Int($0.id) }
                let place = "seed \(seed), step \(step): \(shown?.line ?? "")"
                #expect(zip(run, run.dropFirst()).allSatisfy { $0 == $1 + 1 }, "\(place)")
                #expect(run[0] < last, "\(place)")
                last = run[run.count - 1]
            }
        }
        try await timeline.refresh()
        while let gap = try await timeline.snapshot().segments.compactMap(\.gap).first {
            if try await timeline.fill(gap) == .full { break }
        }
        while try await timeline.loadOlder() == .more {}
        let all = source.numbers.sorted(by: >).map { "\($0)" }.joined(separator: " ")
        #expect(try await line(timeline) == all + " .", "seed \(seed)")
    }
}
