import LarderResources
import LarderTesting
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import LarderStorage

@Suite("Outbox: rejected operations", .oneMinute)
struct OutboxDeadLetterTests {
    let scene = CacheScene()
    let server = LikeServer(posts: 60)

    private func mine(_ cache: LarderCache, _ id: String) async throws -> Bool {
        try await cache.value(server.post(resource: id), .cacheOnly).isMine
    }

    @Test func `rejected operations have their reason and time, also after a restart, until a decision`()
        async throws
    {
        var cache = try scene.cache()
        _ = try await cache.value(server.list(["1", "2", "3"]))
        server.behave { _ in .rejects(["1", "2", "3"]) }
        let told = SequenceRecorder(cache.outbox.rejections)
        let rejectedAt = scene.clock.now
        for post in ["1", "2", "3"] { try cache.enqueue(Tap(post: post, isLike: true), server.operation) }
        cache.outbox.resume()
        await told.wait { $0.last?.count == 3 }
        scene.clock.advance(by: .seconds(3_600))
        cache = try scene.cache()
        cache.outbox.register(server.operation)
        let rejected = cache.outbox.rejected
        #expect(try rejected.map { try $0.input(as: Tap.self).post } == ["1", "2", "3"])
        for entry in rejected {
            #expect(entry.operation == "like" && entry.state == .rejected)
            let rejection = try #require(entry.rejection)
            #expect(rejection == told.elements.last?.first { $0.id == entry.id }?.rejection)
            #expect(rejection.status == 403 && rejection.problem == "https://larder.test/problems/closed")
            #expect(rejection.title == "This post takes no likes." && rejection.code == .rejected)
            #expect(rejection.rejectedAt == rejectedAt)
            #expect(entry.error?.problem == rejection.problem && entry.error?.status == 403)
        }
        #expect(try await !mine(cache, "1"))
        server.behave { _ in .answers }
        let again = SequenceRecorder(cache.outbox.rejections)
        try cache.outbox.retry(rejected[0].id)
        try cache.outbox.edit(rejected[1].id, to: Tap(post: "2", isLike: true), server.operation)
        try cache.outbox.drop(rejected[2].id)
        await again.wait { $0.last?.isEmpty ?? false }
        #expect(cache.outbox.entries.allSatisfy { $0.rejection == nil && $0.error == nil })
        cache.outbox.resume()
        try await cache.outbox.drained()
        let disk = try #require(cache.disk)
        for entry in rejected { #expect(try disk.metadata("larder.rejection \(entry.id)") == nil) }
        // The retried operation keeps its key; the edited one has a new key, because the old one stays rejected.
        #expect(server.post("1").isMine && server.post("2").isMine && !server.post("3").isMine)
        #expect(try scene.cache().outbox.entries.isEmpty)
    }

    @Test func `a blocked scope stays blocked after a restart and names the rejected operation`() async throws {
        var operation = server.operation
        operation.coalescingKey = { _ in nil }
        operation.rejectionBlocksScope = true
        let held = operation
        var cache = try scene.cache()
        server.behave { _ in .rejects(["1"]) }
        for isLike in [true, false] { try cache.enqueue(Tap(post: "1", isLike: isLike), held) }
        cache.outbox.resume()
        let statuses = SequenceRecorder(cache.outbox.statuses)
        await statuses.wait { $0.last.map { $0.blockedScopes == 1 && $0.inFlight == 0 } ?? false }
        cache = try scene.cache()
        cache.outbox.register(held)
        cache.outbox.resume()
        try cache.enqueue(Tap(post: "2", isLike: true), held)
        let left = try await cache.outbox.drain(within: .seconds(5))
        #expect(left.map(\.reason) == [.rejected, .blocked])
        #expect(server.post("2").isMine && server.requests.count { $0[0].hasPrefix("1") } == 1)
        // The edited operation is sent first, and the later ones follow.
        server.behave { _ in .answers }
        let rejected = try #require(cache.outbox.rejected.first)
        try cache.outbox.edit(rejected.id, to: Tap(post: "1", isLike: true), held)
        try await cache.outbox.drained()
        #expect(server.requests.filter { $0[0].hasPrefix("1") } == [["1+"], ["1+"], ["1-"]])
    }

    @Test func `a rejected operation that is sent again waits for a later one of its scope that is in flight`()
        async throws
    {
        let cache = try scene.cache()
        let gate = ScriptedSource<Int>()
        var operation = server.operation
        operation.coalescingKey = { _ in nil }
        let server = server
        operation.send = { attempts in
            if attempts.first?.input.isLike == false { _ = try await gate.fetch(FetchContext()) }
            return try server.send(attempts)
        }
        server.behave { $0 == 1 ? .rejects(["1"]) : .answers }
        let statuses = SequenceRecorder(cache.outbox.statuses)
        try cache.enqueue(Tap(post: "1", isLike: true), operation)
        try cache.enqueue(Tap(post: "1", isLike: false), operation)
        cache.outbox.resume()
        await gate.waitForRequests(1)
        let rejected = try #require(cache.outbox.rejected.first)
        try cache.outbox.retry(rejected.id)
        // It was woken, and has not been sent.
        try cache.enqueue(Tap(post: "2", isLike: true), operation)
        await statuses.wait { _ in server.post("2").isMine && cache.outbox.status.inFlight == 1 }
        #expect(server.requests == [["1+"], ["2+"]])
        gate.answer(0, .value(0))
        try await cache.outbox.drained()
        #expect(server.requests == [["1+"], ["2+"], ["1-"], ["1+"]] && server.post("1").isMine)
    }

    @Test func `the operation that makes the server fail is isolated among a hundred, and the others are sent`()
        async throws
    {
        let server = LikeServer(posts: 100)
        server.behave { _ in .breaks(on: "42") }
        var configuration = scene.configuration(inMemory: true)
        configuration.random = { 0 }
        let cache = try LarderCache(configuration)
        for index in 0..<100 { try cache.enqueue(Tap(post: "\(index)", isLike: true), server.operation) }
        let statuses = SequenceRecorder(cache.outbox.statuses)
        cache.outbox.resume()
        // The isolated operation waits for its next attempt; the last ones of its batches may be sent after it.
        await statuses.wait { [server] in
            $0.last?.inFlight == 0 && $0.last?.pending == 1 && server.requests.contains(["42+"])
        }
        #expect(try await cache.outbox.drain(within: .zero).map(\.reason) == [.postponed])
        #expect((0..<100).allSatisfy { server.post("\($0)").isMine == ($0 != 42) })
        // The batches are halved, not sent one by one.
        #expect(server.requests.count < 30)
    }

    @Test func `Retry-After is respected although the network returns`() async throws {
        let cache = try scene.cache()
        server.behave { $0 == 1 ? .isBusy(.seconds(30)) : .answers }
        try cache.enqueue(Tap(post: "1", isLike: true), server.operation)
        let statuses = SequenceRecorder(cache.outbox.statuses)
        cache.outbox.resume()
        await statuses.wait { [server] in $0.last?.inFlight == 0 && server.requests.count == 1 }
        cache.networkReturned()
        let left = try await cache.outbox.drain(within: .seconds(29))
        #expect(left.map(\.reason) == [.postponed] && left[0].entry.error?.status == 503)
        #expect(server.requests.count == 1)
        scene.clock.advance(by: .seconds(30))
        try await cache.outbox.drained()
        #expect(server.requests.count == 2)
    }
}
