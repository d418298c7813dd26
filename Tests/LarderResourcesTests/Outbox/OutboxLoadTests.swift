import LarderEvents
import LarderResources
import LarderTesting
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@Suite("Outbox: load", .oneMinute)
struct OutboxLoadTests {
    /// Records the order of sends. Each one waits until the test answers it.
    final class SlowServer: Sendable {
        let gate = ScriptedSource<Int>()
        let order = Mutex<[String]>([])
        let running = Mutex((now: 0, most: 0))

        func operation(_ name: String = "slow") -> WriteBehind<Tap, Int> {
            WriteBehind<Tap, Int>(
                name,
                scope: { $0.post },
                changes: { _, _ in },
                send: { [self] attempts in
                    order.withLock { $0 += attempts.map(\.input.post) }
                    running.withLock { running in
                        running.now += 1
                        running.most = max(running.most, running.now)
                    }
                    defer { running.withLock { $0.now -= 1 } }
                    _ = try await gate.fetch(FetchContext())
                    return attempts.map { _ in .accepted(1) }
                }
            )
        }
    }

    let scene = CacheScene()
    let server = SlowServer()

    private func tap(_ post: String) -> Tap { Tap(post: post, isLike: true) }

    private func answer(_ indices: Range<Int>) async {
        for index in indices {
            await server.gate.waitForRequests(index + 1)
            // Of several requests at once one may count before it waits.
            await rest()
            #expect(server.gate.answer(index, .value(1)))
        }
    }

    @Test(arguments: [(1.0, 4), (0.5, 2), (0.0, 1)])
    func `no more batches are sent at once than the network behavior allows`(
        _ factor: Double,
        _ expected: Int
    ) async throws {
        var configuration = scene.configuration()
        configuration.networkBehavior = { NetworkBehavior(concurrencyFactor: factor) }
        let cache = try LarderCache(configuration)
        for post in 0..<40 { try cache.enqueue(tap("\(post)"), server.operation()) }
        cache.outbox.resume()
        await server.gate.waitForRequests(expected)
        #expect(cache.outbox.status.inFlight == expected && cache.outbox.status.pending == 40 - expected)
        await answer(0..<40)
        try await cache.outbox.drained()
        #expect(server.running.withLock { $0.most } == expected)
        cache.close()
    }

    @Test func `the time in the queue is not a part of an attempt's time`() async throws {
        let cache = try scene.cache()
        for post in 0..<40 { try cache.enqueue(tap("\(post)"), server.operation()) }
        cache.outbox.resume()
        await server.gate.waitForRequests(4)
        for index in 0..<40 {
            await server.gate.waitForRequests(min(40, index + 4))
            // The last one waits for longer than its timeout of a minute before it is sent.
            scene.clock.advance(by: .seconds(10))
            await answer(index..<(index + 1))
            // The clock moves when the answer has been stored.
            await rest()
            #expect(cache.outbox.entries.count == 39 - index)
        }
        try await cache.outbox.drained()
        #expect(server.gate.requests.count == 40)
        let postponed = scene.events.withLock { events in
            events.filter { if case .postponed = $0 { true } else { false } }
        }
        #expect(postponed.isEmpty)
        cache.close()
    }

    @Test func `lanes take turns, and a lane with many operations does not hold up the others`() async throws {
        var configuration = scene.configuration()
        configuration.concurrentSendsMaximum = 1
        let cache = try LarderCache(configuration)
        for post in ["a", "a", "a", "b", "c", "b"] { try cache.enqueue(tap(post), server.operation()) }
        cache.outbox.resume()
        await answer(0..<6)
        try await cache.outbox.drained()
        #expect(server.order.withLock { $0 } == ["a", "b", "c", "a", "b", "a"])
        cache.close()
    }

    @Test func `an awaited write waits neither for requests that hang nor for waiting changes`() async throws {
        var configuration = scene.configuration()
        configuration.concurrentSendsMaximum = 1
        let cache = try LarderCache(configuration)
        for post in ["a", "b", "c"] { try cache.enqueue(tap(post), server.operation()) }
        cache.outbox.resume()
        await server.gate.waitForRequests(1)
        let server = server
        let payment = WriteThrough<Tap, Int>("pay", scope: { _ in "pay" }) { attempt in
            server.order.withLock { $0.append("paid") }
            return .accepted(7)
        }
        #expect(try await cache.commit(tap("x"), payment) == 7)
        #expect(cache.outbox.status.inFlight == 1 && cache.outbox.status.pending == 2)
        await answer(0..<3)
        try await cache.outbox.drained()
        #expect(server.order.withLock { $0 } == ["a", "paid", "b", "c"])
        cache.close()
    }

    @Test func `an awaited write counts as an operation`() async throws {
        var configuration = scene.configuration(inMemory: true)
        configuration.outboxOperationsMaximum = 0
        let cache = try LarderCache(configuration)
        cache.outbox.resume()
        let error = await #expect(throws: LarderError.self) {
            try await cache.commit(tap("3"), WriteThrough<Tap, Int>("pay", scope: { _ in "p" }) { _ in .accepted(1) })
        }
        #expect(error?.code == .outboxFull && cache.outbox.entries.isEmpty)
    }

    @Test(arguments: [false, true])
    func `the number of operations is bounded, and the error names the limit`(_ inMemory: Bool) async throws {
        var configuration = scene.configuration(inMemory: inMemory)
        configuration.outboxOperationsMaximum = 3
        let cache = try LarderCache(configuration)
        let likes = LikeServer(posts: 10)
        for post in 0..<3 { try cache.enqueue(tap("\(post)"), likes.operation) }
        let error = #expect(throws: LarderError.self) { try cache.enqueue(tap("3"), likes.operation) }
        #expect(error?.code == .outboxFull)
        #expect(error?.description.contains("CacheConfiguration.outboxOperationsMaximum is 3") ?? false)
        #expect(cache.outbox.entries.count == 3)
        // It takes the place of an operation that is there.
        try cache.enqueue(tap("2"), likes.operation)
        try cache.outbox.drop(try #require(cache.outbox.entries.first?.id))
        try cache.enqueue(tap("3"), likes.operation)
        cache.outbox.resume()
        try await cache.outbox.drained()
        #expect(likes.state.withLock { $0.effects } == 3)
        cache.close()
    }

    @Test func `the bytes of the operations are bounded, also when operations become longer`() async throws {
        var configuration = scene.configuration()
        configuration.outboxBytesMaximum = 2_000
        let cache = try LarderCache(configuration)
        var operation = WriteBehind<Note, Int>("note", scope: { $0.id }, changes: { _, _ in }, send: { _ in [] })
        operation.coalescingKey = { $0.id }
        operation.coalesce = { .replace(Note(id: $0.id, text: $0.text + $1.text)) }
        let text = String(repeating: "x", count: 800)
        for id in ["a", "b"] { try cache.enqueue(Note(id: id, text: text), operation) }
        for id in ["b", "c"] {
            let error = #expect(throws: LarderError.self) { try cache.enqueue(Note(id: id, text: text), operation) }
            #expect(error?.code == .outboxFull)
            #expect(error?.description.contains("CacheConfiguration.outboxBytesMaximum is 2000") ?? false)
        }
        #expect(try cache.outbox.entries.map { try $0.input(as: Note.self).text } == [text, text])
        cache.close()
        // Stored operations count after a restart.
        let restarted = try LarderCache(configuration)
        #expect(throws: LarderError.self) { try restarted.enqueue(Note(id: "c", text: text), operation) }
        try restarted.enqueue(Note(id: "c", text: ""), operation)
        restarted.close()
    }

    @Test func `a delayed batch takes later operations, and the first one waits no longer for them`() async throws {
        var configuration = scene.configuration()
        configuration.networkBehavior = { NetworkBehavior(batchDelay: .seconds(2)) }
        let cache = try LarderCache(configuration)
        let likes = LikeServer(posts: 20)
        cache.outbox.resume()
        for post in 0..<3 {
            try cache.enqueue(tap("\(post)"), likes.operation)
            scene.clock.advance(by: .milliseconds(500))
        }
        #expect(likes.requests.isEmpty)
        scene.clock.advance(by: .milliseconds(500))
        try await cache.outbox.drained()
        #expect(likes.requests == [["0+", "1+", "2+"]])
        cache.close()
    }
}
