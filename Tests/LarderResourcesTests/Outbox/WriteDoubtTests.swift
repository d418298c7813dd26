import LarderResources
import LarderStorage
import LarderTesting
import LarderTime
import LarderTransport
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

/// What a caller is told about an awaited write of which an attempt may have been carried out.
@Suite("Outbox: writes in doubt", .oneMinute)
struct WriteDoubtTests {
    /// The outcome of one attempt.
    enum Reply: CaseIterable, Sendable {
        case success, rejection, unsent, interrupted, busy, limited, unauthorized, unencodable

        /// Whether it says that the server has not carried out the attempt, because it never left.
        var isUnsent: Bool { self == .unsent || self == .unauthorized }

        func outcome() throws -> Outbox.Outcome<Int> {
            switch self {
            case .success: return .accepted(1)
            case .rejection: return .rejected(LarderError(.rejected, "Insufficient funds.", status: 422))
            case .unsent: throw TransportError(.unreachable, "no route")
            case .interrupted: throw TransportError(.interrupted, "the reply was lost")
            case .busy: throw LarderError(.rejected, "busy", status: 503, retryAfter: .seconds(1))
            case .limited: throw LarderError(.rejected, "too many", status: 429, retryAfter: .seconds(1))
            case .unauthorized: throw LarderError(.unauthorized, "The session has ended.")
            case .unencodable: throw LarderError(.invalidArgument, "The request cannot be encoded.")
            }
        }
    }

    /// A clock that jumps to the end of each sleep of less than a day, so that no retry has to be waited for.
    final class JumpingClock: MonotonicClock {
        private let time = Mutex(MonotonicTime(nanoseconds: 0))
        private let parked = ManualClock()

        var uptime: MonotonicTime { time.withLock { $0 } }

        func sleep(until end: MonotonicTime) async throws(CancellationError) {
            guard !Task.isCancelled else { throw CancellationError() }
            guard end - uptime < .seconds(86_400) else { return try await parked.sleep(until: end) }
            time.withLock { $0 = max($0, end) }
        }
    }

    let scene = CacheScene()

    /// All sequences of up to four attempts. One ends with the attempt that ends the operation.
    private static func sequences() -> [[Reply]] {
        var open: [[Reply]] = [[]]
        var all: [[Reply]] = []
        for _ in 0..<4 {
            var next: [[Reply]] = []
            for prefix in open {
                for reply in Reply.allCases {
                    let sequence = prefix + [reply]
                    let isUnsent = sequence.allSatisfy(\.isUnsent)
                    let isDecided =
                        reply == .success || reply == .rejection || isUnsent || sequence == [.unencodable]
                    if isDecided { all.append(sequence) } else { next.append(sequence) }
                }
            }
            open = next
        }
        return all + open
    }

    @Test func `after any sequence of outcomes, a write is told as not sent only if no attempt may have arrived`()
        async throws
    {
        for sequence in Self.sequences() {
            var configuration = scene.configuration(inMemory: true)
            configuration.monotonicClock = JumpingClock()
            let cache = try LarderCache(configuration)
            let keys = Mutex<[String]>([])
            var operation = WriteThrough<Int, Int>("pay", scope: { _ in "account" }) { attempt in
                let number = keys.withLock { keys in
                    keys.append(attempt.idempotencyKey)
                    return keys.count
                }
                // After the sequence everything is accepted.
                return try number <= sequence.count ? sequence[number - 1].outcome() : .accepted(1)
            }
            operation.timeout = .seconds(2 * 86_400)
            cache.outbox.resume()
            var error: LarderError?
            do { _ = try await cache.commit(5, operation) } catch let failure { error = failure }
            let told = Array(sequence.prefix(keys.withLock { $0.count }))
            if error.map({ [ErrorCode<LarderError>.offline, .unauthorized].contains($0.code) }) ?? false {
                #expect(told.allSatisfy(\.isUnsent) && cache.outbox.entries.isEmpty, "\(sequence)")
            }
            try await cache.outbox.drained()
            let sent = keys.withLock { $0 }
            // Nothing is given up before the server has decided, and each attempt has the key of the first.
            #expect(Set(sent).count == 1, "\(sequence)")
            let isDecided = sequence.contains(.success) || sequence.contains(.rejection)
            let isUnsent = sequence.first.map { $0.isUnsent || $0 == .unencodable } ?? false
            #expect(sent.count == sequence.count + (isDecided || isUnsent ? 0 : 1), "\(sequence)")
            if sequence.last == .success, sequence.count == 1 { #expect(error == nil) }
            if let error, error.code == .inDoubt { #expect(error.operation != nil, "\(sequence)") }
            cache.close()
        }
    }

    /// Without versions, and with a version that is newer.
    @Test(arguments: [nil, 3] as [Int64?])
    func `the reply to a write is not fresh if another one was asked for after the write was sent`(_ revision: Int64?)
        async throws
    {
        let cache = try scene.cache(inMemory: true)
        let source = ScriptedSource<Note>()
        let note = Resource<Note>.entity("1") { try await source.fetch($0) }
        let reply = TransportGate()
        var edit = WriteBehind<String, String>("edit", scope: { _ in "note" }, changes: { _, _ in }) { attempts in
            try await reply.pass()
            return attempts.map { .accepted($0.input) }
        }
        edit.acknowledge = { _, text, update in update.put(Note(id: "1", text: text, revision: revision)) }
        cache.outbox.register(edit)
        cache.outbox.resume()
        try cache.enqueue("mine", edit)
        await reply.waitForHeld()
        source.prepare(.value(Note(id: "1", text: "theirs", revision: revision.map { $0 - 1 })))
        _ = try await cache.refresh(note)
        reply.open()
        try await cache.outbox.drained()
        let snapshot = try await cache.snapshot(note, .cacheOnly)
        #expect(snapshot.value?.text == "mine")
        #expect(snapshot.freshness == (revision == nil ? .stale(.invalidated) : .fresh))
    }

    /// Whether the reply is slow, or lost and asked for again.
    @Test(arguments: [false, true])
    func `the reply to a write is not fresh if it changes what another reply has brought meanwhile`(isLost: Bool)
        async throws
    {
        let cache = try scene.cache(inMemory: true)
        let source = ScriptedSource<Note>()
        let list = ScriptedSource<EntityList<Note>>()
        let note = Resource<Note>.entity("1") { try await source.fetch($0) }
        let notes = Resource<EntityList<Note>>.list("notes") { try await list.fetch($0) }
        source.prepare(.value(Note(id: "1", text: "old")))
        list.prepare(.value(EntityList([Note(id: "2", text: "a")])))
        _ = try await cache.value(note)
        _ = try await cache.value(notes)
        let reply = TransportGate()
        let loses = Mutex(isLost)
        var edit = WriteBehind<String, String>("edit", scope: { _ in "note" }, changes: { _, _ in }) { attempts in
            try await reply.pass()
            if loses.withLock({ $0 }) {
                loses.withLock { $0 = false }
                throw TransportError(.interrupted, "the reply was lost")
            }
            return attempts.map { .accepted($0.input) }
        }
        edit.acknowledge = { _, text, update in
            update.modify(Note.self, "1") { $0.text = text }
            update.edit(QueryKey("notes")) { if !$0.contains(Note.key("1")) { $0.append(Note.key("1")) } }
        }
        cache.outbox.register(edit)
        cache.outbox.resume()
        try cache.enqueue("mine", edit)
        await reply.waitForHeld()
        source.prepare(.value(Note(id: "1", text: "theirs")))
        list.prepare(.value(EntityList([Note(id: "2", text: "a")])))
        _ = try await cache.refresh(note)
        _ = try await cache.refresh(notes)
        reply.open()
        await reached {
            cache.networkReturned()
            return cache.outbox.entries.isEmpty
        }
        #expect(try await cache.snapshot(note, .cacheOnly).freshness == .stale(.invalidated))
        #expect(try await cache.snapshot(notes, .cacheOnly).freshness == .stale(.invalidated))
    }

    struct Payment: Codable, Sendable {
        var amount: Int
    }

    struct NewPayment: Codable, Sendable {
        var amount: Int
        var currency: String
    }

    @Test func `a write in doubt that this version cannot decode stays in doubt, and an earlier version resolves it`()
        async throws
    {
        let keys = Mutex<[String]>([])
        func old(_ isLost: Bool) -> WriteThrough<Payment, Int> {
            WriteThrough<Payment, Int>("pay", scope: { _ in "account" }) { attempt in
                keys.withLock { $0.append(attempt.idempotencyKey) }
                if isLost { throw TransportError(.interrupted, "the reply was lost") }
                return .accepted(attempt.input.amount)
            }
        }
        var cache = try scene.cache()
        cache.outbox.resume()
        let doubt = await #expect(throws: LarderError.self) { try await cache.commit(Payment(amount: 5), old(true)) }
        #expect(doubt?.code == .inDoubt)
        cache.close()
        cache = try scene.cache()
        cache.outbox.register(
            WriteThrough<NewPayment, Int>("pay", scope: { _ in "account" }) { .accepted($0.input.amount) }
        )
        let statuses = SequenceRecorder(cache.outbox.statuses)
        cache.outbox.resume()
        let scene = scene
        await statuses.wait { _ in scene.steps("pay").contains { $0 == "rejected" || $0 == "postponed encoding" } }
        #expect(!scene.steps("pay").contains("rejected"))
        #expect(cache.outbox.entries.map(\.state) == [.inDoubt])
        let conflict = await #expect(throws: LarderError.self) {
            try await cache.commit(
                NewPayment(amount: 5, currency: "EUR"),
                WriteThrough<NewPayment, Int>("pay", scope: { _ in "account" }) { .accepted($0.input.amount) }
            )
        }
        #expect(conflict?.code == .conflict)
        cache.close()
        cache = try scene.cache()
        cache.outbox.register(old(false))
        cache.outbox.resume()
        try await cache.outbox.drained()
        #expect(keys.withLock { $0.count == 2 && Set($0).count == 1 })
    }

    // MARK: Retry-After

    private let server = LikeServer(posts: 3)

    private func open(_ wall: (any WallClock)? = nil) throws -> LarderCache {
        var configuration = scene.configuration()
        configuration.random = { 0 }
        if let wall { configuration.wallClock = wall }
        let cache = try LarderCache(configuration)
        cache.outbox.register(server.operation)
        return cache
    }

    /// Leaves an operation whose server has asked to wait for 30 s.
    private func askToWait() async throws {
        server.behave { $0 == 1 ? .isBusy(.seconds(30)) : .answers }
        let cache = try open()
        try cache.enqueue(Tap(post: "1", isLike: true), server.operation)
        let statuses = SequenceRecorder(cache.outbox.statuses)
        cache.outbox.resume()
        await statuses.wait { [server] in $0.last?.inFlight == 0 && server.requests.count == 1 }
        cache.close()
    }

    @Test func `Retry-After applies to the next process too`() async throws {
        try await askToWait()
        scene.clock.advance(by: .seconds(10))
        let cache = try open()
        cache.outbox.resume()
        let early = try await cache.outbox.drain(within: .seconds(19))
        #expect(early.map(\.reason) == [.postponed] && server.requests.count == 1)
        scene.clock.advance(by: .seconds(20))
        try await cache.outbox.drained()
        #expect(server.requests.count == 2)
    }

    @Test(arguments: [-86_400, 86_400])
    func `with a wrong clock, an earlier process's Retry-After delays by no more than the server asked`(_ shift: Int)
        async throws
    {
        try await askToWait()
        let wall = ManualClock(scene.clock.now + .seconds(shift))
        let cache = try open(wall)
        cache.outbox.resume()
        if shift < 0 {
            let early = try await cache.outbox.drain(within: .seconds(29))
            #expect(early.map(\.reason) == [.postponed] && server.requests.count == 1)
            scene.clock.advance(by: .seconds(30))
        }
        try await cache.outbox.drained()
        #expect(server.requests.count == 2)
    }

    @Test func `Retry-After applies to a running process that takes the operation over`() async throws {
        // It knows the operation as one that was never sent.
        let other = try open()
        try other.enqueue(Tap(post: "1", isLike: true), server.operation)
        server.behave { $0 == 1 ? .isBusy(.seconds(30)) : .answers }
        let cache = try open()
        let statuses = SequenceRecorder(cache.outbox.statuses)
        cache.outbox.resume()
        await statuses.wait { [server] in $0.last?.inFlight == 0 && server.requests.count == 1 }
        cache.close()
        other.outbox.resume()
        // Until the next attempt, or the request that comes too early.
        try await scene.clock.waitForSleepers()
        #expect(try await other.outbox.drain(within: .seconds(29)).map(\.reason) == [.postponed])
        #expect(server.requests.count == 1)
        scene.clock.advance(by: .seconds(30))
        try await other.outbox.drained()
        #expect(server.requests.count == 2)
    }

    // MARK: Without an acknowledgement

    @Test func `without acknowledge an accepted change stays visible, and its values are stale`() async throws {
        let cache = try scene.cache()
        let list = server.list(["1", "2"])
        _ = try await cache.value(list)
        var operation = server.operation
        operation.acknowledge = { _, _, _ in }
        let plain = operation.changes
        operation.changes = { tap, changes in
            plain(tap, &changes)
            changes.edit(list.key) { $0.removeAll { $0 == Liked.key("2") } }
        }
        try cache.enqueue(Tap(post: "1", isLike: true), operation)
        cache.outbox.resume()
        try await cache.outbox.drained()
        let post = try await cache.snapshot(server.post(resource: "1"), .cacheOnly)
        #expect(post.value?.isMine == true && post.freshness == .stale(.invalidated) && post.pendingChanges == 0)
        #expect(try await cache.snapshot(list, .cacheOnly).freshness == .stale(.invalidated))
        #expect(try await cache.refresh(list).value?.items.first == server.post("1"))
    }

    /// The reply may be the stored one to the lost attempt: somebody may have created the entity again since.
    @Test(arguments: [false, true])
    func `a removal that is accepted after a lost reply makes the entity stale, and does not remove it`(
        _ isAcknowledged: Bool
    ) async throws {
        var configuration = scene.configuration()
        configuration.random = { 0 }
        let cache = try LarderCache(configuration)
        let list = server.list(["1", "2"])
        _ = try await cache.value(list)
        let again = Liked(id: "1", likes: 0, isMine: false, revision: 7)
        var operation = server.operation
        operation.changes = { tap, changes in changes.remove(Liked.self, tap.post) }
        operation.acknowledge = { tap, _, update in if isAcknowledged { update.remove(Liked.self, tap.post) } }
        operation.send = { [server] attempts in
            if attempts[0].isInDoubt { try await cache.update { $0.put(again) } }
            return try server.send(attempts)
        }
        server.behave { $0 == 1 ? .losesReply : .answers }
        try cache.enqueue(Tap(post: "1", isLike: true), operation)
        cache.outbox.resume()
        try await cache.outbox.drained()
        let post = try await cache.snapshot(server.post(resource: "1"), .cacheOnly)
        #expect(post.value == again && post.freshness == .stale(.invalidated))
        let all = try await cache.snapshot(list, .cacheOnly)
        #expect(all.value?.items.map(\.id) == ["1", "2"] && all.freshness == .stale(.invalidated))
    }

    @Test func `when an operation in doubt is dropped, the value that it may have changed is stale`() async throws {
        let cache = try scene.cache()
        let post = server.post(resource: "1")
        _ = try await cache.value(post)
        server.behave { _ in .losesReply }
        let id = try #require(try cache.enqueue(Tap(post: "1", isLike: true), server.operation))
        cache.outbox.resume()
        await reached { cache.outbox.entries.first?.state == .inDoubt }
        cache.outbox.pause()
        try cache.outbox.drop(id)
        let stored = try #require(cache.stored(post))
        #expect(stored.value?.isMine == false && stored.freshness == .stale(.invalidated))
        #expect(cache.outbox.entries.isEmpty)
    }

    // MARK: Start and pause

    @Test func `an awaited write on an outbox that was never resumed ends, and nothing is stored`() async throws {
        let cache = try scene.cache()
        let operation = WriteThrough<Payment, Int>("pay", scope: { _ in "account" }) { .accepted($0.input.amount) }
        let error = await #expect(throws: LarderError.self) { try await cache.commit(Payment(amount: 5), operation) }
        #expect(error?.code == .paused && cache.outbox.entries.isEmpty)
    }
}

extension CacheScene {
    /// What has become of the operations of a name.
    fileprivate func steps(_ name: String) -> [String] {
        events.withLock { events in
            events.compactMap { event in
                switch event {
                case .accepted(name, _): "accepted"
                case .rejected(name, _, _): "rejected"
                case .postponed(name, _, let error, _): "postponed \(error.code.rawValue)"
                default: nil
                }
            }
        }
    }
}
