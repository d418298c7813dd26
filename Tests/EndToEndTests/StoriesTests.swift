import Foundation
import Larder
import LarderDemo
import LarderModels
import LarderResources
import LarderServer
import LarderTesting
import LarderTime
import Synchronization
import TestSupport
import Testing

/// Calls a function after each exchange, whether it failed or not.
private struct InterruptedTransport: Transport {
    let base: any Transport
    let after: @Sendable (TransportRequest) -> Void

    func open(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
        defer { after(request) }
        return TransportStream(try await base.send(request))
    }
}

@Suite("Client and server, end to end", .oneMinute)
struct StoriesTests {
    @Test func `offline, read values are available, others give one error, and all are fresh when back online`()
        async throws
    {
        let scene = try ClientScene()
        let first = try await scene.client()
        let posts = try await first.cache.value(first.feed.newest)
        first.close()
        let flying = Mutex(true)
        let client = try await scene.client(isOnline: { !flying.withLock { $0 } })
        let cold = try await client.cache.snapshot(client.feed.newest)
        #expect(cold.value == posts && cold.source == .disk && cold.refreshError == nil)
        scene.clock.advance(by: .seconds(3_600))
        let stale = try await client.cache.snapshot(client.feed.newest)
        #expect(stale.value == posts && stale.freshness == .stale(.expired))
        let error = await #expect(throws: LarderError.self) { try await client.profiles.profile("user_9") }
        #expect(error?.code == .offline)
        let seen = SequenceRecorder(client.feed.snapshots())
        await seen.wait(for: 1)
        flying.withLock { $0 = false }
        client.cache.networkReturned()
        await seen.wait { $0.last?.freshness == .fresh }
        #expect(seen.elements.allSatisfy { $0.value == posts })
        // Unchanged values are revalidated without a body.
        #expect(await scene.count("GET", "/v1/feed", status: "304") == 1)
        #expect(try await client.profiles.profile("user_9").freshness == .fresh)
        await scene.expectGoodConduct(saves: true)
    }

    @Test func `offline without stored values, a read fails, and content arrives with the network`() async throws {
        let scene = try ClientScene()
        let flying = Mutex(true)
        let client = try await scene.client(try scene.handle("user_2"), isOnline: { !flying.withLock { $0 } })
        let seen = SequenceRecorder(client.feed.snapshots())
        await seen.wait { $0.last?.refreshError?.code == .offline }
        flying.withLock { $0 = false }
        client.cache.networkReturned()
        await seen.wait { $0.last?.value?.items.isEmpty == false }
        #expect(seen.elements.last?.refreshError == nil)
        await scene.expectGoodConduct()
    }

    /// An account with money, and one of another user in the same currency.
    private func pair(_ mine: [Account], _ scene: ClientScene) async throws -> (from: Account, to: Account) {
        for number in 2...20 {
            let other = try await scene.client(try scene.handle("user_\(number)"))
            let theirs = try await other.cache.value(other.bank.accounts).items
            for from in mine where from.status == "open" && from.balance.minorUnits > 10_000 {
                let to = theirs.first { $0.status == "open" && $0.balance.currency == from.balance.currency }
                if let to { return (from, to) }
            }
        }
        throw LarderError(.notCached, "The small world has no two accounts in one currency.")
    }

    @Test func `a transfer with lost replies and a crash is made once and resolved`()
        async throws
    {
        let scene = try ClientScene()
        var client = try await scene.client()
        let accounts = try await client.cache.value(client.bank.accounts).items
        let (from, to) = try await pair(accounts, scene)
        var lossy = Fault.Occurrence()
        // The first attempt is sent over a kept connection, and again over a new one.
        lossy.count = 3
        try scene.world.set(
            Fault(.loseReply(.reset), when: FaultMatch("POST", "/v1/transfers"), occurrence: lossy)
        )
        let order = Bank.TransferOrder(
            from: from.id,
            to: to.id,
            Money(minorUnits: 1_234, currency: from.balance.currency),
            note: "rent"
        )
        let error = await #expect(throws: LarderError.self) {
            try await client.bank.transfer(order, given: try await client.bank.validatedAccounts())
        }
        #expect(error?.code == .inDoubt)
        #expect(client.bank.unresolved.count == 1)
        // The unconfirmed transfer is not shown.
        #expect(
            try await client.cache.value(client.bank.accounts, .cacheOnly).items.first { $0.id == from.id }?.balance
                == from.balance
        )
        client.close()
        client = try await scene.client()
        // The reply to the first attempt after the restart is lost too.
        // The random number of the scene makes each back-off zero.
        try await client.cache.outbox.drained()
        #expect(client.bank.unresolved.isEmpty)
        let keys = await scene.world.journal(JournalFilter("POST", "/v1/transfers")).compactMap {
            $0.requestField("Idempotency-Key")
        }
        #expect(keys.count == 4 && Set(keys).count == 1)
        let after = try await client.cache.value(client.bank.accounts).items
        #expect(after.first { $0.id == from.id }?.balance.minorUnits == from.balance.minorUnits - 1_234)
        #expect(try scene.world.ledgerFaults().isEmpty)
        let findings = await scene.world.conduct.findings
        #expect(!findings.contains { [.keyMissing, .keyChanged].contains($0.rule) })
        await scene.expectGoodConduct()
    }

    @Test func `rejections of transfers are distinguished, and the gate requires a network`() async throws {
        let scene = try ClientScene()
        let online = Mutex(true)
        let client = try await scene.client(isOnline: { online.withLock { $0 } })
        let accounts = try await client.cache.value(client.bank.accounts).items
        let (from, to) = try await pair(accounts, scene)
        func order(_ minorUnits: Int64, _ currency: String) -> Bank.TransferOrder {
            Bank.TransferOrder(from: from.id, to: to.id, Money(minorUnits: minorUnits, currency: currency))
        }
        let poor = await #expect(throws: LarderError.self) {
            try await client.bank.transfer(
                order(from.balance.minorUnits + 1, from.balance.currency),
                given: try await client.bank.validatedAccounts()
            )
        }
        #expect(poor.flatMap { Bank.rejection($0) } == .insufficientFunds)
        let foreign = await #expect(throws: LarderError.self) {
            try await client.bank.transfer(order(1, "XTS"), given: try await client.bank.validatedAccounts())
        }
        #expect(foreign.flatMap { Bank.rejection($0) } == .currencyMismatch || foreign?.status == 422)
        scene.clock.advance(by: .seconds(31))
        online.withLock { $0 = false }
        let gate = await #expect(throws: LarderError.self) {
            try await client.bank.transfer(
                order(1, from.balance.currency),
                given: try await client.bank.validatedAccounts()
            )
        }
        #expect(gate?.code == .notValidated && client.bank.unresolved.isEmpty)
        await scene.expectGoodConduct()
    }

    @Test(arguments: seeds(1))
    func `five hundred taps on fifty posts over a lossy network with a crash end with the last taps`(
        _ seed: UInt64
    ) async throws {
        let scene = try ClientScene()
        var generator = SeededGenerator(seed: seed)
        var client = try await scene.client()
        let posts = try await client.cache.value(client.feed.newest).items
        #expect(posts.count == 50)
        var lossy = Fault.Occurrence()
        lossy.probability = 0.4
        try scene.world.set(
            Fault(.loseReply(.reset), when: FaultMatch("POST", "/v1/likes"), occurrence: lossy),
            Fault(.respond(CannedReply(status: 503)), when: FaultMatch("POST", "/v1/likes"), occurrence: lossy)
        )
        var hearts = Dictionary(uniqueKeysWithValues: posts.map { ($0.id, $0.likedByMe) })
        for tap in 0..<500 {
            let post = posts[generator.uniform(in: 0..<50)].id
            hearts[post]?.toggle()
            try client.likes.set(hearts[post] ?? false, post)
            if tap == 250 {
                client.close()
                client = try await scene.client()
            }
            #expect(try await client.cache.value(client.feed.post(post), .cacheOnly).likedByMe == hearts[post])
        }
        scene.world.removeFaults()
        // The random number of the scene makes each back-off zero.
        try await client.cache.outbox.drained()
        #expect(client.cache.outbox.entries.isEmpty)
        let other = try await scene.client("ana", device: "tablet")
        for post in try await other.cache.value(other.feed.newest).items {
            #expect(post.likedByMe == hearts[post.id], "seed \(seed), \(post.id)")
            let before = try #require(posts.first { $0.id == post.id })
            let change = (post.likedByMe ? 1 : 0) - (before.likedByMe ? 1 : 0)
            #expect(post.likeCount == before.likeCount + change)
        }
        await scene.expectGoodConduct()
    }

    @Test func `a token that expires during a sync is renewed once, and each request is repeated once`()
        async throws
    {
        let scene = try ClientScene()
        let client = try await scene.client()
        try await client.sync.catchUp()
        for index in 0..<20 {
            #expect(scene.edit(as: try scene.handle("user_2"), #"{"bio":"\#(index)"}"#) == 200)
        }
        var once = Fault.Occurrence()
        once.count = 1
        try scene.world.set(Fault(.expireToken, when: FaultMatch("GET", "/v1/**"), occurrence: once))
        await withTaskGroup(of: Void.self) { group in
            group.addTask { _ = try? await client.sync.catchUp() }
            for index in 1...10 {
                group.addTask { _ = try? await client.profiles.profile("user_\(index)") }
            }
        }
        #expect(await scene.count("POST", "/v1/sessions/refresh") == 1)
        #expect(client.sync.status.isCaughtUp)
        await scene.expectGoodConduct()
    }

    @Test func `an expired change token leads to a resync that keeps visible content and pending changes`() async throws
    {
        let scene = try ClientScene()
        let client = try await scene.client()
        try await client.sync.catchUp()
        let posts = try await client.cache.value(client.feed.newest).items
        let seen = SequenceRecorder(client.feed.snapshots(.cacheOnly))
        await seen.wait(for: 1)
        client.cache.outbox.pause()
        let unliked = try #require(posts.first { !$0.likedByMe })
        try client.likes.set(true, unliked.id)
        var once = Fault.Occurrence()
        once.count = 1
        try scene.world.set(Fault(.changes(.expired), occurrence: once))
        try await client.sync.catchUp()
        #expect(client.sync.status.resyncs == 1)
        await seen.wait { $0.last?.freshness == .stale(.invalidated) }
        #expect(seen.elements.allSatisfy { $0.value?.items.count == 50 })
        #expect(try await client.cache.value(client.feed.post(unliked.id), .cacheOnly).likedByMe)
        let fresh = try await client.cache.snapshot(client.feed.newest, .networkOnly)
        #expect(fresh.freshness == .fresh && fresh.pendingChanges == 1)
        await scene.expectGoodConduct()
    }

    @Test(arguments: [ChangePageFault.repeated, .empty, .reversed, .expired])
    func `a faulty change feed ends with the server's state`(_ page: ChangePageFault) async throws {
        let scene = try ClientScene()
        let client = try await scene.client()
        try await client.sync.catchUp()
        _ = try await client.profiles.profile("user_2")
        for index in 0..<5 {
            #expect(scene.edit(as: try scene.handle("user_2"), #"{"bio":"bio \#(index)"}"#) == 200)
        }
        var once = Fault.Occurrence()
        once.count = 1
        if page == .expired { once.after = 1 }
        try scene.world.set(Fault(.changes(page), occurrence: once))
        try await client.sync.catchUp()
        try await client.sync.catchUp()
        let snapshot = try await client.profiles.profile("user_2")
        #expect(snapshot.value?.bio == "bio 4")
        await scene.expectGoodConduct()
    }

    @Test func `the user's edit stays visible when a lagging replica answers`() async throws {
        let scene = try ClientScene()
        let client = try await scene.client()
        let me = try #require(client.session.userID)
        _ = try await client.profiles.profile(me)
        let seen = SequenceRecorder(client.profiles.snapshots(me, .cacheOnly))
        await seen.wait(for: 1)
        try await client.profiles.edit(me) { $0.bio = "on a train" }
        try scene.world.set(Fault(.lag(.init(commits: 1)), when: FaultMatch("GET", "/v1/profiles/*")))
        #expect(try await client.cache.refresh(client.profiles.resource(me)).value?.bio == "on a train")
        #expect(try await client.profiles.profile(me, .cacheOnly).value?.bio == "on a train")
        await seen.wait { $0.last?.value?.bio == "on a train" }
        let bios = seen.elements.compactMap { $0.value?.bio }
        #expect(bios.drop { $0 != "on a train" }.allSatisfy { $0 == "on a train" })
        await scene.expectGoodConduct()
    }

    @Test func `a conflicting edit returns all three versions, and a merge saves both`()
        async throws
    {
        let scene = try ClientScene()
        let client = try await scene.client()
        let me = try #require(client.session.userID)
        _ = try await client.cache.refresh(client.profiles.resource(me))
        #expect(scene.edit(as: "ana", #"{"location":"Lisbon"}"#) == 200)
        do {
            try await client.profiles.edit(me) { $0.bio = "mine" }
            Issue.record("the conflict went unnoticed")
        } catch {
            let conflict = try #require(error.cause as? Outbox.EditConflict<Profile>)
            #expect(
                conflict.mine.bio == "mine" && conflict.theirs.location == "Lisbon"
                    && conflict.base.location != "Lisbon"
            )
            let merge = try conflict.merged(preferringMine: true)
            #expect(merge.conflicts.subtracting(["version", "updatedAt"]).isEmpty)
            let saved = try await client.profiles.save(
                base: conflict.theirs,
                mine: merge.value,
                ifMatch: conflict.validator
            )
            #expect(saved.bio == "mine" && saved.location == "Lisbon")
        }
        await scene.expectGoodConduct()
    }

    @Test func `an edit with a lost reply is known to be saved, and one offline changes nothing`() async throws {
        let scene = try ClientScene()
        let online = Mutex(true)
        let client = try await scene.client(isOnline: { online.withLock { $0 } })
        let me = try #require(client.session.userID)
        let before = try #require(try await client.profiles.profile(me).value)
        var once = Fault.Occurrence()
        once.count = 1
        try scene.world.set(Fault(.loseReply(.reset), when: FaultMatch("PATCH", "/v1/me"), occurrence: once))
        let saved = try await client.profiles.edit(me) { $0.bio = "lost and found" }
        #expect(saved.bio == "lost and found")
        #expect(before.bio != "lost and found")
        let server = scene.world
        try server.set(Fault(.reset, when: FaultMatch("PATCH", "/v1/me"), stage: .beforeRead))
        await #expect(throws: LarderError.self) { try await client.profiles.edit(me) { $0.bio = "never" } }
        #expect(try await client.profiles.profile(me, .cacheOnly).value?.bio == "lost and found")
        await scene.expectGoodConduct()
    }

    @Test func `an edit with a lost reply is known to be saved beside an edit of another field`() async throws {
        let scene = try ClientScene()
        // Another device edits the profile before the reply of the first PATCH is missed.
        let transport = InterruptedTransport(base: SocketTransport(clock: ManualClock())) { request in
            if request.method == .patch { scene.edit(as: "ana", #"{"location":"Elsewhere"}"#) }
        }
        let client = try await scene.client(transport: transport)
        let me = try #require(client.session.userID)
        var once = Fault.Occurrence()
        once.count = 1
        try scene.world.set(Fault(.loseReply(.reset), when: FaultMatch("PATCH", "/v1/me"), occurrence: once))
        let saved = try await client.profiles.edit(me) { $0.bio = "lost and found" }
        #expect(saved.bio == "lost and found" && saved.location == "Elsewhere")
    }

    @Test func `twenty observers of one profile make one request`() async throws {
        let scene = try ClientScene()
        let client = try await scene.client()
        let observers = (0..<20).map { _ in SequenceRecorder(client.profiles.snapshots("user_5")) }
        for observer in observers { await observer.wait { $0.last?.freshness == .fresh } }
        #expect(await scene.count("GET", "/v1/profiles/user_5") == 1)
        let findings = await scene.world.conduct.findings
        #expect(!findings.contains { $0.rule == .duplicateInFlight })
        await scene.expectGoodConduct()
    }

    @Test func `the page of a captive portal is never cached`() async throws {
        let scene = try ClientScene()
        let client = try await scene.client()
        let posts = try await client.cache.value(client.feed.newest)
        scene.clock.advance(by: .seconds(120))
        var portal = CannedReply(status: 200)
        portal.body = "<html><title>Sign in to FreeWifi</title></html>"
        portal.headers = ["Content-Type": "text/html"]
        try scene.world.set(Fault(.respond(portal), when: FaultMatch("GET", "/v1/**")))
        let error = await #expect(throws: LarderError.self) { try await client.cache.refresh(client.feed.newest) }
        #expect(error?.code == .unexpectedReply)
        await #expect(throws: LarderError.self) { try await client.profiles.profile("user_7") }
        await #expect(throws: LarderError.self) { try await client.sync.catchUp() }
        scene.world.removeFaults()
        let after = try await client.cache.snapshot(client.feed.newest, .cacheOnly)
        #expect(after.value == posts)
        #expect(try await client.cache.refresh(client.feed.newest).freshness == .fresh)
        await scene.expectGoodConduct()
    }

    @Test func `two accounts on one device are separate, and signing out of one keeps the other`()
        async throws
    {
        let scene = try ClientScene()
        let ana = try await scene.client("ana")
        let name = try scene.handle("user_2")
        let ben = try await scene.client(name)
        let accounts = try await ana.cache.value(ana.bank.accounts).items.map(\.id)
        let others = try await ben.cache.value(ben.bank.accounts).items.map(\.id)
        #expect(Set(others).isDisjoint(with: accounts))
        _ = try await ana.cache.value(ana.chat.conversations)
        try await ana.signOut()
        #expect(!scene.files(of: "ana") && scene.files(of: name))
        await #expect(throws: LarderError.self) { try await ana.profiles.profile("user_1") }
        #expect(try await ben.profiles.profile("user_1").value?.handle == "ana")
        #expect(await scene.count("DELETE", "/v1/sessions/current") == 1)
        await scene.expectGoodConduct()
    }

    @Test func `a clock jump of a day back or a year ahead makes no stale value fresh`() async throws {
        let scene = try ClientScene()
        let client = try await scene.client()
        _ = try await client.profiles.profile("user_3")
        for jump in [-86_400, 366 * 86_400] {
            scene.clock.set(wall: scene.clock.now + .seconds(jump))
            #expect(try await client.profiles.profile("user_3", .cacheOnly).freshness.isFresh == false)
            #expect(try await client.profiles.profile("user_3").freshness == .fresh)
        }
        // Each refresh was a revalidation without a body.
        #expect(await scene.count("GET", "/v1/profiles/user_3", status: "304") == 2)
        await scene.expectGoodConduct(saves: true)
    }
}
