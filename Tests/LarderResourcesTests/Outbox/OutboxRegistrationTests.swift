import LarderEvents
import LarderStorage
import LarderTesting
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import LarderResources

@Suite("Outbox: registration", .oneMinute)
struct OutboxRegistrationTests {
    let scene = CacheScene()
    let server = LikeServer(posts: 10)

    private func open() throws -> LarderCache {
        var configuration = scene.configuration()
        configuration.operations = [server.operation]
        return try LarderCache(configuration)
    }

    private func unregistered() -> [String] {
        scene.events.withLock { events in
            events.compactMap { event in
                if case .unregistered(let operation, let count) = event { "\(operation) \(count)" } else { nil }
            }
        }
    }

    @Test func `operations of an earlier process are shown at once and sent`() async throws {
        let first = try open()
        _ = try await first.value(server.list(["1", "2"]))
        try first.enqueue(Tap(post: "1", isLike: true), server.operation)
        first.close()
        let cache = try open()
        let seen = SequenceRecorder(cache.snapshots(server.list(["1", "2"]), .cacheOnly))
        await seen.wait(for: 1)
        #expect(seen.elements[0].value?.items.map(\.isMine) == [true, false])
        #expect(seen.elements[0].pendingChanges == 1)
        cache.outbox.resume()
        #expect(try await cache.outbox.drain(within: .seconds(1)).isEmpty)
        #expect(server.post("1").isMine && unregistered().isEmpty)
    }

    @Test func `no operation can be sent before its pending change is shown, also if it is registered after resume`()
        async throws
    {
        let first = try open()
        try first.enqueue(Tap(post: "1", isLike: true), server.operation)
        first.close()
        let cache = try scene.cache()
        cache.outbox.resume()
        var operation = server.operation
        let plain = operation.changes
        let outbox = cache.outbox
        let wasReady = Mutex<[Bool]>([])
        operation.changes = { tap, changes in
            wasReady.withLock {
                $0.append(
                    outbox.state.withLock {
                        !$0.queue.ready(at: MonotonicTime(nanoseconds: .max)).isEmpty || $0.queue.status.inFlight > 0
                    }
                )
            }
            plain(tap, &changes)
        }
        outbox.register(operation)
        #expect(wasReady.withLock { $0 }.first == false)
        try await outbox.drained()
    }

    @Test func `unregistered operations are reported when sending begins, and end drained`()
        async throws
    {
        let first = try open()
        for post in ["1", "2"] { try first.enqueue(Tap(post: post, isLike: true), server.operation) }
        first.close()
        let cache = try scene.cache()
        cache.outbox.resume()
        #expect(unregistered() == ["like 2"])
        let error = await #expect(throws: LarderError.self) { try await cache.outbox.drained() }
        #expect(error?.code == .unregistered && error?.description.contains("\"like\"") == true)
        // No operation is lost.
        cache.outbox.register(server.operation)
        try await cache.outbox.drained()
        #expect(server.post("1").isMine && server.post("2").isMine)
    }

    @Test func `registered operations are sent before unregistered ones end drained`() async throws {
        let first = try scene.cache()
        let other = WriteBehind<Tap, Int>("other", scope: { $0.post }, changes: { _, _ in }, send: { _ in [] })
        try first.enqueue(Tap(post: "9", isLike: true), other)
        first.close()
        let cache = try open()
        try cache.enqueue(Tap(post: "1", isLike: true), server.operation)
        cache.outbox.resume()
        let error = await #expect(throws: LarderError.self) { try await cache.outbox.drained() }
        #expect(error?.code == .unregistered && error?.description.contains("\"other\"") == true)
        #expect(server.post("1").isMine)
    }

    @Test func `drained throws if the outbox was never resumed or is paused`() async throws {
        let cache = try open()
        try await cache.outbox.drained()
        try cache.enqueue(Tap(post: "1", isLike: true), server.operation)
        let never = await #expect(throws: LarderError.self) { try await cache.outbox.drained() }
        #expect(never?.code == .paused && cache.outbox.entries.count == 1)
        scene.isOnline.withLock { $0 = false }
        cache.outbox.resume()
        let outbox = cache.outbox
        let waiting = Task { try await outbox.drained() }
        outbox.pause()
        let paused = await #expect(throws: LarderError.self) { try await waiting.value }
        #expect(paused?.code == .paused)
        scene.isOnline.withLock { $0 = true }
        outbox.resume()
        try await outbox.drained()
        #expect(server.post("1").isMine)
    }

    @Test func `reading all rows again removes what another process has ended, and nothing in flight here`() throws {
        let cache = try scene.cache()
        let outbox = cache.outbox
        let other = try scene.cache()
        try cache.enqueue(Tap(post: "1", isLike: true), server.operation)
        let batches = outbox.state.withLock { state in
            state.isPaused = false
            return state.takeBatches(of: [.usual], 1, at: MonotonicTime(nanoseconds: .max), .unrestricted)
        }
        try cache.enqueue(Tap(post: "2", isLike: true), server.operation)
        let ids = outbox.entries.map(\.id)
        #expect(batches.flatMap(\.entries).map(\.id) == [ids[0]])
        try other.core.outboxDisk?.write { transaction in
            for id in ids { try transaction.removeOperation(id.rawValue) }
        }
        try outbox.readRows()
        #expect(outbox.entries.map(\.id) == [ids[0]] && outbox.status.inFlight == 1)
    }

    @Test func `a function of an operation that calls the locked outbox stops with a message`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let cache = try LarderCache(CacheConfiguration())
            let isAgain = Atomic(false)
            let operation = WriteBehind<Tap, Int>(
                "tap",
                scope: { $0.post },
                changes: { tap, _ in
                    guard isAgain.load(ordering: .relaxed) else { return }
                    try? cache.outbox.drop(OperationID(rawValue: 99))
                },
                send: { attempts in attempts.map { _ in .rejected(LarderError(.rejected, "no", status: 403)) } }
            )
            let id = try #require(try cache.enqueue(Tap(post: "1", isLike: true), operation))
            cache.outbox.resume()
            try await cache.outbox.drained()
            isAgain.store(true, ordering: .relaxed)
            try cache.outbox.retry(id)
        }
        expectMessage(["or a function of an operation"], in: result?.standardErrorContent)
    }
}
