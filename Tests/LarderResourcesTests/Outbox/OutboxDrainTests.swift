import LarderEvents
import LarderResources
import LarderStorage
import LarderTesting
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@Suite("Outbox: drain", .oneMinute)
struct OutboxDrainTests {
    let scene = CacheScene()
    let server = LikeServer(posts: 10)

    private func drained(_ cache: LarderCache, within limit: Duration) async throws -> [Outbox.Reason] {
        try await cache.outbox.drain(within: limit).map(\.reason)
    }

    @Test func `a drain sends all operations`() async throws {
        let cache = try scene.cache()
        for index in 0..<10 { try cache.enqueue(Tap(post: "\(index)", isLike: true), server.operation) }
        cache.outbox.resume()
        let drain = try await cache.outbox.drain(within: .seconds(5))
        #expect(drain.isEmpty)
        #expect(server.state.withLock { $0.effects } == 10)
    }

    @Test func `a drain does not wait for operations that cannot be sent within the limit, and returns the reasons`()
        async throws
    {
        let cache = try scene.cache()
        try cache.enqueue(Tap(post: "1", isLike: true), server.operation)
        #expect(try await drained(cache, within: .seconds(5)) == [.paused])
        scene.isOnline.withLock { $0 = false }
        cache.outbox.resume()
        #expect(try await drained(cache, within: .seconds(5)) == [.offline])
        server.behave { _ in .isUnreachable }
        scene.isOnline.withLock { $0 = true }
        let statuses = SequenceRecorder(cache.outbox.statuses)
        cache.networkReturned()
        await statuses.wait { [server] in $0.last?.inFlight == 0 && server.requests.count == 1 }
        // The scene's random number puts the next attempt half a second ahead.
        let drain = try await cache.outbox.drain(within: .milliseconds(400))
        #expect(drain.map(\.reason) == [.postponed] && drain[0].entry.error?.code == .offline)
        let again = try scene.cache()
        again.outbox.resume()
        #expect(try await drained(again, within: .seconds(5)) == [.unregistered])
    }

    @Test func `without a session all operations wait together, and none is tried after the other`() async throws {
        let cache = try scene.cache()
        let server = LikeServer(posts: 40)
        server.behave { _ in .lacksSession }
        var operation = server.operation
        operation.batchMaximum = 1
        for index in 0..<40 { try cache.enqueue(Tap(post: "\(index)", isLike: true), operation) }
        cache.outbox.resume()
        // The scene's random number puts the next attempt half a second ahead.
        #expect(try await drained(cache, within: .milliseconds(400)).allSatisfy { $0 == .postponed })
        #expect(server.requests.count <= cache.configuration.concurrentSendsMaximum)
        server.behave { _ in .answers }
        cache.networkReturned()
        try await cache.outbox.drained()
        #expect(server.state.withLock { $0.effects } == 40)
    }

    @Test func `a drain waits for a retry within the limit`() async throws {
        let cache = try scene.cache()
        server.behave { $0 == 1 ? .isUnreachable : .answers }
        try cache.enqueue(Tap(post: "1", isLike: true), server.operation)
        let statuses = SequenceRecorder(cache.outbox.statuses)
        cache.outbox.resume()
        await statuses.wait { [server] in $0.last?.inFlight == 0 && server.requests.count == 1 }
        let outbox = cache.outbox
        let drain = Task { try await outbox.drain(within: .seconds(5)) }
        try await scene.clock.waitForSleepers(2)
        scene.clock.advance(by: .milliseconds(500))
        #expect(try await drain.value.isEmpty)
    }

    @Test func `after the limit a drain returns the operations in flight, which continue`() async throws {
        let cache = try scene.cache()
        let gate = ScriptedSource<Int>()
        var operation = server.operation
        let server = server
        operation.send = { attempts in
            _ = try await gate.fetch(FetchContext())
            return try server.send(attempts)
        }
        try cache.enqueue(Tap(post: "1", isLike: true), operation)
        cache.outbox.resume()
        await gate.waitForRequests(1)
        let outbox = cache.outbox
        let drain = Task { try await outbox.drain(within: .seconds(3)) }
        // The sleepers: the time limit of the request, and the drain.
        try await scene.clock.waitForSleepers(2)
        scene.clock.advance(by: .seconds(3))
        let left = try await drain.value
        #expect(left.map(\.reason) == [.sending])
        gate.answer(0, .value(0))
        try await outbox.drained()
        #expect(server.post("1").isMine)
    }

    @Test func `drained throws when the store fails, and the operations are sent when it is writable again`()
        async throws
    {
        let killable = KillableStore(DiskStore.Configuration(directory: scene.path, clock: scene.clock))
        var configuration = scene.configuration()
        configuration.storage = .store(try killable.store())
        let cache = try LarderCache(configuration)
        try cache.enqueue(Tap(post: "1", isLike: true), server.operation)
        killable.fail(.full, untilHealed: true)
        cache.outbox.resume()
        let full = await #expect(throws: LarderError.self) { try await cache.outbox.drained() }
        #expect(full?.code == .storage && cache.outbox.entries.count == 1)
        killable.heal()
        cache.networkReturned()
        try await cache.outbox.drained()
        #expect(server.post("1").isMine)
    }

    @Test func `drained throws each time for a store that is gone for good`() async throws {
        let killable = KillableStore(DiskStore.Configuration(directory: scene.path, clock: scene.clock))
        var configuration = scene.configuration()
        configuration.storage = .store(try killable.store())
        let cache = try LarderCache(configuration)
        try cache.enqueue(Tap(post: "1", isLike: true), server.operation)
        let outbox = cache.outbox
        scene.isOnline.withLock { $0 = false }
        outbox.resume()
        let waiting = Task { try await outbox.drained() }
        killable.kill()
        scene.isOnline.withLock { $0 = true }
        cache.networkReturned()
        let first = await #expect(throws: LarderError.self) { try await waiting.value }
        let second = await #expect(throws: LarderError.self) { try await outbox.drained() }
        #expect(first?.code == .storage && second?.code == .storage)
        #expect(server.requests.isEmpty)
    }

    @Test func `a drain whose store cannot be read reports it, and returns what is left`() async throws {
        let killable = KillableStore(DiskStore.Configuration(directory: scene.path, clock: scene.clock))
        var configuration = scene.configuration()
        configuration.storage = .store(try killable.store())
        let cache = try LarderCache(configuration)
        try cache.enqueue(Tap(post: "1", isLike: true), server.operation)
        killable.kill()
        #expect(try await drained(cache, within: .seconds(5)) == [.paused])
        #expect(scene.events.withLock { $0.contains { if case .storageFailed = $0 { true } else { false } } })
    }

    @Test func `a drain does not wait while the outbox may not send`() async throws {
        var configuration = scene.configuration()
        configuration.networkBehavior = { NetworkBehavior(sendsOutbox: false) }
        let cache = try LarderCache(configuration)
        try cache.enqueue(Tap(post: "1", isLike: true), server.operation)
        cache.outbox.resume()
        let end = scene.clock.uptime + .seconds(5)
        let outbox = cache.outbox
        let isDone = Mutex(false)
        let drain = Task {
            defer { isDone.withLock { $0 = true } }
            return try await outbox.drain(within: .seconds(5))
        }
        await rest()
        let isEarly = isDone.withLock { $0 }
        if !isEarly { scene.clock.advance(by: .seconds(5)) }
        #expect(try await drain.value.map(\.reason) == [.offline])
        #expect(isEarly && scene.clock.uptime < end)
    }

    @Test func `drains of an erased cache say that it was closed`() async throws {
        let cache = try scene.cache()
        try cache.enqueue(Tap(post: "1", isLike: true), server.operation)
        try cache.erase()
        let error = await #expect(throws: LarderError.self) { try await cache.outbox.drained() }
        #expect(error?.code == .closed)
        let limited = await #expect(throws: LarderError.self) { try await cache.outbox.drain(within: .seconds(1)) }
        #expect(limited?.code == .closed)
    }

    @Test func `drained throws for a cancelled caller and for a closed cache`() async throws {
        let cache = try scene.cache()
        let gate = ScriptedSource<Int>()
        var operation = server.operation
        operation.send = { _ in
            _ = try await gate.fetch(FetchContext())
            return []
        }
        try cache.enqueue(Tap(post: "1", isLike: true), operation)
        cache.outbox.resume()
        await gate.waitForRequests(1)
        let outbox = cache.outbox
        let cancelled = Task { try await outbox.drain(within: .seconds(3)) }
        try await scene.clock.waitForSleepers(2)
        cancelled.cancel()
        let error = await #expect(throws: LarderError.self) { try await cancelled.value }
        #expect(error?.code == .cancelled)
        let closed = Task { try await outbox.drain(within: .seconds(3)) }
        try await scene.clock.waitForSleepers(2)
        cache.close()
        let end = await #expect(throws: LarderError.self) { try await closed.value }
        #expect(end?.code == .closed)
        let nonsense = await #expect(throws: LarderError.self) { try await outbox.drain(within: .seconds(-1)) }
        #expect(nonsense?.code == .invalidArgument)
    }
}
