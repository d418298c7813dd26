import Larder
import LarderBackend
import LarderEngine
import LarderResources
import LarderTime
import TestSupport
import Testing

@testable import LarderDemo
@testable import LarderServer

@Suite("Conduct and convergence under every dialect, drift and feed fault, end to end", .oneMinute)
struct ConductVariantTests {
    // MARK: Dialects

    @Test(arguments: Dialect.Idempotency.allCases)
    func `each idempotency dialect gives each write one effect, although replies are lost`(
        _ dialect: Dialect.Idempotency
    ) async throws {
        let visit = try Visit(seed: 21)
        let person = try await Person.arrive(visit)
        visit.world.dialect.idempotency = dialect
        var often = Fault.Occurrence()
        often.probability = 0.4
        var busy = CannedReply(status: 503)
        busy.retryAfter = .seconds(3)
        try visit.world.set(
            Fault(id: "lost", .loseReply(.reset), when: FaultMatch("POST", "/v1/**"), occurrence: often),
            Fault(id: "twice", .duplicate, when: FaultMatch("POST", "/v1/**"), occurrence: often),
            Fault(id: "busy", .respond(busy), when: FaultMatch("POST", "/v1/**"), occurrence: often)
        )
        try await person.restart(live: LiveSync.Kind.allCases)
        try await person.use(rounds: 1)
        for id in ["lost", "twice", "busy"] { visit.world.removeFault(id) }
        let name = "idempotency \(dialect.rawValue), seed \(visit.seed)"
        try await person.expectToCatchUp(name)
        try await person.expectConvergence(name, mayHaveStaleItems: true)
        // Batches are sent at once: one may leave while the rejection of another is on its way.
        await person.expectGoodConduct("idempotency \(dialect.rawValue)", name, except: [.retriedTooSoon])
        person.client.close()
    }

    /// Few requests a minute for everybody.
    private static let limited: Result<MockBackend, any Error> = Result {
        var configuration = MockBackend.Configuration()
        configuration.rateLimit = 12
        configuration.server.isStepped = true
        return try Listeners.share { try MockBackend.startSmall(configuration) }
    }

    @Test func `a rate limit is obeyed`() async throws {
        let visit = try Visit(seed: 22, Self.limited.get())
        let person = try await Person.arrive(visit)
        try await person.restart(live: LiveSync.Kind.allCases)
        // The person's own refreshes are always sent. Other callers have limits of their own.
        var rejected = 0
        for _ in 0..<100 where rejected == 0 {
            await person.pull()
            rejected = await visit.world.journal(JournalFilter(nil, nil, status: "429")).count
        }
        await visit.pass(.seconds(70))
        try await person.use(rounds: 1)
        let name = "rate limit, seed \(visit.seed)"
        try await person.expectToCatchUp(name)
        #expect(rejected > 0, "\(name): the limit was never reached")
        // The person's refreshes until the limit were at one moment of the world's clock.
        await person.expectGoodConduct("rate limit", name, except: [.repeatedInLoop])
        person.client.close()
    }

    @Test(arguments: Dialect.Resync.allCases)
    func `each instruction for a resync leads to the server's state`(_ dialect: Dialect.Resync) async throws {
        let visit = try Visit(seed: 23)
        let person = try await Person.arrive(visit)
        visit.world.dialect.resync = dialect
        try await person.restart(live: LiveSync.Kind.allCases)
        try await person.use(rounds: 1) { step in
            if step == 5 || step == 10 { try await person.miss(nil) }
        }
        #expect(person.client.sync.status.resyncs > 0)
        let name = "resync \(dialect.rawValue), seed \(visit.seed)"
        try await person.expectToCatchUp(name)
        try await person.expectConvergence(name, mayHaveStaleItems: true)
        await person.expectGoodConduct("resync \(dialect.rawValue)", name)
        person.client.close()
    }

    // MARK: The change feed

    @Test(arguments: ChangePageFault.allCases)
    func `a fault of the change feed in the middle of a sync costs requests and no change`(_ page: ChangePageFault)
        async throws
    {
        let visit = try Visit(seed: 24)
        let person = try await Person.arrive(visit)
        // The other channels send what was missed themselves, so that the feed would not be read.
        try await person.restart(live: [.longPoll])
        try await person.use(rounds: 1) { step in
            guard step == 4 || step == 9 else { return }
            try await person.miss(page)
        }
        let name = "change feed \(page), seed \(visit.seed)"
        let resyncs = person.client.sync.status.resyncs
        if page == .expired { #expect(resyncs > 0, "\(name)") }
        try await person.expectToCatchUp(name)
        try await person.expectConvergence(name, mayHaveStaleItems: resyncs > 0)
        await person.expectGoodConduct("change feed \(page)", name)
        person.client.close()
    }

    // MARK: Live channels

    private static let liveFaults: [(name: String, fault: LiveFault)] = {
        var (swapped, lost) = (LiveFault(), LiveFault())
        swapped.reorder = 0.4
        swapped.duplicate = 0.4
        lost.lose = 0.3
        lost.reorder = 0.2
        lost.duplicate = 0.2
        lost.delay = .uniform(.zero, .seconds(4))
        return [("reordered and doubled", swapped), ("lost, reordered, doubled and late", lost)]
    }()

    @Test(arguments: LiveSync.Kind.allCases.filter { $0 != .longPoll }, Self.liveFaults.indices)
    func `frames that are lost, late, doubled or out of order leave nothing outdated`(
        _ kind: LiveSync.Kind,
        _ index: Int
    ) async throws {
        let visit = try Visit(seed: 25)
        let person = try await Person.arrive(visit)
        let (faultName, fault) = Self.liveFaults[index]
        try visit.world.set(Fault(id: "live", .live(fault), when: FaultMatch("GET", "/v1/live/**")))
        try visit.world.set(Fault(id: "live-socket", .live(fault), when: FaultMatch("GET", "/v1/live")))
        try await person.restart(live: [kind])
        try await person.use(rounds: 1)
        for id in ["live", "live-socket"] { visit.world.removeFault(id) }
        // Nobody can know of a last frame that was lost: the next contact tells.
        person.client.pause()
        person.client.start()
        let name = "\(kind.rawValue), frames \(faultName), seed \(visit.seed)"
        try await person.expectToCatchUp(name)
        try await person.expectConvergence(name)
        await person.expectGoodConduct("\(kind.rawValue), frames \(faultName)", name)
        person.client.close()
    }

    // MARK: Schema drift

    private static let drifts: [(name: String, drift: SchemaDrift)] = {
        var drifts = [SchemaDrift.Change.newMembers, .noNulls, .largeVersions, .otherOrder].map { change in
            var drift = SchemaDrift(seed: 1)
            (drift.changes, drift.probability) = ([change], 1)
            return (change.rawValue, drift)
        }
        for seed in 2...4 as ClosedRange<UInt64> {
            var some = SchemaDrift(seed: seed)
            // A list and the feed with different versions of one entity never agree.
            some.changes.remove(.largeVersions)
            // A change of a type that no longer exists cannot be applied; see the test of new cases.
            some.changes.remove(.newCases)
            drifts.append(("some of all, seed \(seed)", some))
        }
        return drifts
    }()

    @Test(arguments: Self.drifts.indices)
    func `a later version of the API is read like the present one`(_ index: Int) async throws {
        let visit = try Visit(seed: 26)
        let person = try await Person.arrive(visit)
        let (driftName, drift) = Self.drifts[index]
        visit.world.drift = drift
        // Frames of the other channels do not drift.
        try await person.restart(live: [.longPoll])
        try await person.use(rounds: 1)
        let name = "drift \(driftName), seed \(visit.seed)"
        try await person.expectToCatchUp(name)
        try await person.expectConvergence(name)
        await person.expectGoodConduct("drift \(driftName)", name)
        person.client.close()
    }

    @Test func `with cases that the client does not know, everything it does is done, and a refresh shows the state`()
        async throws
    {
        let visit = try Visit(seed: 27)
        let person = try await Person.arrive(visit)
        var drift = SchemaDrift(seed: 1)
        drift.changes.remove(.largeVersions)
        drift.probability = 1
        visit.world.drift = drift
        try await person.restart(live: [.longPoll])
        try await person.use(rounds: 1)
        let name = "drift with new cases, seed \(visit.seed)"
        // The types in the change feed are among the new cases, so that no change can be applied: the client learns of changes only
        // by reading, and what it holds may be as old as its lifetime.
        let isDone = await visit.pass(atMost: .seconds(300)) { person.isDrained }
        #expect(isDone, "\(name): \(person.client.cache.outbox.entries)")
        await visit.pass(.seconds(301))
        await person.pull()
        try await person.openEverything()
        try person.expectDeeds(name)
        await person.expectGoodConduct("drift new cases", name)
        person.client.close()
    }

    // MARK: Sessions

    @Test func `sessions that expire at any time are renewed, and nothing is lost or asked twice`() async throws {
        let visit = try Visit(seed: 28)
        let person = try await Person.arrive(visit)
        var sometimes = Fault.Occurrence()
        sometimes.probability = 0.2
        try visit.world.set(Fault(id: "expired", .expireToken, when: FaultMatch(nil, "/v1/**"), occurrence: sometimes))
        try await person.restart(live: LiveSync.Kind.allCases)
        try await person.use(rounds: 1) { step in
            // The access token lives for an hour.
            if step % 4 == 3 { await visit.pass(.seconds(3_700)) }
        }
        visit.world.removeFault("expired")
        let name = "expired sessions, seed \(visit.seed)"
        try await person.expectToCatchUp(name)
        try await person.expectConvergence(name)
        let renewals = await visit.world.journal(JournalFilter("POST", "/v1/sessions/refresh", status: "2xx")).count
        #expect(renewals >= 4, "\(name): \(renewals) renewals")
        await person.expectGoodConduct("expired sessions", name)
        person.client.close()
    }
}

extension Person {
    /// Lets the client miss changes, one deletion among them, and meet the fault when it comes back.
    ///
    /// - Parameter page: nil: all tokens have expired, also those of live channels.
    func miss(_ page: ChangePageFault?) async throws {
        client.pause()
        // The server ends the long poll by then.
        await visit.pass(.seconds(30))
        for step in [0, 2, 5, 1] { try visit.world.otherDeviceActs(step, places) }
        if let page {
            var once = Fault.Occurrence()
            // A long poll leaves it to the next read to begin anew.
            once.count = page == .expired ? 2 : 1
            try visit.world.set(Fault(id: "page", .changes(page), occurrence: once))
        } else {
            try visit.world.world.replace(with: visit.world.world.image())
        }
        client.start()
        await visit.pass(.seconds(20))
    }
}
