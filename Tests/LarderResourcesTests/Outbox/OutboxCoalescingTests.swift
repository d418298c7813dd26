import LarderEvents
import LarderTesting
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import LarderResources

@Suite("Outbox: coalescing", .oneMinute)
struct OutboxCoalescingTests {
    struct OldTap: Codable, Sendable { var number: Int }

    let scene = CacheScene()
    let server = LikeServer(posts: 10)

    private func like(_ post: String) {
        server.state.withLock { $0.posts[post] = Liked(id: post, likes: 11, isMine: true, revision: 2) }
    }

    @Test(arguments: [false, true])
    func `a second like and then an unlike end without the like, whether the post is known or not`(_ isKnown: Bool)
        async throws
    {
        like("1")
        let cache = try scene.cache()
        if isKnown { _ = try await cache.value(server.list(["1"])) }
        try cache.enqueue(Tap(post: "1", isLike: true), server.operation)
        #expect(try cache.enqueue(Tap(post: "1", isLike: false), server.operation) != nil)
        if isKnown { #expect(try await !cache.value(server.post(resource: "1"), .cacheOnly).isMine) }
        cache.outbox.resume()
        try await cache.outbox.drained()
        #expect(server.requests == [["1-"]] && !server.post("1").isMine)
    }

    @Test(arguments: [false, true])
    func `a like and an unlike send one request with the last tap`(_ isInMemory: Bool) async throws {
        let cache = try scene.cache(inMemory: isInMemory)
        _ = try await cache.value(server.list(["1"]))
        let id = try cache.enqueue(Tap(post: "1", isLike: true), server.operation)
        #expect(try cache.enqueue(Tap(post: "1", isLike: false), server.operation) == id)
        #expect(try await !cache.value(server.post(resource: "1"), .cacheOnly).isMine)
        cache.outbox.resume()
        try await cache.outbox.drained()
        #expect(server.requests == [["1-"]] && server.post("1").likes == 10)
    }

    /// A change of a page: without a key it is never coalesced.
    private struct Step: Codable, Sendable {
        var key: String?
        var text: String
    }

    private func steps(_ sent: Recorder) -> WriteBehind<Step, Int> {
        var operation = WriteBehind<Step, Int>("step", scope: { _ in "page" }) { _, _ in
        } send: { attempts in
            sent.texts.withLock { $0 += attempts.map(\.input.text) }
            return attempts.map { _ in .accepted(1) }
        }
        operation.coalescingKey = { $0.key }
        operation.coalesce = { $1.text == "remove" ? .removeBoth : .replace($1) }
        return operation
    }

    private final class Recorder: Sendable {
        let texts = Mutex<[String]>([])
    }

    private func sent(_ changes: [Step]) async throws -> [String] {
        let cache = try scene.cache()
        let sent = Recorder()
        for change in changes { try cache.enqueue(change, steps(sent)) }
        cache.outbox.resume()
        try await cache.outbox.drained()
        return sent.texts.withLock { $0 }
    }

    @Test func `an operation is not coalesced across one without a key in its scope`() async throws {
        let changes = [("a", "first"), (nil, "other"), ("a", "second"), ("a", "third")].map(Step.init)
        #expect(try await sent(changes) == ["first", "other", "third"])
        let others = [("a", "first"), ("b", "other"), ("a", "second")].map(Step.init)
        #expect(try await sent(others) == ["second", "other"])
    }

    @Test func `a creation on which an operation without a key may depend is sent although it is removed`() async throws
    {
        let changes = [("a", "create"), (nil, "use"), ("a", "remove")].map(Step.init)
        #expect(try await sent(changes) == ["create", "use", "remove"])
        #expect(try await sent([changes[0], changes[2]]) == [])
    }

    @Test func `an operation that another process replaces after it was taken is sent with the new input`() async throws
    {
        let cache = try scene.cache()
        try cache.enqueue(Tap(post: "1", isLike: true), server.operation)
        let other = try scene.cache()
        let batches = cache.outbox.state.withLock { state in
            state.isPaused = false
            return state.takeBatches(of: [.usual], 1, at: MonotonicTime(nanoseconds: .max), .unrestricted)
        }
        try other.enqueue(Tap(post: "1", isLike: false), server.operation)
        #expect(other.outbox.entries.count == 1)
        let batch = try #require(batches.first)
        #expect(try cache.outbox.mark(batch, OutboxOperation(server.operation)).isEmpty)
        cache.outbox.resume()
        try await cache.outbox.drained()
        #expect(server.requests == [["1-"]])
    }

    @Test func `taps become one behind an earlier tap in flight, and the last one wins`() async throws {
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
        // The stored value has no like, and an earlier tap in flight adds one.
        for isLike in [true, false] { try cache.enqueue(Tap(post: "1", isLike: isLike), slow) }
        #expect(cache.outbox.entries.count == 2)
        gate.prepare(.value(0))
        gate.answer(0, .value(0))
        try await cache.outbox.drained()
        #expect(!server.post("1").isMine)
    }

    @Test(arguments: seeds(8))
    func `random and repeated taps end with the last taps, whatever was stored of the posts`(
        _ seed: UInt64
    ) async throws {
        var generator = SeededGenerator(seed: seed)
        let server = LikeServer(posts: 10)
        for index in 0..<10 where generator.uniform(in: 0..<2) == 0 {
            server.state.withLock {
                $0.posts["\(index)"] = Liked(id: "\(index)", likes: 11, isMine: true, revision: 2)
            }
        }
        server.behave { number in
            var generator = SeededGenerator(seed: seed &* 1_000 &+ UInt64(number))
            switch generator.uniform(in: 0..<4) {
            case 0: return .losesReply
            case 1: return .isUnreachable
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
        // Half of them were never read.
        _ = try await cache.value(server.list((0..<5).map { "\($0)" }))
        var hearts: [String: Bool] = [:]
        for tap in 0..<120 {
            let post = "\(generator.uniform(in: 0..<10))"
            let isLike = generator.uniform(in: 0..<2) == 0
            try cache.enqueue(Tap(post: post, isLike: isLike), server.operation)
            hearts[post] = isLike
            if tap == 40 { cache = try open() }
            if tap % 30 == 20 { cache.outbox.resume() }
            if tap % 30 == 29 {
                try await cache.outbox.drained()
                cache.outbox.pause()
            }
        }
        cache.outbox.resume()
        try await cache.outbox.drained()
        for (post, isMine) in hearts {
            #expect(server.post(post).isMine == isMine, "seed \(seed), post \(post)")
            #expect(server.post(post).likes == (isMine ? 11 : 10), "seed \(seed), post \(post)")
        }
    }

    @Test func `a queued operation that cannot be decoded does not affect new ones`() async throws {
        var cache = try scene.cache()
        var old = WriteBehind<OldTap, Liked>("like", scope: { _ in "1" }, changes: { _, _ in }, send: { _ in [] })
        old.coalescingKey = { _ in "1" }
        try cache.enqueue(OldTap(number: 1), old)
        cache = try scene.cache()
        try cache.enqueue(Tap(post: "1", isLike: true), server.operation)
        #expect(cache.outbox.entries.count == 2)
        cache.outbox.resume()
        try await cache.outbox.drained()
        #expect(server.post("1").isMine && cache.outbox.rejected.map(\.error?.code) == [.encoding])
    }

    @Test func `a function that decides about two operations and enqueues another stops with a message`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let server = LikeServer(posts: 1)
            try await OutboxCoalescingTests.coalesce { cache in
                _ = try cache.enqueue(Tap(post: "2", isLike: true), server.operation)
            }
        }
        expectMessage(["or a function of an operation"], in: result?.standardErrorContent)
    }

    @Test func `a function that decides about two operations and changes the cache stops with a message`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try await OutboxCoalescingTests.coalesce { cache in
                try cache.updateBlocking { $0.put(Liked(id: "1", likes: 1, isMine: false, revision: 9)) }
            }
        }
        let parts = [
            "A change to the cache was called from a function that runs as a part of a change",
            "a function of an operation",
        ]
        expectMessage(parts, in: result?.standardErrorContent)
    }

    /// Enqueues two operations with one coalescing key, and calls a function while they are coalesced.
    private static func coalesce(_ body: @escaping @Sendable (LarderCache) throws -> Void) async throws {
        let cache = try LarderCache(CacheConfiguration())
        let server = LikeServer(posts: 1)
        cache.outbox.register(server.operation)
        var operation = server.operation
        operation.coalesce = { _, new in
            do { try body(cache) } catch { Issue.record(error) }
            return .replace(new)
        }
        for isLike in [true, false] { try cache.enqueue(Tap(post: "0", isLike: isLike), operation) }
    }
}
