import FileFaults
import LarderSQLite
import LarderStorage
import LarderTesting
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import LarderEvents
@testable import LarderResources
@testable import LarderStorage

/// The order in which tasks have passed a gate.
private final class Passed: Sendable {
    let numbers = Mutex<[Int]>([])
}

@Suite("Change sync: faults", .oneMinute)
struct ChangeSyncTests {
    private let scene = CacheScene()

    @Test func `an unreadable token does not restart the feed, which would skip changes`()
        async throws
    {
        let faults = FaultPlan()
        var configuration = scene.configuration()
        configuration.editStore { $0.faults = faults }
        let cache = try LarderCache(configuration)
        let begun = Mutex(0)
        let read = Mutex<[String]>([])
        let sync = ChangeSync(
            ChangeFeed(
                "test",
                read: { token throws(LarderError) in
                    read.withLock { $0.append(token) }
                    return ChangeFeed.Batch([], nextToken: token, hasMore: false)
                },
                present: { () throws(LarderError) in
                    ChangeFeed.Batch(nextToken: "\(begun.withLock { $0 += 1; return $0 })")
                },
                invalidateAll: { _ in }
            ),
            into: cache
        )
        try await sync.catchUp()
        faults.arm(.fail(.inputOutput), atStep: 1)
        let error = await #expect(throws: LarderError.self) { try await sync.catchUp() }
        #expect(error?.code == .storage)
        #expect(sync.status.failure != nil && !sync.status.isCaughtUp)
        try await sync.catchUp()
        #expect(begun.withLock { $0 } == 1 && read.withLock { $0 } == ["1", "1"] && sync.token == "1")
    }

    @Test func `a value that the store cannot take does not stop a feed`() async throws {
        var configuration = scene.configuration()
        configuration.editStore { $0.bytesMaximum = 64 << 10 }
        let cache = try LarderCache(configuration)
        let large = String(repeating: "x", count: 1 << 20)
        let sync = ChangeSync(
            ChangeFeed(
                "test",
                read: { token throws(LarderError) in
                    guard token == "1" else { return ChangeFeed.Batch([], nextToken: token, hasMore: false) }
                    let changes = [Note(1, large), Note(2, "small")].map { note in
                        ChangeFeed.Change(note.entityKey) { $0.put(note) }
                    }
                    return ChangeFeed.Batch(changes, nextToken: "2", hasMore: false)
                },
                present: { () throws(LarderError) in ChangeFeed.Batch(nextToken: "1") },
                invalidateAll: { _ in }
            ),
            into: cache
        )
        try await sync.catchUp()
        try await sync.catchUp()
        #expect(sync.token == "2" && sync.status.failure == nil)
        let small = Resource<Note>.entity("2") { _ in .value(Note(2, "asked for")) }
        #expect(try await cache.value(small, .cacheOnly).text == "small")
    }

    @Test func `the first page of a feed is its content, and is stored with its token`() async throws {
        let cache = try scene.cache()
        let ids = (1...300).map { "\($0)" }
        let read = Mutex<[String]>([])
        let feed = ChangeFeed(
            "test",
            read: { token throws(LarderError) in
                read.withLock { $0.append(token) }
                return ChangeFeed.Batch(nextToken: token)
            },
            present: { () throws(LarderError) in
                let changes = ids.map { id in
                    ChangeFeed.Change(EntityKey(type: Note.entityType, id: id)) { $0.put(Note(id: id, text: "first")) }
                }
                return ChangeFeed.Batch(changes, nextToken: "1")
            },
            invalidateAll: { _ in }
        )
        let sync = ChangeSync(feed, into: cache)
        #expect(try await sync.catchUp() == 300)
        #expect(sync.token == "1" && read.withLock { $0.isEmpty } && sync.status.isCaughtUp)
        for id in ["1", "300"] {
            let note = Resource<Note>.entity(id) { _ in .gone }
            #expect(try await cache.value(note, .cacheOnly).text == "first")
        }
    }

    @Test func `a long poll asks from page to page, and ends a request that is not answered in time`() async throws {
        let cache = try scene.cache()
        let asked = Mutex<[String?]>([])
        let held = Pending<ChangeFeed.Batch?>()
        let channel = LiveSync.longPoll(since: "1", in: cache, timeout: .seconds(40)) { since throws(LarderError) in
            let number = asked.withLock { asked in
                asked.append(since)
                return asked.count
            }
            #expect(RequestReason.current?.isLongPoll == true)
            guard number < 3 else {
                guard let late = await held.value(ifCancelled: nil) else { throw LarderError(CancellationError()) }
                return late
            }
            let change = ChangeFeed.Change(EntityKey(type: Note.entityType, id: "1")) { _ in }
            return ChangeFeed.Batch([change], nextToken: "\(number + 1)")
        }
        for token in ["1", "2"] {
            guard case .page(let batch, let since)? = try await channel.receive() else {
                Issue.record("no page")
                return
            }
            #expect(since == token && batch.nextToken == "\(Int(token).map { $0 + 1 } ?? 0)")
        }
        async let late = #expect(throws: LarderError.self) { _ = try await channel.receive() }
        try await scene.clock.waitForSleepers(1)
        scene.clock.advance(by: .seconds(40))
        #expect(await late?.code == .timedOut)
        #expect(asked.withLock { $0 } == ["1", "2", "3"])
        #expect(RequestReason.current == nil)
    }

    @Test func `a request that fails after the network has returned is repeated once`() async throws {
        let cache = try scene.cache()
        let gate = TransportGate()
        let asked = Mutex(0)
        let feed = ChangeFeed(
            "test",
            read: { token throws(LarderError) in ChangeFeed.Batch([], nextToken: token, hasMore: false) },
            present: { () throws(LarderError) in
                let number = asked.withLock { asked in
                    asked += 1
                    return asked
                }
                if number == 1 { do { try await gate.pass() } catch { throw LarderError(error) } }
                throw LarderError(.timedOut, "The connection was dead.")
            },
            invalidateAll: { _ in }
        )
        let sync = ChangeSync(feed, into: cache)
        async let first = #expect(throws: LarderError.self) { try await sync.catchUp() }
        await gate.waitForHeld()
        cache.networkReturned()
        gate.open()
        _ = await first
        await reached { asked.withLock { $0 } == 2 }
        await rest()
        #expect(asked.withLock { $0 } == 2)
    }

    /// The server may compute the token after it has answered an earlier request, and after changes in between, which the feed then
    /// never has.
    @Test func `a value that was requested before the first token arrived is not covered by the feed`() async throws {
        let cache = try scene.cache()
        let tokens = ScriptedSource<String>()
        let feed = ChangeFeed(
            "test",
            read: { token throws(LarderError) in ChangeFeed.Batch([], nextToken: token, hasMore: false) },
            present: { () throws(LarderError) in
                do {
                    return ChangeFeed.Batch(nextToken: try await tokens.fetch(FetchContext()).value ?? "")
                } catch { throw LarderError(error) }
            },
            invalidateAll: { _ in }
        )
        let sync = ChangeSync(feed, into: cache)
        func note(_ id: String) -> Resource<Note> {
            .entity(id, freshness: .rule(Freshness.Rule(.feed("test", within: .seconds(120))))) { _ in
                .value(Note(id: id, text: "1", revision: 1))
            }
        }
        let running = Task { try await sync.catchUp() }
        await tokens.waitForRequests(1)
        scene.clock.advance(by: .seconds(1))
        _ = try await cache.value(note("early"))
        scene.clock.advance(by: .seconds(1))
        tokens.answer(0, .value("1"))
        _ = try await running.value
        _ = try await cache.value(note("late"))
        #expect(cache.stored(note("early"))?.freshness == .stale(.feedBehind))
        #expect(cache.stored(note("late"))?.freshness == .fresh)
    }

    @Test func `a page of a feed that was asked for before the clock was set back has its age by the new clock`()
        async throws
    {
        var configuration = scene.configuration()
        configuration.stamps = StampSource(bootID: "one") { [clock = scene.clock] in clock.uptime.nanoseconds / 1_000 }
        let cache = try LarderCache(configuration)
        let gate = TransportGate()
        let change = ChangeFeed.Change(Note.key("1")) { $0.put(Note(id: "1", text: "a")) }
        let feed = ChangeFeed(
            "test",
            read: { _ throws(LarderError) in
                do { try await gate.pass() } catch { throw LarderError(error) }
                return ChangeFeed.Batch([change], nextToken: "2")
            },
            present: { () throws(LarderError) in ChangeFeed.Batch(nextToken: "1") },
            invalidateAll: { _ in }
        )
        try await cache.update { $0.setToken("1", for: "test") }
        let sync = ChangeSync(feed, into: cache)
        let reading = Task { try await sync.catchUp() }
        await gate.waitForHeld()
        scene.clock.advance(by: .seconds(10))
        scene.clock.set(wall: scene.clock.now - .seconds(600))
        _ = cache.core.now()
        gate.open()
        _ = try await reading.value
        let note = Resource<Note>.entity("1", freshness: .timeToLive(.seconds(60))) { _ in throw Broken() }
        let shown = try #require(cache.stored(note))
        #expect(shown.freshness == .fresh)
        let age = try #require(shown.times?.age(at: cache.core.now()))
        #expect(age > .seconds(9) && age < .seconds(11))
    }

    @Test(arguments: [false, true])
    func `a page does not replace or remove a value without a version that came after its request`(_ isRemoval: Bool)
        async throws
    {
        let cache = try scene.cache()
        let gate = TransportGate()
        let change = ChangeFeed.Change(Note.key("1")) { update in
            if isRemoval { update.remove(Note.self, "1") } else { update.put(Note(id: "1", text: "a")) }
        }
        let feed = ChangeFeed(
            "test",
            read: { _ throws(LarderError) in
                do { try await gate.pass() } catch { throw LarderError(error) }
                return ChangeFeed.Batch([change], nextToken: "2")
            },
            present: { () throws(LarderError) in ChangeFeed.Batch(nextToken: "1") },
            invalidateAll: { _ in }
        )
        try await cache.update { $0.setToken("1", for: "test") }
        let sync = ChangeSync(feed, into: cache)
        let reading = Task { try await sync.catchUp() }
        await gate.waitForHeld()
        try await cache.update { $0.put(Note(id: "1", text: "b")) }
        gate.open()
        _ = try await reading.value
        let shown = try #require(cache.stored(Resource<Note>.entity("1") { _ in throw Broken() }))
        #expect(shown.value?.text == "b" && shown.freshness == .stale(.invalidated) && sync.token == "2")
    }

    @Test func `a page has its last change of each entity, and its age and that of the feed count from its request`()
        async throws
    {
        let cache = try scene.cache()
        let gate = TransportGate(isOpen: true)
        // More than one commit stores.
        let changes = (0..<60).map { number in
            ChangeFeed.Change(Note.key("1")) { $0.put(Note(id: "1", text: "\(number)")) }
        }
        let feed = ChangeFeed(
            "test",
            read: { token throws(LarderError) in
                do { try await gate.pass() } catch { throw LarderError(error) }
                return ChangeFeed.Batch(changes, nextToken: token + "+")
            },
            present: { () throws(LarderError) in ChangeFeed.Batch(nextToken: "1") },
            invalidateAll: { _ in }
        )
        let sync = ChangeSync(feed, into: cache)
        try await sync.catchUp()
        let note = Resource<Note>.entity("1", freshness: .rule(Freshness.Rule(.feed("test", within: .seconds(10))))) {
            _ in throw Broken()
        }
        #expect(cache.stored(note)?.value?.text == "59" && cache.stored(note)?.freshness == .fresh)
        gate.close()
        scene.clock.advance(by: .seconds(60))
        let asked = scene.clock.now
        let reading = Task { try await sync.catchUp() }
        await gate.waitForHeld()
        scene.clock.advance(by: .seconds(20))
        gate.open()
        _ = try await reading.value
        let shown = try #require(cache.stored(note))
        #expect(shown.value?.text == "59" && shown.times?.validatedAt == asked)
        #expect(shown.freshness == .stale(.feedBehind) && sync.status.isCaughtUp)
    }

    @Test func `a token lost with a damaged store is not restored from memory, and everything is stale`()
        async throws
    {
        let cache = try scene.cache()
        let begun = Mutex(0)
        let read = Mutex<[String]>([])
        let sync = ChangeSync(
            ChangeFeed(
                "test",
                read: { token throws(LarderError) in
                    read.withLock { $0.append(token) }
                    return ChangeFeed.Batch([], nextToken: token, hasMore: false)
                },
                present: { () throws(LarderError) in
                    ChangeFeed.Batch(nextToken: "\(begun.withLock { $0 += 1; return $0 })")
                },
                invalidateAll: { _ in }
            ),
            into: cache
        )
        try await sync.catchUp()
        cache.disk?.suspend()
        try FileDamage.garbage.apply(to: scene.path)
        try await sync.catchUp()
        try await sync.catchUp()
        #expect(sync.status.resyncs == 1 && sync.token == "2")
        #expect(read.withLock { $0 } == ["1", "2"])
    }

    @Test
    func `a channel that the server ends at once is retried after a back-off, and later with another kind`()
        async throws
    {
        let opened = Mutex<[LiveSync.Kind]>([])
        final class Greeting: LiveSync.Channel {
            let hasGreeted = Mutex(false)
            func receive() async throws(LarderError) -> LiveSync.Message? {
                hasGreeted.withLock { hasGreeted in
                    defer { hasGreeted = true }
                    return hasGreeted ? nil : .hello(token: "1")
                }
            }
        }
        let cache = try scene.cache()
        let feed = ChangeFeed.quiet()
        let source = LiveSync.Source([.webSocket, .eventStream]) { kind, _ throws(LarderError) in
            opened.withLock { $0.append(kind) }
            return Greeting()
        }
        let sync = ChangeSync(feed, into: cache)
        let live = LiveSync(sync, source, in: cache)
        let states = SequenceRecorder(live.states)
        let running = Task { await live.run() }
        for failures in 1...3 {
            await states.wait { $0.last == .waiting(failures: failures) }
            #expect(opened.withLock { $0.count } == failures)
            #expect(!sync.status.isCaughtUp)
            try await scene.clock.waitForSleepers()
            if failures < 3 { scene.clock.advance(by: .seconds(9)) }
        }
        #expect(opened.withLock { $0 } == [.webSocket, .webSocket, .eventStream])
        running.cancel()
        await running.value
    }

    @Test func `a greeting with the stored token says that there are no more changes`() async throws {
        let reads = Mutex(0)
        let feed = ChangeFeed.quiet { _ in reads.withLock { $0 += 1 } }
        let before = try scene.cache()
        try await ChangeSync(feed, into: before).catchUp()
        before.close()
        let cache = try scene.cache()
        let sync = ChangeSync(feed, into: cache)
        let live = LiveSync(sync, LiveSync.Source([.webSocket]) { _, _ in KeptChannel(token: "1") }, in: cache)
        let statuses = SequenceRecorder(sync.statuses)
        let running = Task { await live.run() }
        await statuses.wait { $0.last?.isCaughtUp == true }
        #expect(cache.followedSince != nil && reads.withLock { $0 } == 1)
        running.cancel()
        await running.value
    }

    @Test func `a channel rejected because its token is gone is opened with the token of a resync`() async throws {
        let cache = try scene.cache()
        try await cache.update { $0.setToken("old", for: "test") }
        let feed = ChangeFeed(
            "test",
            read: { token throws(LarderError) in
                if token == "old" { throw .tokenGone("The history is gone.") }
                return ChangeFeed.Batch([], nextToken: token, hasMore: false)
            },
            present: { () throws(LarderError) in ChangeFeed.Batch(nextToken: "new") },
            invalidateAll: { _ in }
        )
        let opened = Mutex<[String?]>([])
        let source = LiveSync.Source([.webSocket]) { _, since throws(LarderError) in
            opened.withLock { $0.append(since) }
            if since == "old" { throw .tokenGone("The history is gone.") }
            return KeptChannel(token: "new")
        }
        let sync = ChangeSync(feed, into: cache)
        let live = LiveSync(sync, source, in: cache)
        let states = SequenceRecorder(live.states)
        let running = Task { await live.run() }
        // No clock moves: there is no back-off first.
        await states.wait { $0.last == .live(.webSocket) }
        #expect(opened.withLock { $0 } == ["old", "new"] && sync.status.resyncs == 1)
        running.cancel()
        await running.value
    }

    @Test func `a channel that cannot be opened is reported with its error`() async throws {
        let failures = Mutex<[ErrorCode<LarderError>]>([])
        var configuration = scene.configuration()
        configuration.onEvent = { event in
            guard case .failed("larder.live", let error) = event else { return }
            failures.withLock { $0.append(error.code) }
        }
        let cache = try LarderCache(configuration)
        let feed = ChangeFeed.quiet()
        let source = LiveSync.Source([.webSocket]) { _, _ throws(LarderError) in
            throw LarderError(.rejected, "The server has no live channel.", status: 403)
        }
        let live = LiveSync(ChangeSync(feed, into: cache), source, in: cache)
        let states = SequenceRecorder(live.states)
        let running = Task { await live.run() }
        await states.wait { $0.last == .waiting(failures: 1) }
        #expect(failures.withLock { $0 } == [.rejected])
        running.cancel()
        await running.value
        #expect(failures.withLock { $0 } == [.rejected], "A cancelled channel is no failure.")
    }

    @Test func `a live sync without channel kinds returns at once`() async throws {
        let cache = try scene.cache()
        let feed = ChangeFeed.quiet()
        let source = LiveSync.Source([]) { _, _ throws(LarderError) in throw LarderError(.invalidArgument, "not opened")
        }
        let live = LiveSync(ChangeSync(feed, into: cache), source, in: cache)
        await live.run()
        #expect(live.state == .idle)
    }

    @Test func `a page of a live channel is applied if it continues the stored token, and otherwise the feed is read`()
        async throws
    {
        let cache = try scene.cache()
        let reads = Mutex<[String]>([])
        @Sendable func note(_ id: String, _ revision: Int64) -> ChangeFeed.Change {
            ChangeFeed.Change(Note.key(id)) { $0.put(Note(id: id, text: "\(revision)", revision: revision)) }
        }
        let feed = ChangeFeed(
            "test",
            read: { token throws(LarderError) in
                reads.withLock { $0.append(token) }
                return ChangeFeed.Batch([note("1", 9)], nextToken: "9", hasMore: false)
            },
            present: { () throws(LarderError) in ChangeFeed.Batch(nextToken: "1") },
            invalidateAll: { _ in }
        )
        let sync = ChangeSync(feed, into: cache)
        func text() async throws -> String? {
            let resource = Resource<Note>.entity("1") { _ in throw Broken() }
            return try? await cache.value(resource, .cacheOnly).text
        }
        try await sync.catchUp()
        #expect(sync.token == "9")
        reads.withLock { $0 = [] }
        try await sync.receive(ChangeFeed.Batch([note("1", 10)], nextToken: "10", hasMore: false), since: "9")
        #expect(sync.token == "10" && reads.withLock { $0.isEmpty } && sync.status.isCaughtUp)
        #expect(try await text() == "10")
        // The page was applied already.
        try await sync.receive(ChangeFeed.Batch([note("1", 10)], nextToken: "10", hasMore: false), since: "9")
        #expect(reads.withLock { $0.isEmpty })
        // The page does not continue the stored token.
        try await sync.receive(ChangeFeed.Batch([note("1", 12)], nextToken: "12", hasMore: false), since: "11")
        #expect(reads.withLock { $0 } == ["10"] && sync.token == "9")
        // The page is not the last one.
        reads.withLock { $0 = [] }
        try await sync.receive(ChangeFeed.Batch([], nextToken: "13", hasMore: true), since: "9")
        #expect(reads.withLock { $0 } == ["13"])
    }

    @Test func `a change of a live channel is applied if it follows the stored token, and otherwise the feed is read`()
        async throws
    {
        let cache = try scene.cache()
        let reads = Mutex<[String]>([])
        let feed = ChangeFeed(
            "test",
            read: { token throws(LarderError) in
                reads.withLock { $0.append(token) }
                return ChangeFeed.Batch([], nextToken: token == "2" ? "5" : token, hasMore: false)
            },
            present: { () throws(LarderError) in ChangeFeed.Batch(nextToken: "1") },
            invalidateAll: { _ in }
        )
        let sync = ChangeSync(feed, into: cache)
        func receive(_ revision: Int64, _ token: String, after previous: String) async throws {
            let change = ChangeFeed.Change(Note.key("1")) {
                $0.put(Note(id: "1", text: "\(revision)", revision: revision))
            }
            try await sync.receive(ChangeFeed.Batch([change], nextToken: token), since: previous)
        }
        try await sync.catchUp()
        reads.withLock { $0 = [] }
        try await receive(2, "2", after: "1")
        #expect(sync.token == "2" && reads.withLock { $0.isEmpty })
        #expect(cache.stored(Resource<Note>.entity("1") { _ in throw Broken() })?.value?.text == "2")
        // A frame was lost in between.
        try await receive(4, "4", after: "3")
        #expect(reads.withLock { $0.first } == "2" && sync.token == "5")
    }

    @Test func `a token unknown to the live channel is replaced before the next channel is opened`()
        async throws
    {
        final class Ending: LiveSync.Channel {
            let since: String?
            let end = ScriptedSource<Int>()

            init(_ since: String?) { self.since = since }

            func receive() async throws(LarderError) -> LiveSync.Message? {
                if since == "1" { throw .tokenGone("It is forgotten.") }
                do { _ = try await end.fetch(FetchContext()) } catch { throw LarderError(error) }
                return nil
            }
        }
        let cache = try scene.cache()
        let opened = Mutex<[String?]>([])
        let presents = Mutex(0)
        let feed = ChangeFeed(
            "test",
            read: { token throws(LarderError) in
                if token == "1", presents.withLock({ $0 }) > 0, opened.withLock({ !$0.isEmpty }) {
                    throw .tokenGone("It is forgotten.")
                }
                return ChangeFeed.Batch([], nextToken: token, hasMore: false)
            },
            present: { () throws(LarderError) in
                presents.withLock { count in
                    count += 1
                    return ChangeFeed.Batch(nextToken: "\(count)")
                }
            },
            invalidateAll: { _ in }
        )
        let source = LiveSync.Source([.longPoll]) { _, since throws(LarderError) in
            opened.withLock { $0.append(since) }
            return Ending(since)
        }
        let sync = ChangeSync(feed, into: cache)
        let live = LiveSync(sync, source, in: cache)
        let states = SequenceRecorder(live.states)
        let running = Task { await live.run() }
        await states.wait { $0.last == .waiting(failures: 1) }
        #expect(sync.status.resyncs == 1 && sync.token == "2")
        try await scene.clock.waitForSleepers()
        scene.clock.advance(by: .seconds(1))
        await states.wait { $0.filter { $0 == .connecting(.longPoll) }.count == 2 }
        running.cancel()
        await running.value
        #expect(opened.withLock { $0 } == ["1", "2"])
    }

    @Test func `a serial gate admits one task at a time and releases cancelled tasks at once`() async throws {
        let gate = SerialGate()
        let first = ScriptedSource<Int>()
        let passed = Passed()
        let holding = Task {
            try await gate.run { () async throws(LarderError) in
                do { _ = try await first.fetch(FetchContext()) } catch { throw LarderError(error) }
            }
        }
        await first.waitForRequests(1)
        let waiting = (0..<10).map { number in
            Task {
                try await gate.run { () async throws(LarderError) in passed.numbers.withLock { $0.append(number) } }
            }
        }
        for task in waiting[..<5] { task.cancel() }
        // Cancelled tasks end at once, although the gate is taken.
        for task in waiting[..<5] {
            let error = await #expect(throws: LarderError.self) { try await task.value }
            #expect(error?.code == .cancelled)
        }
        first.answer(0, .value(1))
        try await holding.value
        for task in waiting[5...] { try await task.value }
        #expect(Set(passed.numbers.withLock { $0 }) == [5, 6, 7, 8, 9])
        try await gate.run { () async throws(LarderError) in passed.numbers.withLock { $0.append(10) } }
        #expect(passed.numbers.withLock { $0.last } == 10)
    }
}

/// Sends a greeting and stays open.
private final class KeptChannel: LiveSync.Channel {
    private let greeting: Mutex<LiveSync.Message?>
    private let end = Mailbox<Void>()

    init(token: String) { greeting = Mutex(.hello(token: token)) }

    func receive() async throws(LarderError) -> LiveSync.Message? {
        if let greeting = greeting.withLock({ $0.take() }) { return greeting }
        _ = await end.next()
        return nil
    }
}
