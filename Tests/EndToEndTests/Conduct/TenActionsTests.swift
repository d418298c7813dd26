import Foundation
import Larder
import LarderModels
import LarderResources
import LarderServer
import LarderTime
import Synchronization
import TestSupport
import Testing

@testable import LarderDemo

@Suite("What everyday actions cost on the wire, end to end", .oneMinute)
struct TenActionsTests {
    /// What one action has sent and received.
    private struct Cost {
        let name: String
        var requests = 0
        /// Bytes of the replies' heads and bodies.
        var bytes = 0
        /// Frames of the live channel.
        var frames = 0
        var targets: [String] = []
    }

    /// The cost of an action, including what it makes the client send within the next seconds.
    private func cost(
        of name: String,
        _ visit: Visit,
        _ act: @escaping @Sendable () async throws -> Void
    ) async throws -> Cost {
        let last = await visit.world.journal(JournalFilter()).last?.number ?? 0
        let failure = Mutex<(any Error)?>(nil)
        await visit.perform { do { try await act() } catch { failure.withLock { $0 = error } } }
        if let failure = failure.withLock({ $0 }) { throw failure }
        await visit.pass(.seconds(5))
        var cost = Cost(name: name)
        for record in await visit.world.journal(JournalFilter()) where record.number > last {
            guard record.isExchange else {
                cost.frames += 1
                continue
            }
            cost.requests += 1
            cost.bytes += record.bytesSent
            cost.targets.append("\(record.method) \(record.target) \(record.status ?? 0)")
        }
        if ProcessInfo.processInfo.environment["LARDER_CONDUCT_REPORT"] != nil {
            print("action | \(name) | \(cost.requests) | \(cost.bytes) | \(cost.frames) | \(cost.targets)")
        }
        return cost
    }

    @Test func `ten actions of a person cost no more requests than they need`() async throws {
        let visit = try Visit(seed: 31)
        let world = visit.world
        let first = try await visit.client(live: [.webSocket])
        let cold = try await cost(of: "feed, cold start with sign-in", visit) {
            try await first.signIn(handle: "ana", password: "larder")
            _ = try await first.feed.timeline.snapshot()
        }
        // Sign-in, the present change token, the live channel, and a page.
        #expect(cold.requests <= 5, "\(cold)")
        first.close()
        await visit.pass(.seconds(600))
        let client = try await visit.client(live: [.webSocket])
        let warm = try await cost(of: "feed, warm start after ten minutes", visit) {
            _ = try await client.feed.timeline.snapshot()
        }
        #expect(warm.requests <= 3, "\(warm)")
        let scroll = try await cost(of: "scroll one page", visit) { _ = try await client.feed.timeline.loadOlder() }
        #expect(scroll.requests == 1, "\(scroll)")
        let idle = try await cost(of: "pull to refresh, nothing new", visit) {
            try await client.feed.timeline.refresh()
        }
        #expect(idle.requests == 1 && idle.bytes < 1_000, "\(idle)")
        for number in 1...3 {
            world.perform(ScriptedAction("POST", "/v1/posts", as: "person2", body: "{\"text\":\"new \(number)\"}"))
        }
        let news = try await cost(of: "pull to refresh, three new posts", visit) {
            try await client.feed.timeline.refresh()
        }
        #expect(news.requests == 1, "\(news)")
        let profile = try await cost(of: "a profile, opened twice", visit) {
            _ = try await client.profiles.profile("user_3")
            _ = try await client.profiles.profile("user_3")
        }
        #expect(profile.requests == 1, "\(profile)")
        let posts = client.cache.stored(client.feed.newest)?.value?.items ?? []
        try #require(posts.count >= 20)
        let taps = try await cost(of: "like and un-like at once", visit) {
            try client.likes.set(!posts[0].likedByMe, posts[0].id)
            try client.likes.set(posts[0].likedByMe, posts[0].id)
        }
        #expect(taps.requests <= 2, "\(taps)")
        let likes = try await cost(of: "like twenty posts", visit) {
            for post in posts.prefix(20) { try client.likes.set(!post.likedByMe, post.id) }
        }
        // The first tap leaves at once, and what has gathered meanwhile leaves together.
        #expect(likes.requests <= 6, "\(likes)")
        let conversations: [Conversation] = try world.list("/v1/conversations", as: "ana")
        let conversation = try #require(conversations.first).id
        let message = try await cost(of: "open a conversation and send a message", visit) {
            _ = try await client.cache.snapshot(client.chat.conversations)
            _ = try await client.chat.timeline(conversation).snapshot()
            try client.chat.send("hello", to: conversation)
        }
        #expect(message.requests <= 3, "\(message)")
        let (from, to) = try world.accounts(of: "ana")
        let transfer = try await cost(of: "make a transfer", visit) {
            let amount = Money(minorUnits: 1, currency: from.balance.currency)
            let order = Bank.TransferOrder(from: from.id, to: to.id, amount)
            _ = try await client.bank.transfer(order, given: client.bank.validatedAccounts())
        }
        #expect(transfer.requests <= 2, "\(transfer)")
        let image = try #require(posts.compactMap(\.image).first)
        let picture = try await cost(of: "a picture, viewed twice", visit) {
            _ = try await client.images.image(for: client.imageRequest(for: image, width: 320))
            _ = try await client.images.image(for: client.imageRequest(for: image, width: 320))
        }
        #expect(picture.requests == 1, "\(picture)")
        await world.expectGoodConduct(saves: true)
        client.close()
    }
}
