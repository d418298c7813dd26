import LarderStorage
import LarderTesting
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import LarderResources

@Suite("Live sync: politeness", .oneMinute)
struct LiveSyncTests {
    private let scene = CacheScene()

    @Test func `a channel that is rejected with Retry-After is not opened before, also if the network returns`()
        async throws
    {
        let cache = try scene.cache()
        let clock = scene.clock
        let opened = Mutex<[MonotonicTime]>([])
        let feed = ChangeFeed.quiet()
        let source = LiveSync.Source([.webSocket]) { _, _ throws(LarderError) in
            opened.withLock { $0.append(clock.uptime) }
            throw LarderError(.offline, "The server is busy.", status: 503, retryAfter: .seconds(60))
        }
        let live = LiveSync(ChangeSync(feed, into: cache), source, in: cache)
        let states = SequenceRecorder(live.states)
        let running = Task { await live.run() }
        await states.wait { $0.last == .waiting(failures: 1) }
        try await clock.waitForSleepers()
        cache.networkReturned()
        clock.advance(by: .seconds(59))
        try await clock.waitForSleepers()
        clock.advance(by: .seconds(2))
        await states.wait { $0.count { $0 == .connecting(.webSocket) } >= 2 }
        try await clock.waitForSleepers()
        let times = opened.withLock { $0 }
        #expect(times.count == 2 && times.last.map { $0 - times[0] >= .seconds(60) } == true, "\(times)")
        running.cancel()
        await running.value
    }

    @Test func `a server cannot stop a live channel for longer than an hour`() async throws {
        let cache = try scene.cache()
        let clock = scene.clock
        let source = LiveSync.Source([.eventStream]) { _, _ throws(LarderError) in
            throw LarderError(.offline, "The stream has ended.", retryAfter: .seconds(1 << 30))
        }
        let live = LiveSync(source, in: cache) { _ in }
        let states = SequenceRecorder(live.states)
        let running = Task { await live.run() }
        await states.wait { $0.last == .waiting(failures: 1) }
        try await clock.waitForSleepers()
        clock.advance(by: .seconds(3_600))
        try await clock.waitForSleepers()
        clock.advance(by: .seconds(60))
        await states.wait { $0.count { $0 == .connecting(.eventStream) } >= 2 }
        running.cancel()
        await running.value
    }

    private struct EndedChannel: LiveSync.Channel {
        func receive() async throws(LarderError) -> LiveSync.Message? { nil }
    }

    /// A live sync whose channels open after `gate`, also when they are cancelled.
    private func live(_ gate: TransportGate) throws -> LiveSync {
        let source = LiveSync.Source([.webSocket]) { _, _ throws(LarderError) in
            let passing = Task { try await gate.pass() }
            do { try await passing.value } catch { throw LarderError(error) }
            return EndedChannel()
        }
        return LiveSync(source, in: try scene.cache()) { _ in }
    }

    @Test func `a start waits for the end of the run that was stopped`() async throws {
        let gate = TransportGate()
        let live = try live(gate)
        live.start()
        await gate.waitForHeld()
        live.stop()
        live.start()
        await rest()
        #expect(gate.heldCount == 1)
        gate.release()
        await gate.waitForHeld()
        #expect(live.state == .connecting(.webSocket))
        live.stop()
        gate.open()
    }

    @Test func `it runs only while it is wanted and allowed`() async throws {
        let gate = TransportGate()
        let live = try live(gate)
        live.setAllowed(false)
        live.start()
        #expect(!live.isRunning)
        live.setAllowed(true)
        #expect(live.isRunning)
        live.setAllowed(false)
        #expect(!live.isRunning)
        live.stop()
        live.setAllowed(true)
        #expect(!live.isRunning)
        live.start()
        #expect(live.isRunning)
        live.stop()
        #expect(!live.isRunning)
        gate.open()
    }

    /// A channel that delivers some messages and then waits for its end.
    private final class ScriptedChannel: LiveSync.Channel {
        let isDrained = Pending<Void>()
        private let messages: Mutex<[LiveSync.Message]>

        init(_ messages: [LiveSync.Message]) { self.messages = Mutex(messages) }

        func receive() async throws(LarderError) -> LiveSync.Message? {
            if let next = messages.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) { return next }
            isDrained.finish(())
            await Pending<Void>().value(ifCancelled: ())
            return nil
        }
    }

    private func failingCache() throws -> (LarderCache, KillableStore) {
        let killable = KillableStore(DiskStore.Configuration(directory: scene.path, clock: scene.clock))
        var configuration = scene.configuration()
        configuration.storage = .store(try killable.store())
        return (try LarderCache(configuration), killable)
    }

    private let note = Resource<Note>.entity("1") { _ in .gone }

    @Test func `a full disk does not end a live channel, and memory gets its events`() async throws {
        let (cache, killable) = try failingCache()
        try await cache.put(Note(1, "old"), for: note)
        killable.fail(.full, untilHealed: true)
        let channel = ScriptedChannel([.update { $0.put(Note(1, "new", revision: 2)) }])
        let opened = Mutex(0)
        let source = LiveSync.Source([.eventStream]) { _, _ throws(LarderError) in
            opened.withLock { $0 += 1 }
            return channel
        }
        let live = LiveSync(source, in: cache) { $0.invalidate(all: Note.self) }
        let running = Task { await live.run() }
        await channel.isDrained.value(ifCancelled: ())
        #expect(cache.stored(note)?.value?.text == "new")
        #expect(live.state == .live(.eventStream) && opened.withLock { $0 } == 1)
        running.cancel()
        await running.value
    }

    @Test func `a full disk keeps the token of a feed, and memory gets its changes`() async throws {
        let (cache, killable) = try failingCache()
        try await cache.put(Note(1, "old"), for: note)
        let hasChanged = Mutex(false)
        let feed = ChangeFeed(
            "test",
            read: { token throws(LarderError) in
                guard token == "1", hasChanged.withLock({ $0 }) else {
                    return ChangeFeed.Batch([], nextToken: token, hasMore: false)
                }
                let change = ChangeFeed.Change(EntityKey(type: "note", id: "1")) { update in
                    update.put(Note(1, "new", revision: 2))
                }
                return ChangeFeed.Batch([change], nextToken: "2", hasMore: false)
            },
            present: { () throws(LarderError) in ChangeFeed.Batch(nextToken: "1") },
            invalidateAll: { _ in }
        )
        let sync = ChangeSync(feed, into: cache)
        try await sync.catchUp()
        hasChanged.withLock { $0 = true }
        killable.fail(.full, untilHealed: true)
        let error = await #expect(throws: LarderError.self) { try await sync.catchUp() }
        #expect(error?.code == .storage)
        #expect(cache.stored(note)?.value?.text == "new")
        #expect(sync.token == "1" && !sync.status.isCaughtUp)
        killable.heal()
        try await sync.catchUp()
        #expect(sync.token == "2" && sync.status.isCaughtUp)
    }

    @Test
    func `a long poll without a token is live after its first reply, and what was read before that is asked for again`()
        async throws
    {
        let cache = try scene.cache()
        let gate = TransportGate()
        let source = LiveSync.Source([.longPoll]) { _, since throws(LarderError) in
            LiveSync.longPoll(since: since, in: cache) { since throws(LarderError) in
                do {
                    try await gate.pass()
                    if since == nil { return ChangeFeed.Batch(nextToken: "1") }
                    try await TransportGate().pass()
                } catch { throw LarderError(error) }
                return ChangeFeed.Batch(nextToken: "1")
            }
        }
        let live = LiveSync(source, in: cache) { $0.invalidate(all: Note.self) }
        let running = Task { await live.run() }
        await gate.waitForHeld()
        #expect(live.state == .connecting(.longPoll))
        // The server may change it before it has said from where on it tells of changes.
        try await cache.put(Note(1, "old"), for: note)
        gate.open()
        await reached { live.state == .live(.longPoll) }
        #expect(cache.stored(note)?.freshness == .stale(.invalidated))
        running.cancel()
        await running.value
    }

    @Test(arguments: [false, true])
    func `a long poll that is answered at once without progress is asked again after growing pauses`(
        _ hasChange: Bool
    ) async throws {
        let change = ChangeFeed.Change(EntityKey(type: Note.entityType, id: "1")) { _ in }
        let cache = try scene.cache()
        let count = Mutex(0)
        let channel = LiveSync.longPoll(since: "1", in: cache) { since throws(LarderError) in
            count.withLock { $0 += 1 }
            return ChangeFeed.Batch(hasChange ? [change] : [], nextToken: since ?? "")
        }
        let receiving = Task { while try await channel.receive() != nil {} }
        for (number, seconds) in [1, 2, 4].enumerated() {
            await reached { count.withLock { $0 } > number }
            await rest()
            #expect(count.withLock { $0 } == number + 1)
            try await scene.clock.waitForSleepers()
            scene.clock.advance(by: .seconds(seconds))
        }
        receiving.cancel()
        _ = await receiving.result
    }

    @Test(arguments: [false, true])
    func `it ends with its cache`(_ isStarted: Bool) async throws {
        let cache = try scene.cache()
        let channel = ScriptedChannel([.update { $0.put(Note(1)) }])
        let opened = Mutex(0)
        let source = LiveSync.Source([.eventStream]) { _, _ throws(LarderError) in
            opened.withLock { $0 += 1 }
            return channel
        }
        let live = LiveSync(source, in: cache) { _ in }
        let states = SequenceRecorder(live.states)
        let running = isStarted ? nil : Task { await live.run() }
        if isStarted { live.start() }
        await channel.isDrained.value(ifCancelled: ())
        cache.close()
        await rest()
        #expect(live.state == .idle)
        cache.networkReturned()
        scene.clock.advance(by: .seconds(120))
        await rest()
        #expect(live.state == .idle && opened.withLock { $0 } == 1)
        live.stop()
        running?.cancel()
        withExtendedLifetime(states) {}
    }

    @Test func `a feed of a closed cache is not read`() async throws {
        let cache = try scene.cache()
        let reads = Mutex(0)
        let feed = ChangeFeed.quiet(
            onRead: { _ in reads.withLock { $0 += 1 } },
            onPresent: { reads.withLock { $0 += 1 } }
        )
        let sync = ChangeSync(feed, into: cache)
        try await sync.catchUp()
        let before = reads.withLock { $0 }
        cache.close()
        let error = await #expect(throws: LarderError.self) { try await sync.catchUp() }
        #expect(error?.code == .closed && reads.withLock { $0 } == before)
    }
}

extension ChangeFeed {
    /// A feed of no changes, whose first token is "1".
    static func quiet(
        onRead: @escaping @Sendable (_ token: String) -> Void = { _ in },
        onPresent: @escaping @Sendable () -> Void = {}
    ) -> ChangeFeed {
        ChangeFeed(
            "test",
            read: { token throws(LarderError) in
                onRead(token)
                return Batch([], nextToken: token, hasMore: false)
            },
            present: { () throws(LarderError) in
                onPresent()
                return Batch(nextToken: "1")
            },
            invalidateAll: { _ in }
        )
    }
}
