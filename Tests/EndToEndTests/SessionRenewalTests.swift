import Larder
import LarderHTTP
import LarderModels
import LarderServer
import LarderTesting
import LarderTime
import TestSupport
import Testing

@testable import LarderDemo

@Suite("Session renewal, end to end", .oneMinute)
struct SessionRenewalTests {
    private static let hour: Duration = .seconds(3_601)

    /// Advances both clocks beyond the lifetime of access tokens.
    private func expire(_ scene: ClientScene) {
        scene.world.clock.advance(by: Self.hour)
        scene.clock.advance(by: Self.hour)
    }

    @Test func `two processes of one account renew one after the other and stay signed in`() async throws {
        let scene = try ClientScene()
        scene.world.clock.freeze()
        let app = try await scene.client()
        let share = try await scene.client()
        for round in 1...3 {
            expire(scene)
            let (first, second) = round % 2 == 0 ? (app, share) : (share, app)
            _ = try await first.cache.refresh(first.feed.newest)
            _ = try await second.cache.refresh(second.profiles.resource("user_2"))
            #expect(await scene.count("POST", "/v1/sessions/refresh") == round)
            for client in [app, share] {
                #expect(client.session.state == .signedIn(userID: try #require(app.session.userID)))
            }
        }
        #expect(await scene.count("POST", "/v1/sessions/refresh", status: "401") == 0)
    }

    @Test func `two processes that need a renewal at once share it and lose no write`() async throws {
        let scene = try ClientScene()
        scene.world.clock.freeze()
        let app = try await scene.client()
        let share = try await scene.client()
        let posts = try await app.cache.value(app.feed.newest).items.filter { !$0.likedByMe }.prefix(4)
        expire(scene)
        let clock = scene.clock
        // Waits for the other process follow the manual clock.
        let moving = Task {
            while !Task.isCancelled {
                try await clock.waitForSleepers()
                // Request timeouts are longer than these steps.
                if let next = clock.nextWakeUp, next - clock.uptime <= .milliseconds(500) {
                    clock.advance(by: max(.zero, next - clock.uptime))
                }
                // The process that renews gets time for its work, so that requests do not reach their time limit.
                for _ in 0..<1_000 { await Task.yield() }
            }
        }
        defer { moving.cancel() }
        for (index, post) in posts.enumerated() { try (index % 2 == 0 ? app : share).likes.set(true, post.id) }
        async let one = app.cache.refresh(app.profiles.resource("user_2"))
        async let two = share.cache.refresh(share.profiles.resource("user_3"))
        _ = try await (one, two)
        #expect(await scene.count("POST", "/v1/sessions/refresh") == 1)
        app.close()
        share.cache.networkReturned()
        try await share.cache.outbox.drained()
        #expect(share.cache.outbox.entries.isEmpty)
        for post in posts {
            #expect(try await share.cache.refresh(share.feed.post(post.id)).value?.likedByMe == true)
        }
        #expect(await scene.count("POST", "/v1/sessions/refresh", status: "401") == 0)
    }

    @Test(arguments: [FaultAction.ExchangeCut.reset, .close])
    func `a lost reply to a renewal does not end the session`(cut: FaultAction.ExchangeCut) async throws {
        let scene = try ClientScene()
        scene.world.clock.freeze()
        let client = try await scene.client()
        let user = try #require(client.session.userID)
        let post = try #require(try await client.cache.value(client.feed.newest).items.first { !$0.likedByMe }).id
        expire(scene)
        var once = Fault.Occurrence()
        once.count = 1
        try scene.world.set(
            Fault(.loseReply(cut), when: FaultMatch("POST", "/v1/sessions/refresh"), occurrence: once)
        )
        try client.likes.set(true, post)
        #expect(try await client.cache.refresh(client.feed.post(post)).value != nil)
        client.cache.networkReturned()
        try await client.cache.outbox.drained()
        #expect(client.session.state == .signedIn(userID: user))
        #expect(try await client.cache.refresh(client.feed.post(post)).value?.likedByMe == true)
        #expect(await scene.count("POST", "/v1/sessions/refresh") == 2)
    }

    @Test func `a session ended by the server expires, and queued operations are sent after the next sign-in`()
        async throws
    {
        let scene = try ClientScene()
        scene.world.clock.freeze()
        let client = try await scene.client()
        let user = try #require(client.session.userID)
        let post = try #require(try await client.cache.value(client.feed.newest).items.first { !$0.likedByMe }).id
        for _ in 0..<31 { scene.world.clock.advance(by: .seconds(86_400)) }
        scene.clock.advance(by: .seconds(31 * 86_400))
        let statuses = SequenceRecorder(client.cache.outbox.statuses)
        try client.likes.set(true, post)
        await statuses.wait { _ in client.cache.outbox.entries.first?.error != nil }
        #expect(client.session.state == .expired(userID: user))
        let entry = try #require(client.cache.outbox.entries.first)
        // The operation is retried, neither rejected nor in doubt. The end of the session is found by the like or by another request.
        #expect(entry.state == .pending || entry.state == .sending)
        #expect(entry.error?.code == .unauthorized && [nil, 401].contains(entry.error?.status), "\(entry)")
        #expect(try await client.cache.value(client.feed.post(post), .cacheOnly).likedByMe)
        try await client.signIn(handle: "ana", password: "larder")
        try await client.cache.outbox.drained()
        #expect(try await client.cache.refresh(client.feed.post(post)).value?.likedByMe == true)
    }
}
