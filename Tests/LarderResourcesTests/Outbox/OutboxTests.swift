import Foundation
import LarderEvents
import LarderResources
import LarderStorage
import LarderTesting
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@Suite("Outbox", .oneMinute)
struct OutboxTests {
    let scene = CacheScene()
    let server = LikeServer(posts: 60)

    private func mine(_ cache: LarderCache, _ id: String) async throws -> Bool {
        try await cache.value(server.post(resource: id), .cacheOnly).isMine
    }

    @Test func `a tap is shown at once everywhere, survives process death, and reaches the server once`() async throws {
        var cache = try scene.cache()
        let list = server.list(["1", "2"])
        _ = try await cache.value(list)
        try cache.enqueue(Tap(post: "1", isLike: true), server.operation)
        #expect(try await mine(cache, "1"))
        let shown = try await cache.snapshot(list, .cacheOnly)
        #expect(shown.value?.items.first?.likes == 11 && shown.pendingChanges == 1 && shown.source == .merged)
        cache = try scene.cache()
        cache.outbox.register(server.operation)
        // From the first snapshot on.
        let seen = SequenceRecorder(cache.snapshots(list, .cacheOnly))
        await seen.wait(for: 1)
        #expect(seen.elements[0].value?.items.first?.isMine == true)
        cache.outbox.resume()
        try await cache.outbox.drained()
        #expect(server.requests == [["1+"]])
        await seen.wait { $0.last?.pendingChanges == 0 }
        // No snapshot showed the post without the like.
        #expect(
            seen.elements.allSatisfy { $0.value?.items.first?.isMine == true && $0.value?.items.first?.likes == 11 }
        )
        #expect(cache.outbox.entries.isEmpty)
        let again = try scene.cache()
        #expect(try await mine(again, "1"))
    }

    @Test func `unsent taps become one operation or none`() async throws {
        let cache = try scene.cache()
        _ = try await cache.value(server.list(["1", "2"]))
        var operation = server.operation
        operation.coalesce = { _, new in new.post == "1" ? .removeBoth : .replace(new) }
        #expect(try cache.enqueue(Tap(post: "1", isLike: true), operation) != nil)
        #expect(try cache.enqueue(Tap(post: "1", isLike: false), operation) == nil)
        #expect(try await !mine(cache, "1"))
        for isLike in [true, false, true] { try cache.enqueue(Tap(post: "2", isLike: isLike), operation) }
        #expect(try await mine(cache, "2"))
        #expect(cache.outbox.entries.count == 1)
        cache.outbox.resume()
        try await cache.outbox.drained()
        #expect(server.requests == [["2+"]])
    }

    @Test func `an acknowledgement ends its own operation, and never a newer tap`() async throws {
        let cache = try scene.cache()
        _ = try await cache.value(server.list(["1"]))
        let gate = ScriptedSource<Int>()
        var operation = server.operation
        let server = server
        operation.send = { attempts in
            _ = try await gate.fetch(FetchContext())
            return try server.send(attempts)
        }
        let slow = operation
        try cache.enqueue(Tap(post: "1", isLike: true), slow)
        cache.outbox.resume()
        await gate.waitForRequests(1)
        // The operation is in flight: the next tap is another operation.
        try cache.enqueue(Tap(post: "1", isLike: false), slow)
        #expect(try await !mine(cache, "1"))
        let seen = SequenceRecorder(cache.snapshots(server.post(resource: "1"), .cacheOnly))
        await seen.wait(for: 1)
        gate.answer(0, .value(0))
        await gate.waitForRequests(2)
        #expect(try await !mine(cache, "1"))
        gate.answer(1, .value(0))
        try await cache.outbox.drained()
        #expect(server.requests == [["1+"], ["1-"]] && !server.post("1").isMine)
        #expect(seen.elements.allSatisfy { $0.value?.isMine == false })
    }

    @Test func `new server values are shown with the pending change applied`() async throws {
        let cache = try scene.cache()
        let post = server.post(resource: "1")
        _ = try await cache.value(post)
        try cache.enqueue(Tap(post: "1", isLike: true), server.operation)
        // Another user likes the post, and a refetch races with the batch.
        server.state.withLock { $0.posts["1"] = Liked(id: "1", likes: 25, isMine: false, revision: 9) }
        let snapshot = try await cache.refresh(post)
        #expect(snapshot.value == Liked(id: "1", likes: 26, isMine: true, revision: 9))
    }

    @Test func `a rejection rolls the like back with its reason, and can be retried, edited or dropped`()
        async throws
    {
        let cache = try scene.cache()
        _ = try await cache.value(server.list(["1", "2", "3"]))
        server.behave { _ in .rejects(["1", "2", "3"]) }
        for post in ["1", "2", "3"] { try cache.enqueue(Tap(post: post, isLike: true), server.operation) }
        cache.outbox.resume()
        try await cache.outbox.drained()
        for post in ["1", "2", "3"] { #expect(try await !mine(cache, post)) }
        let rejected = cache.outbox.entries
        #expect(rejected.map(\.state) == [.rejected, .rejected, .rejected])
        #expect(rejected[0].error?.status == 403 && cache.outbox.status.rejected == 3)
        server.behave { _ in .answers }
        try cache.outbox.retry(rejected[0].id)
        try cache.outbox.edit(rejected[1].id, to: Tap(post: "2", isLike: true), server.operation)
        try cache.outbox.drop(rejected[2].id)
        #expect(try await mine(cache, "1"))
        try await cache.outbox.drained()
        #expect(server.post("1").isMine && server.post("2").isMine && !server.post("3").isMine)
        #expect(cache.outbox.entries.isEmpty)
        #expect(throws: LarderError.self) { try cache.outbox.retry(rejected[0].id) }
    }

    @Test(arguments: [404, 409, 410, 412, 422])
    func `after a rejection that says that the server has another state, the value is stale`(_ status: Int)
        async throws
    {
        let cache = try scene.cache()
        let post = server.post(resource: "1")
        _ = try await cache.value(post)
        var operation = server.operation
        operation.send = { attempts in
            attempts.map { _ -> Outbox.Outcome<Liked> in .rejected(LarderError(.rejected, "No.", status: status)) }
        }
        try cache.enqueue(Tap(post: "1", isLike: true), operation)
        cache.outbox.resume()
        try await cache.outbox.drained()
        let stored = try #require(cache.stored(post))
        #expect(stored.value?.isMine == false)
        #expect(stored.freshness == (status == 422 ? Freshness.fresh : .stale(.invalidated)))
    }

    @Test func `a thousand taps are sent in ten requests, and one rejected item fails alone`() async throws {
        let server = LikeServer(posts: 1_000)
        let cache = try scene.cache(inMemory: true)
        server.behave { _ in .rejects(["7"]) }
        for index in 0..<1_000 { try cache.enqueue(Tap(post: "\(index)", isLike: true), server.operation) }
        cache.outbox.resume()
        try await cache.outbox.drained()
        #expect(server.requests.count == 10 && server.requests.allSatisfy { $0.count == 100 })
        #expect(cache.outbox.entries.map(\.scope) == ["7"])
    }

    @Test func `a rejected operation blocks its own scope and no other`() async throws {
        let cache = try scene.cache()
        var operation = server.operation
        operation.coalescingKey = { _ in nil }
        operation.rejectionBlocksScope = true
        operation.batchMaximum = 1
        let held = operation
        server.behave { _ in .rejects(["1"]) }
        for isLike in [true, false] { try cache.enqueue(Tap(post: "1", isLike: isLike), held) }
        for isLike in [true, false, true] { try cache.enqueue(Tap(post: "2", isLike: isLike), held) }
        cache.outbox.resume()
        let statuses = SequenceRecorder(cache.outbox.statuses)
        await statuses.wait { $0.last.map { $0.blockedScopes == 1 && $0.pending == 1 && $0.inFlight == 0 } ?? false }
        #expect(server.requests.filter { $0[0].hasPrefix("2") } == [["2+"], ["2-"], ["2+"]])
        #expect(server.requests.filter { $0[0].hasPrefix("1") } == [["1+"]])
        server.behave { _ in .answers }
        try cache.outbox.retry(try #require(cache.outbox.entries.first).id)
        try await cache.outbox.drained()
        #expect(server.requests.filter { $0[0].hasPrefix("1") } == [["1+"], ["1+"], ["1-"]])
    }

    @Test
    func `a transient failure is retried under the same key with growing delays, and not before Retry-After`()
        async throws
    {
        let cache = try scene.cache()
        server.behave { number in
            switch number {
            case 1: .isUnreachable
            case 2: .losesReply
            case 3: .isBusy(.seconds(30))
            default: .answers
            }
        }
        _ = try await cache.value(server.list(["1"]))
        try cache.enqueue(Tap(post: "1", isLike: true), server.operation)
        cache.outbox.resume()
        // By the scene's random number, half of the longest delay each time, after the delay that the server asks for.
        for (count, wait) in [(1, 500), (2, 1_000), (3, 32_000)] {
            let statuses = SequenceRecorder(cache.outbox.statuses)
            await statuses.wait { [server] in $0.last?.inFlight == 0 && server.requests.count == count }
            scene.clock.advance(by: .milliseconds(wait - 1))
            #expect(server.requests.count == count)
            scene.clock.advance(by: .milliseconds(1))
            await statuses.wait { [server] _ in server.requests.count == count + 1 }
        }
        try await cache.outbox.drained()
        #expect(server.state.withLock { $0.effects } == 1)
        #expect(try await mine(cache, "1"))
    }

    @Test func `nothing is sent while the network may not be used, and everything afterwards`() async throws {
        let cache = try scene.cache()
        scene.isOnline.withLock { $0 = false }
        cache.outbox.resume()
        try cache.enqueue(Tap(post: "1", isLike: true), server.operation)
        #expect(cache.outbox.status.pending == 1)
        scene.isOnline.withLock { $0 = true }
        cache.networkReturned()
        try await cache.outbox.drained()
        #expect(server.requests == [["1+"]])
    }

    @Test func `the cost of a tap does not grow with the backlog`() throws {
        let cache = try scene.cache()
        let disk = try #require(cache.outboxDisk)
        var costs: [Int64] = []
        for index in 0..<2_000 {
            let before = try disk.rowChanges()
            try cache.enqueue(Tap(post: "\(index)", isLike: true), server.operation)
            costs.append(try disk.rowChanges() - before)
        }
        #expect(Set(costs.dropFirst()) == [1])
    }

    @Test func `idempotency keys are distinct UUIDs in lower case`() {
        let make = CacheConfiguration().makeIdempotencyKey
        let keys = (0..<100).map { _ in make() }
        #expect(Set(keys).count == 100)
        for key in keys {
            #expect(UUID(uuidString: key)?.uuidString.lowercased() == key)
            let digits = Array(key)
            #expect(digits[14] == "4" && "89ab".contains(digits[19]))
        }
    }

    // MARK: Process death

    /// Taps, kills the process at a step of the disk, restarts, and lets it finish: for each step of the disk.
    @Test(arguments: [false, true])
    func `after process death at any step, acknowledged operations have one effect and others none`(_ halfWay: Bool)
        async throws
    {
        for step in 1...60 {
            let scene = CacheScene()
            let server = LikeServer(posts: 3)
            server.behave { $0 % 2 == 1 ? .losesReply : .answers }
            let killable = KillableStore(DiskStore.Configuration(directory: scene.path, clock: scene.clock))
            // The first process tries once, so that a dead disk is not used again and again.
            func open(jitter: Double) throws -> LarderCache {
                var configuration = scene.configuration()
                configuration.storage = .store(try killable.store())
                configuration.random = { jitter }
                return try LarderCache(configuration)
            }
            var cache = try open(jitter: 1)
            _ = try await cache.value(server.list(["0", "1", "2"]))
            killable.kill(atStep: step, halfWay: halfWay)
            var promised: [String: Bool] = [:]
            for (post, isLike) in [("0", true), ("1", true), ("0", false), ("2", true), ("0", true)] {
                // A tap that threw was not acknowledged.
                do { try cache.enqueue(Tap(post: post, isLike: isLike), server.operation) } catch { continue }
                promised[post] = isLike
            }
            let ends = SequenceRecorder(cache.outbox.statuses)
            cache.outbox.resume()
            // Continues until the outbox is empty or cannot continue.
            let events = scene
            await ends.wait { statuses in
                statuses.last.map { $0.isDrained || ($0.inFlight == 0 && !server.requests.isEmpty) } ?? false
                    || events.events.withLock { $0.contains { if case .storageFailed = $0 { true } else { false } } }
            }
            cache.close()
            _ = try killable.reopen()
            cache = try open(jitter: 0)
            cache.outbox.register(server.operation)
            cache.outbox.resume()
            try await cache.outbox.drained()
            for (post, isLike) in promised {
                #expect(server.post(post).isMine == isLike, "killed at step \(step), post \(post)")
                #expect(server.post(post).likes == (isLike ? 11 : 10))
            }
        }
    }

    @Test(arguments: seeds(2))
    func `random taps, crashes and lost replies end with the last taps on the server`(_ seed: UInt64) async throws {
        var generator = SeededGenerator(seed: seed)
        let server = LikeServer(posts: 50)
        server.behave { number in
            var generator = SeededGenerator(seed: seed &* 1_000 &+ UInt64(number))
            switch generator.uniform(in: 0..<5) {
            case 0: return .losesReply
            case 1: return .isUnreachable
            case 2: return .isBusy(.zero)
            default: return .answers
            }
        }
        func open() throws -> LarderCache {
            var configuration = scene.configuration()
            configuration.random = { 0 }
            let cache = try LarderCache(configuration)
            cache.outbox.register(server.operation)
            return cache
        }
        var cache = try open()
        var hearts: [String: Bool] = [:]
        _ = try await cache.value(server.list((0..<50).map { "\($0)" }))
        for tap in 0..<500 {
            let post = "\(generator.uniform(in: 0..<50))"
            let isLike = !(hearts[post] ?? false)
            try cache.enqueue(Tap(post: post, isLike: isLike), server.operation)
            hearts[post] = isLike
            if tap % 100 == 50 { cache.outbox.resume() }
            if tap == 250 { cache = try open() }
            #expect(
                try await cache.value(server.post(resource: post), .cacheOnly).isMine == isLike,
                "seed \(seed), tap \(tap)"
            )
        }
        cache.outbox.resume()
        try await cache.outbox.drained()
        for (post, isMine) in hearts {
            #expect(server.post(post).isMine == isMine, "seed \(seed), post \(post)")
            #expect(server.post(post).likes == (isMine ? 11 : 10))
        }
    }
}
