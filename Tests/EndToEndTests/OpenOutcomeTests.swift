import Foundation
import Larder
import LarderDemo
import LarderModels
import LarderResources
import LarderServer
import LarderStorage
import LarderTesting
import LarderTime
import LarderTransport
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

/// A proxy that goes on with a request whose client has gone. The server ends the wait of an exchange whose connection is closed.
private struct LingeringTransport: Transport {
    private let base = SocketTransport(clock: ManualClock())

    func open(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
        let result = Pending<Result<TransportResponse, TransportError>>()
        let base = base
        Task {
            do throws(TransportError) { result.finish(.success(try await base.send(request))) } catch {
                result.finish(.failure(error))
            }
        }
        let gone = TransportError(.cancelled, "The client has gone.")
        return TransportStream(try await result.value(ifCancelled: .failure(gone)).get())
    }
}

/// Operations with an unknown outcome, against the real server.
@Suite("Operations in doubt, end to end", .oneMinute)
struct OpenOutcomeTests {
    private final class Ends: Sendable {
        let rejected = Mutex<[LarderError]>([])
        let failures = Mutex<[LarderError]>([])
        private let postponed = AsyncStream<Duration>.makeStream()

        func note(_ event: CacheEvent) {
            switch event {
            case .rejected(_, _, let error): rejected.withLock { $0.append(error) }
            case .postponed(_, _, _, let wait): postponed.continuation.yield(wait)
            case .storageFailed(let error): failures.withLock { $0.append(error) }
            default: break
            }
        }

        /// Waits until an operation is postponed, and returns for how long.
        func postponement() async -> Duration? {
            var waits = postponed.stream.makeAsyncIterator()
            return await waits.next(isolation: nil)
        }
    }

    /// An account with money, and one of another user in the same currency.
    private func pair(_ client: LarderClient, _ scene: ClientScene) async throws -> (from: Account, to: Account) {
        let mine = try await client.cache.value(client.bank.accounts).items
        for number in 2...20 {
            let theirs = try scene.truth("/v1/accounts", as: try scene.handle("user_\(number)"), of: Account.self)
            for from in mine where from.status == "open" && from.balance.minorUnits > 10_000 {
                let to = theirs.first { $0.status == "open" && $0.balance.currency == from.balance.currency }
                if let to { return (from, to) }
            }
        }
        throw LarderError(.notCached, "The small world has no two accounts in one currency.")
    }

    /// Advances the clock until the outbox is empty.
    private func finish(_ client: LarderClient, _ scene: ClientScene) async throws {
        let outbox = client.cache.outbox
        while !outbox.status.isDrained, outbox.rejected.isEmpty, !Task.isCancelled {
            scene.clock.advance(by: .seconds(1))
            await Task.yield()
        }
    }

    @Test func `a transfer in progress at the server is in doubt, not rejected, and made once`()
        async throws
    {
        let scene = try ClientScene()
        let first = try await scene.client(transport: LingeringTransport())
        let (from, to) = try await pair(first, scene)
        let order = Bank.TransferOrder(
            from: from.id,
            to: to.id,
            Money(minorUnits: 700, currency: from.balance.currency)
        )
        let transfers = JournalFilter("POST", "/v1/transfers")
        try scene.world.set(Gate(id: "slow", when: FaultMatch("POST", "/v1/transfers"), count: 1))
        let paying = Task { try await first.bank.transfer(order, given: try await first.bank.validatedAccounts()) }
        #expect(await scene.world.wait(for: .held(1), limit: .seconds(3_600)))
        // The process dies, and the next one retries while the server is still processing the request.
        first.close()
        await #expect(throws: LarderError.self) { try await paying.value }
        let ends = Ends()
        let client = try await scene.client(onEvent: { ends.note($0) })
        #expect(
            await scene.world.wait(
                for: .entries(JournalFilter("POST", "/v1/transfers", status: "409"), count: 1),
                limit: .seconds(3_600)
            )
        )
        // The server has sent Retry-After: 1.
        #expect(await ends.postponement() == .seconds(1))
        #expect(ends.rejected.withLock { $0.isEmpty } && client.bank.unresolved.count == 1)
        scene.world.releaseAll()
        try await finish(client, scene)
        #expect(ends.rejected.withLock { $0.isEmpty } && client.bank.unresolved.isEmpty)
        let now = try await client.cache.refresh(client.bank.accounts).value?.items.first { $0.id == from.id }
        #expect(now?.balance.minorUnits == from.balance.minorUnits - 700)
        let keys = await scene.world.journal(transfers).compactMap { $0.requestField("Idempotency-Key") }
        #expect(keys.count >= 3 && Set(keys).count == 1)
        #expect(try scene.world.ledgerFaults().isEmpty)
        client.close()
    }

    /// The transport sends a request with a key again if a kept connection ends without a reply.
    @Test(arguments: [true, false])
    func `a transfer whose first copy was carried out is in doubt although a later one was not authorized`(
        _ canRenew: Bool
    ) async throws {
        let scene = try ClientScene()
        let client = try await scene.client()
        let (from, to) = try await pair(client, scene)
        let order = Bank.TransferOrder(
            from: from.id,
            to: to.id,
            Money(minorUnits: 700, currency: from.balance.currency)
        )
        let balances = try await client.bank.validatedAccounts()
        var (once, next) = (Fault.Occurrence(), Fault.Occurrence())
        (once.count, next.after) = (1, 1)
        let transfers = FaultMatch("POST", "/v1/transfers")
        try scene.world.set(Fault(id: "lost", .loseReply(.close), when: transfers, occurrence: once))
        // The second copy is not authorized, and the third one cannot be sent.
        try scene.world.set(Fault(id: "expired", .expireToken, when: transfers, occurrence: next))
        let renewal = FaultMatch("POST", "/v1/sessions/refresh")
        let busy = Fault(id: "busy", .respond(CannedReply(status: 503)), when: renewal)
        try scene.world.set(canRenew ? Fault(id: "busy", .loseReply(.close), when: renewal) : busy)
        let error = await #expect(throws: LarderError.self) { try await client.bank.transfer(order, given: balances) }
        #expect(error?.code == .inDoubt)
        #expect(client.bank.unresolved.count == 1)
        for id in ["lost", "expired", "busy"] { scene.world.removeFault(id) }
        try await finish(client, scene)
        #expect(client.bank.unresolved.isEmpty)
        let now = try await client.cache.refresh(client.bank.accounts).value?.items.first { $0.id == from.id }
        #expect(now?.balance.minorUnits == from.balance.minorUnits - 700)
        client.close()
    }

    @Test func `a message in progress at the server is sent once, and later ones follow`() async throws {
        let scene = try ClientScene()
        let first = try await scene.client(transport: LingeringTransport())
        let conversation = try #require(try await first.cache.value(first.chat.conversations).items.first).id
        let path = "/v1/conversations/\(conversation)/messages"
        try scene.world.set(Gate(id: "slow", when: FaultMatch("POST", path), count: 1))
        for text in ["one", "two"] { try first.chat.send(text, to: conversation) }
        #expect(await scene.world.wait(for: .held(1), limit: .seconds(3_600)))
        first.close()
        let ends = Ends()
        let client = try await scene.client(onEvent: { ends.note($0) })
        #expect(
            await scene.world.wait(
                for: .entries(JournalFilter("POST", path, status: "409"), count: 1),
                limit: .seconds(3_600)
            )
        )
        #expect(await ends.postponement() != nil)
        #expect(client.cache.outbox.rejected.isEmpty && client.cache.outbox.status.blockedScopes == 0)
        scene.world.releaseAll()
        try await finish(client, scene)
        #expect(ends.rejected.withLock { $0.isEmpty } && client.cache.outbox.entries.isEmpty)
        let texts = try scene.truth(path, as: "ana", of: Message.self).map(\.text)
        #expect(texts.reversed().filter { ["one", "two"].contains($0) } == ["one", "two"])
        client.close()
    }

    // MARK: Profiles

    @Test(arguments: [500, 502, 503, 504, 507, 520])
    func `an edit that fails after its commit is known to be saved`(_ status: Int) async throws {
        let scene = try ClientScene()
        let client = try await scene.client()
        let me = try #require(client.session.userID)
        try scene.world.set(
            Fault(.respond(CannedReply(status: status)), when: FaultMatch("PATCH", "/v1/me"), stage: .afterCommit)
        )
        let saved = try await client.profiles.edit(me) { $0.bio = "saved, and told \(status)" }
        #expect(saved.bio == "saved, and told \(status)")
        #expect(await scene.count("PATCH", "/v1/me") == 1)
        client.close()
    }

    @Test(arguments: [500, 503])
    func `an edit that fails and is not visible is in doubt`(_ status: Int) async throws {
        let scene = try ClientScene()
        let client = try await scene.client()
        let me = try #require(client.session.userID)
        let before = try #require(try await client.profiles.profile(me).value)
        try scene.world.set(
            Fault(.respond(CannedReply(status: status)), when: FaultMatch("PATCH", "/v1/me"), stage: .afterRead)
        )
        let absent = await #expect(throws: LarderError.self) {
            try await client.profiles.edit(me) { $0.bio = "not there" }
        }
        #expect(absent?.code == .inDoubt && absent?.status == status)
        try scene.world.set(
            Fault(.respond(CannedReply(status: 503)), when: FaultMatch("GET", "/v1/profiles/**"), stage: .afterRead)
        )
        let unread = await #expect(throws: LarderError.self) {
            try await client.profiles.edit(me) { $0.bio = "not read" }
        }
        #expect(unread?.code == .inDoubt)
        #expect(try await client.profiles.profile(me, .cacheOnly).value?.bio == before.bio)
        client.close()
    }

    @Test(arguments: [403, 422, 429])
    func `a rejected edit is not in doubt`(_ status: Int) async throws {
        let scene = try ClientScene()
        let client = try await scene.client()
        let me = try #require(client.session.userID)
        _ = try await client.profiles.profile(me)
        try scene.world.set(
            Fault(.respond(CannedReply(status: status)), when: FaultMatch("PATCH", "/v1/me"), stage: .afterRead)
        )
        let error = await #expect(throws: LarderError.self) { try await client.profiles.edit(me) { $0.bio = "no" } }
        #expect(error?.code == .rejected && error?.status == status)
        client.close()
    }

    @Test func `a saved edit that cannot be stored locally is shown and reported as saved`() async throws {
        let scene = try ClientScene()
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("larder-\(UUID().uuidString)")
            .path
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let killable = KillableStore(DiskStore.Configuration(directory: directory, clock: scene.clock))
        let ends = Ends()
        let client = try await scene.client(onEvent: { ends.note($0) }, store: try killable.store())
        let me = try #require(client.session.userID)
        _ = try await client.cache.refresh(client.profiles.resource(me))
        try scene.world.set(Gate(id: "slow", when: FaultMatch("PATCH", "/v1/me"), count: 1))
        let saving = Task { try await client.profiles.edit(me) { $0.bio = "saved" } }
        #expect(await scene.world.wait(for: .held(1), limit: .seconds(3_600)))
        killable.fail(.full, untilHealed: true)
        scene.world.releaseAll()
        #expect(try await saving.value.bio == "saved")
        #expect(try await client.profiles.profile(me, .cacheOnly).value?.bio == "saved")
        #expect(ends.failures.withLock { $0.contains { $0.code == .storage } })
        client.close()
    }

    // MARK: Money

    /// Waits until everything is sent. An attempt that began before the store was healed may fail after it.
    private func drain(_ outbox: Outbox) async throws {
        while true {
            do { return try await outbox.drained() } catch {
                guard error.code == .storage else { throw error }
            }
        }
    }

    @Test func `a completed transfer is reported as completed although the store fails afterwards`() async throws {
        let scene = try ClientScene()
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("larder-\(UUID().uuidString)")
            .path
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let killable = KillableStore(DiskStore.Configuration(directory: directory, clock: scene.clock))
        let client = try await scene.client(store: try killable.store())
        let (from, to) = try await pair(client, scene)
        let order = Bank.TransferOrder(from: from.id, to: to.id, Money(minorUnits: 1, currency: from.balance.currency))
        for step in 1...24 {
            try scene.world.set(Gate(id: "slow", when: FaultMatch("POST", "/v1/transfers"), count: 1))
            let paying = Task {
                try await client.bank.transfer(order, given: try await client.bank.validatedAccounts())
            }
            #expect(await scene.world.wait(for: .held(1), limit: .seconds(3_600)))
            // Fails at each statement from the first one that stores the receipt.
            killable.fail(.full, atStep: step, untilHealed: true)
            scene.world.releaseAll()
            #expect(try await paying.value.id.isEmpty == false, "step \(step)")
            killable.heal()
            client.cache.networkReturned()
            try await drain(client.cache.outbox)
        }
        let now = try await client.cache.refresh(client.bank.accounts).value?.items.first { $0.id == from.id }
        #expect(now?.balance.minorUnits == from.balance.minorUnits - 24)
        client.close()
    }

    // MARK: Likes

    @Test func `offline, a double tap on a liked post and a tap on its like button end without the like`() async throws
    {
        let scene = try ClientScene()
        let online = Mutex(true)
        let client = try await scene.client(isOnline: { online.withLock { $0 } })
        let post = try #require(try await client.cache.value(client.feed.newest).items.first)
        let _: Post = try scene.act("PUT", "/v1/posts/\(post.id)/like", as: "ana")
        _ = try await client.cache.refresh(client.feed.newest)
        #expect(try await client.cache.value(client.feed.post(post.id), .cacheOnly).likedByMe)
        online.withLock { $0 = false }
        try client.likes.set(true, post.id)
        try client.likes.set(false, post.id)
        #expect(try await !client.cache.value(client.feed.post(post.id), .cacheOnly).likedByMe)
        online.withLock { $0 = true }
        client.cache.networkReturned()
        try await client.cache.outbox.drained()
        let truth = try scene.truth("/v1/feed", as: "ana", of: Post.self).first { $0.id == post.id }
        #expect(truth?.likedByMe == false)
        #expect(try await !client.cache.value(client.feed.post(post.id), .cacheOnly).likedByMe)
        client.close()
    }

    @Test(arguments: seeds(3))
    func `random offline taps end with the last taps, whatever posts were stored`(_ seed: UInt64)
        async throws
    {
        let scene = try ClientScene()
        var random = SeededGenerator(seed: seed)
        let online = Mutex(true)
        var client = try await scene.client(isOnline: { online.withLock { $0 } })
        let posts = try scene.truth("/v1/feed", as: "ana", of: Post.self).map(\.id)
        let chosen = Array(posts.prefix(3) + posts.suffix(3))
        try #require(posts.count > 50)
        for post in chosen where random.uniform(in: 0..<2) == 0 {
            let _: Post = try scene.act("PUT", "/v1/posts/\(post)/like", as: "ana")
        }
        // The newest fifty posts are stored, the oldest are not.
        _ = try await client.cache.value(client.feed.newest)
        online.withLock { $0 = false }
        var hearts: [String: Bool] = [:]
        for tap in 0..<40 {
            let post = chosen[random.uniform(in: chosen.startIndex..<chosen.endIndex)]
            hearts[post] = random.uniform(in: 0..<2) == 0
            try client.likes.set(hearts[post] ?? false, post)
            if tap == 20 {
                client.close()
                client = try await scene.client(isOnline: { online.withLock { $0 } })
            }
        }
        online.withLock { $0 = true }
        client.cache.networkReturned()
        try await client.cache.outbox.drained()
        let truth = try scene.truth("/v1/feed", as: "ana", of: Post.self)
        for (post, isLiked) in hearts {
            #expect(truth.first { $0.id == post }?.likedByMe == isLiked, "seed \(seed), \(post)")
        }
        client.close()
    }

    // MARK: Chat

    @Test func `a message has up to 4,000 Unicode scalars, as on the server`() async throws {
        let scene = try ClientScene()
        let client = try await scene.client()
        let conversation = try #require(try await client.cache.value(client.chat.conversations).items.first).id
        for text in [String(repeating: "a", count: 4_001), String(repeating: "👍🏽", count: 2_001), ""] {
            let error = #expect(throws: LarderError.self) { try client.chat.send(text, to: conversation) }
            #expect(error?.code == .invalidArgument)
        }
        let longest = [String(repeating: "a", count: 4_000), String(repeating: "👍🏽", count: 2_000)]
        for text in longest { try client.chat.send(text, to: conversation) }
        try await client.cache.outbox.drained()
        #expect(client.cache.outbox.entries.isEmpty)
        let texts = try scene.truth("/v1/conversations/\(conversation)/messages", as: "ana", of: Message.self)
        #expect(longest.allSatisfy { text in texts.contains { $0.text == text } })
        client.close()
    }
}
