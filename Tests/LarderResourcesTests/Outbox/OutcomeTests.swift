import LarderResources
import LarderTesting
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@Suite("Outbox: verdicts", .oneMinute)
struct OutcomeTests {
    private static let inProgress = "https://larder.test/problems/idempotency-in-progress"

    let scene = CacheScene()
    let server = LikeServer(posts: 10)

    private func isFinal(_ status: Int?, _ problem: String? = nil) -> Bool {
        let error = LarderError(.rejected, "The server said no.", status: status, problem: problem)
        if case .rejected = Outbox.Outcome<Int>.failure(error) { return true }
        return false
    }

    @Test(arguments: [400, 402, 403, 404, 405, 406, 409, 410, 413, 415, 422, 428, 431, 451, 501, 505, 510])
    func `a status that is a decision of the server is final`(_ status: Int) {
        #expect(isFinal(status))
        #expect(isFinal(status, "https://larder.test/problems/insufficient-funds"))
    }

    @Test(arguments: [
        nil, 300, 302, 304, 401, 407, 408, 421, 425, 429, 500, 502, 503, 504, 506, 507, 508, 511, 520, 599,
    ])
    func `a status without a decision is retried`(_ status: Int?) { #expect(!isFinal(status)) }

    @Test(arguments: [inProgress, "/problems/idempotency-in-progress", "urn:example:idempotency-in-progress"])
    func `an idempotency key in progress is no decision, whatever the status`(_ problem: String) {
        for status in [400, 409, 422] { #expect(!isFinal(status, problem)) }
    }

    @Test func `an operation in progress at the server is retried under its key, and its scope continues`()
        async throws
    {
        let cache = try scene.cache()
        let keys = Mutex<[String]>([])
        var operation = server.operation
        operation.rejectionBlocksScope = true
        operation.coalescingKey = { _ in nil }
        let server = server
        operation.send = { attempts in
            let count = keys.withLock { keys in
                keys += attempts.map(\.idempotencyKey)
                return keys.count
            }
            if count == 1 {
                throw LarderError(.rejected, "The first is running.", status: 409, problem: Self.inProgress)
            }
            return try server.send(attempts)
        }
        for isLike in [true, false] { try cache.enqueue(Tap(post: "1", isLike: isLike), operation) }
        let statuses = SequenceRecorder(cache.outbox.statuses)
        cache.outbox.resume()
        await statuses.wait { $0.last?.inFlight == 0 && keys.withLock { $0.count } == 1 }
        #expect(cache.outbox.rejected.isEmpty && cache.outbox.status.inDoubt == 1)
        scene.clock.advance(by: .seconds(1))
        let left = try await cache.outbox.drain(within: .seconds(5))
        #expect(left.isEmpty)
        #expect(server.requests == [["1+"], ["1-"]])
        #expect(keys.withLock { $0.count == 3 && $0[0] == $0[1] && $0[1] != $0[2] })
    }
}
