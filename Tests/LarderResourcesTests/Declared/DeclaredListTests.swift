import LarderEvents
import LarderStorage
import LarderTesting
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import LarderResources

@Suite("Declared lists", .oneMinute)
struct DeclaredListTests {
    private let scene = CacheScene()
    private let board = JobBoard()

    init() {
        for rank in 1...4 { board.set(status: 0, rank: rank * 10) }
        for rank in 1...3 { board.set(status: 1, rank: rank * 10) }
    }

    private func open() throws -> LarderCache {
        var configuration = scene.configuration()
        configuration.operations = [board.operation]
        return try LarderCache(configuration)
    }

    /// A cache that has fetched both lists: j1 to j4, and j5 to j7.
    private func filled() async throws -> LarderCache {
        let cache = try open()
        for status in 0...1 { _ = try await cache.value(board.resource(status)) }
        return cache
    }

    private func shown(_ cache: LarderCache, _ status: Int) -> [String] {
        cache.stored(board.resource(status))?.value?.items.map(\.id) ?? ["–"]
    }

    @Test func `an event moves an entity between two lists, to its place by the order`() async throws {
        let cache = try await filled()
        let job = board.set("j2", status: 1, rank: 15)
        try await cache.update { $0.put(job) }
        #expect(shown(cache, 0) == ["j1", "j3", "j4"] && shown(cache, 1) == ["j5", "j2", "j6", "j7"])
        let again = board.set("j2", rank: 99)
        try await cache.update { $0.put(again) }
        #expect(shown(cache, 1) == ["j5", "j6", "j7", "j2"])
        let new = board.set(status: 0, rank: 5)
        try await cache.update { $0.put(new) }
        #expect(shown(cache, 0) == ["j8", "j1", "j3", "j4"])
        try await cache.update { $0.remove(Job.self, "j8") }
        #expect(shown(cache, 0) == ["j1", "j3", "j4"])
    }

    @Test func `a local modification moves an entity`() async throws {
        let cache = try await filled()
        try await cache.update { $0.modify(Job.self, "j1") { $0.status = 1 } }
        // By the order of ranks and identifiers: j1 and j5 have one rank.
        #expect(shown(cache, 0) == ["j2", "j3", "j4"] && shown(cache, 1) == ["j1", "j5", "j6", "j7"])
    }

    @Test func `a pending operation moves an entity offline, and a rejection moves it back`() async throws {
        let cache = try await filled()
        scene.isOnline.withLock { $0 = false }
        try cache.enqueue(JobEdit(kind: .set, id: "j3", status: 1, rank: 30), board.operation)
        try cache.enqueue(JobEdit(kind: .create, id: "local-1", status: 0, rank: 25), board.operation)
        try cache.enqueue(JobEdit(kind: .delete, id: "j1"), board.operation)
        #expect(shown(cache, 0) == ["j2", "local-1", "j4"] && shown(cache, 1) == ["j5", "j6", "j3", "j7"])
        #expect(cache.stored(board.resource(1))?.pendingChanges == 1)
        board.state.withLock { $0.rejected = ["j3"] }
        scene.isOnline.withLock { $0 = true }
        cache.networkReturned()
        cache.outbox.resume()
        try await cache.outbox.drained()
        #expect(shown(cache, 0) == ["j2", "j8", "j3", "j4"] && shown(cache, 1) == ["j5", "j6", "j7"])
    }

    @Test func `moves survive a restart, acknowledged and pending ones`() async throws {
        let cache = try await filled()
        let job = board.set("j2", status: 1, rank: 15)
        let new = board.set(status: 0, rank: 12)
        try await cache.update {
            $0.put(job)
            $0.put(new)
        }
        scene.isOnline.withLock { $0 = false }
        try cache.enqueue(JobEdit(kind: .set, id: "j3", status: 1, rank: 1), board.operation)
        cache.close()
        let later = try open()
        #expect(shown(later, 0) == ["j1", "j8", "j4"] && shown(later, 1) == ["j3", "j5", "j2", "j6", "j7"])
        // An event after the restart, before the other list was read.
        let moved = board.set("j4", status: 1, rank: 100)
        try await later.update { $0.put(moved) }
        later.close()
        let last = try open()
        #expect(shown(last, 1) == ["j3", "j5", "j2", "j6", "j7", "j4"])
        #expect(shown(last, 0) == ["j1", "j8"])
    }

    @Test func `the source decides about everything that it has returned, until a later change`() async throws {
        let cache = try await filled()
        // The source's order and membership are its own.
        let odd = Resource<EntityList<Job>>.list(
            "odd",
            of: Job.self,
            where: { $0.status == 0 },
            sortedBy: Job.precedes
        ) { [board] _ in
            .value(EntityList(["j6", "j3", "j1"].compactMap { id in board.state.withLock { $0.jobs[id] } }))
        }
        #expect(try await cache.value(odd).items.map(\.id) == ["j6", "j3", "j1"])
        let job = board.set("j3", rank: 31)
        try await cache.update { $0.put(job) }
        // j3 no longer lies between its neighbours by the order, j6 is not looked at.
        #expect(cache.stored(odd)?.value?.items.map(\.id) == ["j6", "j1", "j3"])
        #expect(try await cache.refresh(odd).value?.items.map(\.id) == ["j6", "j3", "j1"])
    }

    @Test func `a change during a request wins over its answer`() async throws {
        let cache = try await filled()
        let (began, answer) = (Hold(), AsyncStream.makeStream(of: EntityList<Job>.self))
        let slow = Resource<EntityList<Job>>.list(
            "jobs",
            ["status": "0"],
            of: Job.self,
            where: { $0.status == 0 },
            sortedBy: Job.precedes
        ) { _ in
            began.open()
            for await list in answer.stream { return .value(list) }
            return .gone
        }
        async let refreshed = cache.refresh(slow)
        await Task.detached { began.wait() }.value
        let before = board.list(0)
        let job = board.set("j2", status: 1, rank: 15)
        try await cache.update { $0.put(job) }
        answer.continuation.yield(before)
        #expect(try await refreshed.value?.items.map(\.id) == ["j1", "j3", "j4"])
        #expect(shown(cache, 1) == ["j5", "j2", "j6", "j7"])
    }

    @Test func `an entity behind the loaded end of an incomplete list is not shown`() async throws {
        board.state.withLock { $0.limit = [0: 2] }
        let cache = try await filled()
        #expect(shown(cache, 0) == ["j1", "j2"])
        let (behind, within) = (board.set("j5", status: 0, rank: 35), board.set("j6", status: 0, rank: 15))
        try await cache.update {
            $0.put(behind)
            $0.put(within)
        }
        #expect(shown(cache, 0) == ["j1", "j6", "j2"] && shown(cache, 1) == ["j7"])
        let moved = board.set("j1", rank: 90)
        try await cache.update { $0.put(moved) }
        #expect(shown(cache, 0) == ["j6", "j2"])
    }

    @Test func `a list shows any number of changed entities, also after a restart`() async throws {
        let cache = try await filled()
        try await cache.update { update in
            for number in 0..<300 { update.put(board.set("n\(number)", status: 1, rank: 50)) }
        }
        let shown = try #require(cache.stored(board.resource(1)))
        #expect(shown.value?.items.count == 303 && shown.freshness == .fresh)
        cache.close()
        let again = try #require(open().stored(board.resource(1)))
        #expect(again.value?.items == shown.value?.items && again.freshness == .fresh)
    }

    @Test func `conditions and orders run outside of changes, and may change the cache`() async throws {
        let cache = try await filled()
        let calls = Mutex(0)
        let list = Resource<EntityList<Job>>.list(
            "re-entrant",
            of: Job.self,
            where: { _ in
                calls.withLock { $0 += 1 }
                try? cache.updateBlocking { $0.setMetadata([1], for: "called") }
                return true
            },
            sortedBy: { left, right in
                try? cache.updateBlocking { $0.setMetadata([2], for: "called") }
                return Job.precedes(left, right)
            }
        ) { [board] _ in .value(board.list(0)) }
        var snapshots = cache.snapshots(list, .cacheOnly).makeAsyncIterator()
        _ = try await cache.value(list)
        let job = board.set("j6", rank: 1)
        try await cache.update { $0.put(job) }
        while let snapshot = await snapshots.next(isolation: nil) {
            if snapshot.value?.items.map(\.id) == ["j6", "j1", "j2", "j3", "j4"] { break }
        }
        #expect(calls.withLock { $0 } > 0)
    }

    @Test(arguments: [false, true])
    func `a created entity is shown once when an event brings it before its acknowledgement`(_ namesItself: Bool)
        async throws
    {
        let cache = try await filled()
        let list = Resource<EntityList<Job>>.list(
            "jobs with temporary IDs",
            of: Job.self,
            where: { $0.status == 0 },
            sortedBy: Job.precedes,
            temporaryID: { $0.id == "j8" || namesItself && $0.id == "local-1" ? "local-1" : nil }
        ) { [board] _ in .value(board.list(0)) }
        _ = try await cache.value(list)
        scene.isOnline.withLock { $0 = false }
        try cache.enqueue(JobEdit(kind: .create, id: "local-1", status: 0, rank: 25), board.operation)
        func shown() -> [String] { cache.stored(list)?.value?.items.map(\.id) ?? [] }
        #expect(shown() == ["j1", "j2", "local-1", "j3", "j4"])
        let confirmed = board.set(status: 0, rank: 25)
        try await cache.update { $0.put(confirmed) }
        #expect(shown() == ["j1", "j2", "j8", "j3", "j4"])
        // Somebody else has moved it since.
        let moved = board.set("j8", status: 1)
        try await cache.update { $0.put(moved) }
        #expect(shown() == ["j1", "j2", "j3", "j4"])
    }

    @Test func `a change by another process moves an entity here, and an answer there is the source's word`()
        async throws
    {
        let (here, there) = (try await filled(), try open())
        let job = board.set("j2", status: 1, rank: 15)
        try await there.update { $0.put(job) }
        scene.clock.advance(by: .milliseconds(100))
        #expect(shown(here, 0) == ["j1", "j3", "j4"] && shown(here, 1) == ["j5", "j2", "j6", "j7"])
        // A change here, on top of the one there.
        let next = board.set("j3", status: 1, rank: 25)
        try await here.update { $0.put(next) }
        scene.clock.advance(by: .milliseconds(100))
        #expect(shown(there, 0) == ["j1", "j4"] && shown(there, 1) == ["j5", "j2", "j6", "j3", "j7"])
        board.set("j1", rank: 99)
        _ = try await there.refresh(board.resource(0))
        scene.clock.advance(by: .milliseconds(100))
        #expect(shown(here, 0) == ["j4", "j1"])
    }

    @Test func `an observer sees an entity arrive that its list did not contain`() async throws {
        let cache = try await filled()
        var snapshots = cache.snapshots(board.resource(1), .cacheOnly).makeAsyncIterator()
        #expect(await snapshots.next(isolation: nil)?.value?.items.count == 3)
        try cache.enqueue(JobEdit(kind: .set, id: "j3", status: 1, rank: 1), board.operation)
        while let snapshot = await snapshots.next(isolation: nil) {
            if snapshot.value?.items.first?.id == "j3" { break }
        }
    }

    @Test func `lists for which the store is too small do not ask in turns for ever`() async throws {
        for status in 0...1 { for rank in 0..<80 { board.set(status: status, rank: rank) } }
        var configuration = scene.configuration()
        configuration.editStore {
            $0.bytesMaximum = 30_000
            $0.freeBytesMinimum = 0
        }
        configuration.memoryEntriesMaximum = 64
        let cache = try LarderCache(configuration)
        let seen = (0...1).map { SequenceRecorder(cache.snapshots(board.resource($0))) }
        func requests() -> Int { board.state.withLock { $0.requests } }
        await rest()
        let before = requests()
        #expect(before < 100)
        // What is on a screen is asked for again, later.
        scene.clock.advance(by: .seconds(60))
        await rest()
        #expect((before + 1..<before + 20).contains(requests()))
        withExtendedLifetime(seen) {}
    }
}
