import LarderResources
import LarderTesting
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@Suite("Cache: back-off of reads", .oneMinute)
struct ReadBackOffTests {
    private let scene = CacheScene()

    private func word(_ source: ScriptedSource<String>, _ policy: ReadPolicy = .cacheFirst) -> Resource<String> {
        Resource("word", freshness: .timeToLive(.seconds(60)), policy: policy) { try await source.fetch($0) }
    }

    private static let busy = LarderError(.rejected, "busy", status: 503)

    /// An error with a `Retry-After`.
    private static func busy(_ wait: Duration) -> LarderError {
        LarderError(.rejected, "busy", status: 503, retryAfter: wait)
    }

    @Test func `after each failure reads wait twice as long, and nothing is sent before`() async throws {
        // Jitter draws the half.
        let cache = try scene.cache()
        let source = ScriptedSource<String>()
        for count in 1...8 {
            source.prepare(failure: Self.busy)
            let first = await #expect(throws: LarderError.self) { try await cache.value(word(source)) }
            #expect(first?.description == "busy" && source.requests.count == count)
            let wait: Duration = .milliseconds(min(60_000, 1_000 << (count - 1)) / 2)
            scene.clock.advance(by: wait - .milliseconds(1))
            let second = await #expect(throws: LarderError.self) { try await cache.value(word(source)) }
            #expect(second?.code == .rejected && second?.status == 503 && second?.retryAfter == .milliseconds(1))
            #expect(source.requests.count == count)
            scene.clock.advance(by: .milliseconds(1))
        }
        source.prepare(.value("a"))
        #expect(try await cache.value(word(source)) == "a")
        // A success ends it.
        try await cache.invalidate(word(source))
        source.prepare(failure: Self.busy)
        _ = try await cache.value(word(source))
        scene.clock.advance(by: .milliseconds(500))
        source.prepare(.value("b"))
        #expect(try await cache.value(word(source)) == "b")
    }

    @Test(arguments: [ReadPolicy.cacheFirst, .staleWhileRevalidate, .cacheAndLoad, .networkFirst(timeout: nil)])
    func `a read that must wait shows what is stored, with the error`(policy: ReadPolicy) async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<String>()
        source.prepare(.value("a"))
        _ = try await cache.value(word(source))
        scene.clock.advance(by: .seconds(60))
        source.prepare(failure: Self.busy(.seconds(30)))
        _ = await #expect(throws: LarderError.self) { try await cache.refresh(word(source)) }
        let snapshot = try await cache.snapshot(word(source, policy))
        #expect(snapshot.value == "a" && snapshot.freshness == .stale(.expired))
        #expect(snapshot.refreshError?.status == 503 && snapshot.isFetching == false && source.requests.count == 2)
        let seen = SequenceRecorder(cache.snapshots(word(source, policy)))
        await seen.wait { $0.last?.value == "a" && $0.last?.refreshError != nil }
        #expect(source.requests.count == 2)
        // The observer gets its request when it may be sent.
        source.prepare(.value("b"))
        try await scene.clock.waitForSleepers()
        scene.clock.advance(by: .milliseconds(30_500))
        await seen.wait { $0.last?.value == "b" }
        #expect(source.requests.count == 3)
    }

    @Test func `a networkOnly read that must wait shows nothing`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<String>()
        source.prepare(.value("a"))
        _ = try await cache.value(word(source))
        source.prepare(failure: Self.busy)
        _ = await #expect(throws: LarderError.self) { try await cache.value(word(source), .networkOnly) }
        _ = await #expect(throws: LarderError.self) { try await cache.value(word(source), .networkOnly) }
        let seen = SequenceRecorder(cache.snapshots(word(source), .networkOnly))
        await seen.wait { $0.last?.refreshError != nil }
        #expect(seen.elements.last?.value == nil && source.requests.count == 2)
        // An observer asks again, although what is stored is fresh.
        source.prepare(.value("b"))
        scene.clock.advance(by: .seconds(2))
        await seen.wait { $0.last?.value == "b" }
    }

    @Test func `an observer that may not use what is stored asks again when the network returns`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<String>()
        source.prepare(.value("a"))
        _ = try await cache.value(word(source))
        source.prepare(failure: LarderError(.offline, "no network").marked(isUnsent: true))
        let seen = SequenceRecorder(cache.snapshots(word(source), .networkOnly))
        await seen.wait { $0.last?.refreshError != nil }
        source.prepare(.value("b"))
        cache.networkReturned()
        await seen.wait { $0.last?.value == "b" }
    }

    @Test func `a refresh and a gate go at once, and do not end the wait of others`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<String>()
        let other = ScriptedSource<String>()
        let second = Resource<String>("other") { try await other.fetch($0) }
        other.prepare(failure: Self.busy(.seconds(30)))
        _ = await #expect(throws: LarderError.self) { try await cache.value(second) }
        source.prepare(failure: Self.busy(.seconds(30)))
        _ = await #expect(throws: LarderError.self) { try await cache.value(word(source)) }
        source.prepare(failure: Self.busy)
        _ = await #expect(throws: LarderError.self) { try await cache.refresh(word(source)) }
        source.prepare(.value("a"), .value("b"))
        #expect(try await cache.requireValidated(word(source), within: .zero).value == "a")
        #expect(try await cache.refresh(word(source)).value == "b")
        #expect(try await cache.value(word(source)) == "b")
        _ = await #expect(throws: LarderError.self) { try await cache.value(second) }
        #expect(source.requests.count == 4 && other.requests.count == 1)
    }

    @Test func `the return of the network ends a wait, but not one that the server has asked for`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<String>()
        source.prepare(failure: LarderError(.timedOut, "slow"))
        _ = await #expect(throws: LarderError.self) { try await cache.value(word(source)) }
        cache.networkReturned()
        source.prepare(failure: Self.busy(.seconds(30)))
        _ = await #expect(throws: LarderError.self) { try await cache.value(word(source)) }
        #expect(source.requests.count == 2)
        cache.networkReturned()
        _ = await #expect(throws: LarderError.self) { try await cache.value(word(source)) }
        #expect(source.requests.count == 2)
        scene.clock.advance(by: .seconds(30))
        source.prepare(.value("a"))
        #expect(try await cache.value(word(source)) == "a")
    }

    @Test func `a person's attempt that fails does not shorten the wait that the server has asked for`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<String>()
        source.prepare(failure: Self.busy(.seconds(30)))
        _ = await #expect(throws: LarderError.self) { try await cache.value(word(source)) }
        scene.clock.advance(by: .seconds(1))
        source.prepare(failure: Self.busy)
        _ = await #expect(throws: LarderError.self) { try await cache.refresh(word(source)) }
        #expect(source.requests.count == 2)
        scene.clock.advance(by: .seconds(20))
        let held = await #expect(throws: LarderError.self) { try await cache.value(word(source)) }
        #expect(source.requests.count == 2 && (held?.retryAfter ?? .zero) >= .seconds(9))
        scene.clock.advance(by: .seconds(11))
        source.prepare(.value("a"))
        #expect(try await cache.value(word(source)) == "a")
    }

    @Test func `a read without permission to use the network does not wait when it has it`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<String>()
        scene.isOnline.withLock { $0 = false }
        _ = await #expect(throws: LarderError.self) { try await cache.value(word(source)) }
        scene.isOnline.withLock { $0 = true }
        source.prepare(.value("a"))
        #expect(try await cache.value(word(source)) == "a")
    }

    @Test func `reads after failures share a budget`() async throws {
        var configuration = scene.configuration()
        configuration.readRetryBudget = RetryPolicy.Budget(share: 0, reserve: 3)
        let cache = try LarderCache(configuration)
        let source = ScriptedSource<String>()
        func read(_ key: Int) async {
            source.prepare(failure: Self.busy)
            let resource = Resource<String>("word", ["key": "\(key)"]) { try await source.fetch($0) }
            _ = await #expect(throws: LarderError.self) { try await cache.value(resource) }
        }
        for key in 0..<10 { await read(key) }
        #expect(source.requests.count == 10)
        for _ in 0..<5 {
            scene.clock.advance(by: .seconds(60))
            for key in 0..<10 { await read(key) }
        }
        // One in each further minute.
        #expect(source.requests.count == 17)
    }

    @Test func `when the server has recovered, all reads are sent although the budget was used up`() async throws {
        var configuration = scene.configuration()
        configuration.readRetryBudget = RetryPolicy.Budget(share: 0, reserve: 1)
        let cache = try LarderCache(configuration)
        let isBroken = Atomic<Bool>(true)
        func read(_ key: Int) async -> String? {
            let resource = Resource<String>("word", ["key": "\(key)"]) { _ in
                guard !isBroken.load(ordering: .relaxed) else { throw Self.busy }
                return .value("a")
            }
            return try? await cache.value(resource)
        }
        for _ in 0..<3 {
            for key in 0..<10 { _ = await read(key) }
            scene.clock.advance(by: .seconds(60))
        }
        isBroken.store(false, ordering: .relaxed)
        for key in 0..<10 { #expect(await read(key) == "a") }
    }

    @Test func `events do not make an observed value that fails be requested in a loop`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<String>()
        source.prepare(.value("a"))
        let seen = SequenceRecorder(cache.snapshots(word(source)))
        await seen.wait { $0.last?.value == "a" }
        source.prepare(failure: Self.busy)
        try await cache.invalidate(word(source))
        await seen.wait { $0.last?.refreshError != nil && $0.last?.isFetching == false }
        for _ in 0..<20 { try await cache.invalidate(word(source)) }
        #expect(source.requests.count == 2)
        source.prepare(.value("b"))
        try await scene.clock.waitForSleepers()
        scene.clock.advance(by: .milliseconds(500))
        await seen.wait { $0.last?.value == "b" }
        #expect(source.requests.count == 3)
    }

    @Test(arguments: [false, true])
    func `a read with nothing to show and a gate ask again after a short Retry-After`(isGate: Bool) async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<String>()
        var word = word(source)
        // No other sleeper than the repetition.
        word.timeout = nil
        let resource = word
        source.prepare(failure: Self.busy(.seconds(1)))
        source.prepare(.value("a"))
        let reading = Task {
            isGate ? try await cache.requireValidated(resource, within: .zero).value : try await cache.value(resource)
        }
        try await scene.clock.waitForSleepers()
        #expect(source.requests.count == 1)
        // The half of a second is jitter.
        scene.clock.advance(by: .milliseconds(1_500))
        #expect(try await reading.value == "a" && source.requests.count == 2)
    }

    @Test(arguments: [false, true])
    func `the time limit of a read covers its attempts and the waits between them`(isGate: Bool) async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<String>()
        var word = word(source)
        word.timeout = .seconds(4)
        let resource = word
        source.prepare(failure: Self.busy(.seconds(1)))
        let start = scene.clock.uptime
        let reading = Task {
            isGate ? try await cache.requireValidated(resource, within: .zero).value : try await cache.value(resource)
        }
        try await wait { $0.nextWakeUp.map { $0 - start <= .milliseconds(1_500) } ?? false }
        scene.clock.advance(by: .milliseconds(1_500))
        // This request is not answered.
        await source.waitForRequests(2)
        // The limit of the request and that of the reader, who has less time left.
        try await wait { $0.sleeperCount == 2 }
        #expect(scene.clock.nextWakeUp == start + .seconds(4))
        scene.clock.advance(by: .milliseconds(2_500))
        let error = await #expect(throws: LarderError.self) { try await reading.value }
        #expect((error?.cause as? LarderError ?? error)?.code == .timedOut && source.requests.count == 2)
        #expect(scene.clock.uptime - start == .seconds(4))
    }

    /// At rest, the clock is in a state.
    private func wait(_ isReached: (ManualClock) -> Bool) async throws {
        await rest()
        try #require(isReached(scene.clock))
    }

    @Test func `a read is not repeated beyond its time limit, after a long Retry-After, or instead of a stored value`()
        async throws
    {
        let cache = try scene.cache()
        let source = ScriptedSource<String>()
        var word = word(source)
        word.timeout = .seconds(1)
        source.prepare(failure: Self.busy(.seconds(1)))
        let late = await #expect(throws: LarderError.self) { try await cache.value(word) }
        #expect(late?.retryAfter == .seconds(1))
        word.timeout = nil
        scene.clock.advance(by: .seconds(60))
        source.prepare(failure: Self.busy(.seconds(6)))
        let long = await #expect(throws: LarderError.self) { try await cache.value(word) }
        #expect(long?.retryAfter == .seconds(6) && source.requests.count == 2)
        scene.clock.advance(by: .seconds(60))
        source.prepare(.value("a"))
        _ = try await cache.value(word)
        scene.clock.advance(by: .seconds(60))
        source.prepare(failure: Self.busy(.seconds(1)))
        let stored = try await cache.snapshot(word)
        #expect(stored.value == "a" && stored.refreshError?.status == 503 && source.requests.count == 4)
    }

    /// Waits until the clock has a sleeper that wakes after a time.
    private func waitForSleeper(in wait: Duration) async throws {
        let due = scene.clock.uptime + wait
        try await self.wait { $0.nextWakeUp == due }
    }

    @Test func `a failed first load of an observed value is repeated with growing delays until it succeeds`()
        async throws
    {
        let cache = try scene.cache()
        let source = ScriptedSource<String>()
        source.prepare(failure: Self.busy)
        let seen = SequenceRecorder(cache.snapshots(word(source)))
        for count in 1...8 {
            await source.waitForRequests(count)
            await seen.wait { $0.last?.refreshError?.status == 503 && $0.last?.isFetching == false }
            let wait: Duration = .milliseconds(min(60_000, 1_000 << (count - 1)) / 2)
            try await waitForSleeper(in: wait)
            if count < 8 { source.prepare(failure: Self.busy) } else { source.prepare(.value("a")) }
            scene.clock.advance(by: wait)
        }
        let last = await seen.wait { $0.last?.value == "a" }.last
        #expect(last?.refreshError == nil && source.requests.count == 9)
    }

    @Test func `a failed first load of an observed value respects Retry-After and the return of the network`()
        async throws
    {
        let cache = try scene.cache()
        let source = ScriptedSource<String>()
        source.prepare(failure: Self.busy(.seconds(30)))
        let seen = SequenceRecorder(cache.snapshots(word(source)))
        await seen.wait { $0.last?.refreshError?.status == 503 && $0.last?.isFetching == false }
        try await waitForSleeper(in: .milliseconds(30_500))
        cache.networkReturned()
        #expect(source.requests.count == 1)
        source.prepare(failure: LarderError(.timedOut, "slow"))
        scene.clock.advance(by: .milliseconds(30_500))
        await seen.wait { $0.last?.refreshError?.code == .timedOut && $0.last?.isFetching == false }
        source.prepare(.value("a"))
        cache.networkReturned()
        await seen.wait { $0.last?.value == "a" }
        #expect(source.requests.count == 3)
    }

    @Test func `a failed first load is not repeated once nobody observes it`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<String>()
        source.prepare(failure: Self.busy)
        let seen = SequenceRecorder(cache.snapshots(word(source)))
        await seen.wait { $0.last?.refreshError != nil && $0.last?.isFetching == false }
        try await waitForSleeper(in: .milliseconds(500))
        seen.cancel()
        try await wait { $0.sleeperCount == 0 }
        scene.clock.advance(by: .seconds(120))
        #expect(source.requests.count == 1)
    }

    @Test(arguments: [400, 403, 404])
    func `a first load that the server has rejected is not repeated`(_ status: Int) async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<String>()
        source.prepare(failure: LarderError(.rejected, "no", status: status))
        let seen = SequenceRecorder(cache.snapshots(word(source)))
        await seen.wait { $0.last?.refreshError != nil && $0.last?.isFetching == false }
        scene.clock.advance(by: .seconds(120))
        _ = await #expect(throws: LarderError.self) { try await cache.value(word(source), .cacheOnly) }
        #expect(scene.clock.sleeperCount == 0 && source.requests.count == 1)
    }
}
