import Foundation
import LarderStorage
import LarderTesting
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import LarderResources

/// Two caches on one directory, each with an open file of its own, stand for two processes: the lock works between open files, and
/// nothing of a cache is shared in memory.
@Suite("Outbox: shared by processes", .oneMinute)
struct OutboxSharingTests {
    let scene = CacheScene()
    let server = LikeServer(posts: 60)

    private func mine(_ cache: LarderCache, _ id: String) async throws -> Bool {
        try await cache.value(server.post(resource: id), .cacheOnly).isMine
    }

    private func slow(_ gate: ScriptedSource<Int>) -> WriteBehind<Tap, Liked> {
        var operation = server.operation
        let server = server
        operation.send = { attempts in
            _ = try await gate.fetch(FetchContext())
            return try server.send(attempts)
        }
        return operation
    }

    @Test func `one process sends and the other waits: no operation is doubled or lost`() async throws {
        let one = try scene.cache()
        let two = try scene.cache()
        _ = try await one.value(server.list(["1", "2"]))
        let gate = ScriptedSource<Int>()
        let slow = slow(gate)
        two.outbox.register(server.operation)
        try one.enqueue(Tap(post: "1", isLike: true), slow)
        one.outbox.resume()
        await gate.waitForRequests(1)
        let file = scene.outboxPath + "/store.sending"
        let mode = try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? NSNumber
        #expect(mode?.intValue == 0o600)
        two.outbox.resume()
        try two.enqueue(Tap(post: "2", isLike: true), server.operation)
        #expect(try await mine(two, "2"))
        let left = try await two.outbox.drain(within: .zero)
        #expect(left.contains { $0.entry.id == two.outbox.entries.last?.id })
        #expect(server.requests.isEmpty)
        gate.prepare(.value(0))
        gate.answer(0, .value(0))
        let statuses = SequenceRecorder(one.outbox.statuses)
        await statuses.wait { [server] in $0.last?.inFlight == 0 && server.post("1").isMine }
        one.close()
        two.networkReturned()
        try await two.outbox.drained()
        #expect(server.state.withLock { $0.effects } == 2)
        #expect(server.requests.flatMap { $0 }.sorted() == ["1+", "2+"])
        #expect(try scene.cache().outbox.entries.isEmpty)
        // The operation of the other process is shown in every snapshot.
        for post in ["1", "2"] { #expect(try await mine(two, post)) }
    }

    /// A cache whose outbox runs while another process has the lock.
    private func contended() throws -> (ManualProcessLock, LarderCache) {
        let lock = ManualProcessLock()
        var configuration = scene.configuration()
        configuration.outboxLock = lock.handle()
        let cache = try LarderCache(configuration)
        lock.seize()
        cache.outbox.resume()
        return (lock, cache)
    }

    @Test
    func `while another process holds the lock operations are kept, and the lock is requested with growing delays`()
        async throws
    {
        let (lock, cache) = try contended()
        try cache.enqueue(Tap(post: "1", isLike: true), server.operation)
        // By the scene's random number 75 ms, doubled each time.
        for (count, wait) in [(1, 75), (2, 150), (3, 300)] {
            await lock.waitForRejections(count)
            try await scene.clock.waitForSleepers()
            let left = try await cache.outbox.drain(within: .zero)
            #expect(left.map(\.reason) == [.elsewhere])
            scene.clock.advance(by: .milliseconds(wait - 1))
            #expect(lock.rejections == count)
            scene.clock.advance(by: .milliseconds(1))
        }
        await lock.waitForRejections(4)
        try await scene.clock.waitForSleepers()
        #expect(server.requests.isEmpty && cache.outbox.status.pending == 1)
        lock.release()
        scene.clock.advance(by: .milliseconds(600))
        try await cache.outbox.drained()
        #expect(server.requests == [["1+"]])
        // The lock is held exactly while an operation is in flight.
        await lock.waitUntilFree()
    }

    @Test func `a tap is never coalesced with an operation that another process is sending`() async throws {
        let one = try scene.cache()
        _ = try await one.value(server.list(["1"]))
        let gate = ScriptedSource<Int>()
        let slow = slow(gate)
        let two = try scene.cache()
        one.outbox.register(slow)
        two.outbox.register(server.operation)
        try two.enqueue(Tap(post: "1", isLike: true), server.operation)
        // The first process reads and sends the operation of the second.
        one.outbox.resume()
        await gate.waitForRequests(1)
        // For the second process the operation still waits: cancelling it now would lose one of the two.
        try two.enqueue(Tap(post: "1", isLike: false), server.operation)
        #expect(try await !mine(two, "1"))
        gate.prepare(.value(0))
        gate.answer(0, .value(0))
        let statuses = SequenceRecorder(one.outbox.statuses)
        await statuses.wait { [server] in $0.last?.inFlight == 0 && server.post("1").isMine }
        one.close()
        two.outbox.resume()
        try await two.outbox.drained()
        #expect(server.requests == [["1+"], ["1-"]] && !server.post("1").isMine)
        #expect(try await !mine(two, "1"))
    }

    @Test func `a tap is not coalesced with an operation before one of another process`() async throws {
        let one = try scene.cache()
        let two = try scene.cache()
        for cache in [one, two] { cache.outbox.register(server.operation) }
        try one.enqueue(Tap(post: "1", isLike: true), server.operation)
        try two.enqueue(Tap(post: "1", isLike: false), server.operation)
        // The same tap as the oldest one, and the newest of the three.
        try one.enqueue(Tap(post: "1", isLike: true), server.operation)
        one.outbox.resume()
        try await one.outbox.drained()
        #expect(server.post("1").isMine)
    }

    private struct Edit: Codable, Sendable, Equatable {
        var id: String
        var text: String
    }

    /// A waiting operation whose ID the server has not assigned yet, and which another process changes or takes back.
    @Test(arguments: ["second", ""])
    func `an operation that another process has changed keeps the change when it gets its server ID`(_ text: String)
        async throws
    {
        let one = try scene.cache()
        let gate = ScriptedSource<Int>()
        let sent = Mutex<[Edit]>([])
        var operation = WriteBehind<Edit, String>("edit", scope: { _ in "page" }) { _, _ in
        } send: { attempts in
            _ = try await gate.fetch(FetchContext())
            sent.withLock { $0 += attempts.map(\.input) }
            return attempts.map { _ in .accepted("server-1") }
        }
        operation.coalescingKey = { $0.id }
        operation.coalesce = { $1.text.isEmpty ? .removeBoth : .replace($1) }
        operation.serverIDs = { edit, id in [edit.id: id] }
        operation.replacingIDs = { Edit(id: $1[$0.id] ?? $0.id, text: $0.text) }
        try one.enqueue(Edit(id: "local-1", text: "create"), operation)
        one.outbox.resume()
        await gate.waitForRequests(1)
        try one.enqueue(Edit(id: "local-1", text: "first"), operation)
        let two = try scene.cache()
        two.outbox.register(operation)
        try two.enqueue(Edit(id: "local-1", text: text), operation)
        gate.prepare(.value(0))
        gate.answer(0, .value(0))
        try await one.outbox.drained()
        let creation = Edit(id: "local-1", text: "create")
        #expect(sent.withLock { $0 } == [creation] + (text.isEmpty ? [] : [Edit(id: "server-1", text: text)]))
    }

    @Test func `the operation in flight of a dead process is sent by the other under the same key`() async throws {
        let dead = try scene.cache()
        var configuration = scene.configuration()
        configuration.random = { 0 }
        let heir = try LarderCache(configuration)
        let keys = Mutex<[String]>([])
        let gate = ScriptedSource<Int>()
        var operation = server.operation
        let server = server
        operation.send = { attempts in
            keys.withLock { $0 += attempts.map(\.idempotencyKey) }
            _ = try await gate.fetch(FetchContext())
            return try server.send(attempts)
        }
        let slow = operation
        try dead.enqueue(Tap(post: "1", isLike: true), slow)
        dead.outbox.resume()
        await gate.waitForRequests(1)
        dead.close()
        heir.outbox.register(slow)
        gate.prepare(.value(0))
        heir.outbox.resume()
        let statuses = SequenceRecorder(heir.outbox.statuses)
        await statuses.wait { $0.last?.isDrained ?? false && server.post("1").isMine }
        #expect(keys.withLock { $0.count == 2 && Set($0).count == 1 })
    }

    @Test(arguments: [true, false])
    func `a decision of one process about a rejected operation reaches the other`(_ isDropped: Bool) async throws {
        var operation = server.operation
        operation.send = { $0.map { _ in .rejected(LarderError(.rejected, "No.", status: 422)) } }
        let one = try scene.cache()
        try one.enqueue(Tap(post: "1", isLike: true), operation)
        one.outbox.resume()
        let statuses = SequenceRecorder(one.outbox.statuses)
        await statuses.wait { _ in !one.outbox.rejected.isEmpty }
        let two = try scene.cache()
        two.outbox.register(operation)
        let id = try #require(two.outbox.rejected.first?.id)
        one.outbox.pause()
        if isDropped { try one.outbox.drop(id) } else { try one.outbox.retry(id) }
        #expect(throws: LarderError.self) {
            if isDropped { try two.outbox.drop(id) } else { try two.outbox.retry(id) }
        }
        #expect(two.outbox.rejected.isEmpty && two.outbox.entries.isEmpty == isDropped)
    }

    private struct Change: Codable, Sendable, Equatable {
        var base: Note
        var text: String
    }

    private final class Meanwhile: Sendable {
        let act = Mutex<(@Sendable () -> Void)?>(nil)
    }

    /// What happens once while an edit is being decided on.
    private let meanwhile = Meanwhile()
    private let base = Note(id: "1", text: "base", revision: 1)
    private let theirs = Note(id: "1", text: "theirs", revision: 2)

    /// Edits of a note that the server has changed meanwhile.
    private var rejectedEdit: WriteBehind<Change, Bool> {
        let theirs = theirs
        var operation = WriteBehind<Change, Bool>("change", scope: { $0.base.id }) { edit, changes in
            changes.modify(Note.self, edit.base.id) { $0.text = edit.text }
        } send: { attempts in
            attempts.map { _ in .rejected(.conflict(theirs, validator: nil, "Somebody has changed the note.")) }
        }
        operation.conflicts = Outbox.ConflictRule(base: { $0.base }) { [meanwhile] _, wanted, theirs, _ in
            meanwhile.act.withLock { $0.take() }?()
            return wanted.text == theirs.text ? nil : Change(base: theirs, text: wanted.text)
        }
        return operation
    }

    private func send(_ cache: LarderCache, attempt: Int) async {
        cache.outbox.resume()
        await reached { cache.outbox.rejected.first?.attempts == attempt }
        cache.outbox.pause()
    }

    /// Two processes that know an edit, which the server has rejected.
    private func rejected(_ text: String) async throws -> (LarderCache, LarderCache, OperationID) {
        let (one, two) = (try scene.cache(), try scene.cache())
        for cache in [one, two] { cache.outbox.register(rejectedEdit) }
        try await one.update { [base] in $0.put(base) }
        #expect(try await two.value(Resource<Note>.entity("1") { _ in .gone }, .cacheOnly) == base)
        let id = try #require(try one.enqueue(Change(base: base, text: text), rejectedEdit))
        await send(one, attempt: 1)
        _ = try await two.outbox.drain(within: .zero)
        #expect(two.outbox.rejected.map(\.id) == [id])
        return (one, two, id)
    }

    @Test func `what is kept of a rejected edit is what another process has made of it`() async throws {
        let (one, two, id) = try await rejected("first")
        try one.outbox.edit(id, to: Change(base: base, text: "second"), rejectedEdit)
        await send(one, attempt: 2)
        try two.outbox.keepMine(id)
        #expect(try two.outbox.entries.map { try $0.input(as: Change.self) } == [Change(base: theirs, text: "second")])
    }

    @Test func `an edit that the server has is not removed when another process has changed and sent it again`()
        async throws
    {
        let (one, two, id) = try await rejected("theirs")
        // The second process knows the server's value.
        scene.clock.advance(by: .seconds(1))
        #expect(try await two.value(Resource<Note>.entity("1") { _ in .gone }, .cacheOnly) == theirs)
        let second = Change(base: base, text: "second")
        try one.outbox.edit(id, to: second, rejectedEdit)
        let error = #expect(throws: LarderError.self) { try two.outbox.merge(id) }
        #expect(error?.code == .invalidArgument)
        #expect(try scene.cache().outbox.entries.map { try $0.input(as: Change.self) } == [second])
    }

    @Test(arguments: ["second", "theirs"])
    func `a decision about an edit that another process decides on meanwhile changes nothing`(_ text: String)
        async throws
    {
        let (one, two, id) = try await rejected(text)
        let (third, operation) = (Change(base: base, text: "third"), rejectedEdit)
        meanwhile.act.withLock {
            $0 = { do { try one.outbox.edit(id, to: third, operation) } catch { Issue.record(error) } }
        }
        let error = #expect(throws: LarderError.self) { try two.outbox.keepMine(id) }
        #expect(error?.code == .invalidArgument)
        #expect(try scene.cache().outbox.entries.map { try $0.input(as: Change.self) } == [third])
    }

    @Test func `a conflict has the server's value that another process has stored`() async throws {
        let (_, two, id) = try await rejected("first")
        #expect(try two.outbox.conflict(id, of: Note.self)?.theirs == theirs)
        let error = #expect(throws: LarderError.self) { try two.outbox.merge(id) }
        #expect(error?.code == .conflict)
    }

    @Test func `the limit of operations counts those of other processes`() throws {
        var configuration = scene.configuration()
        configuration.outboxOperationsMaximum = 1
        let (one, two) = (try LarderCache(configuration), try LarderCache(configuration))
        try one.enqueue(Tap(post: "1", isLike: true), server.operation)
        let error = #expect(throws: LarderError.self) {
            try two.enqueue(Tap(post: "2", isLike: true), server.operation)
        }
        #expect(error?.code == .outboxFull)
    }

    @Test func `an awaited operation is sent by the process of its caller`() async throws {
        let lock = ManualProcessLock()
        func open() throws -> LarderCache {
            var configuration = scene.configuration()
            configuration.outboxLock = lock.handle()
            return try LarderCache(configuration)
        }
        let one = try open()
        let two = try open()
        let senders = Mutex<[String]>([])
        func pay(_ name: String) -> WriteThrough<Tap, Int> {
            WriteThrough<Tap, Int>("pay", scope: { $0.post }) { _ in
                senders.withLock { $0.append(name) }
                return .accepted(1)
            }
        }
        one.outbox.register(pay("one"))
        let gate = ScriptedSource<Int>()
        try one.enqueue(Tap(post: "9", isLike: true), slow(gate))
        one.outbox.resume()
        await gate.waitForRequests(1)
        // Not before: it would take the lock for a moment, and the first process would wait for it by a clock that does not move.
        two.outbox.resume()
        let statuses = SequenceRecorder(two.outbox.statuses)
        let receipt = Task { try await two.commit(Tap(post: "1", isLike: true), pay("two")) }
        await statuses.wait { _ in two.outbox.entries.contains { $0.operation == "pay" } }
        // The first process holds the lock, reads all rows, and does not send this one.
        gate.prepare(.value(0))
        try one.enqueue(Tap(post: "8", isLike: true), server.operation)
        gate.answer(0, .value(0))
        let others = SequenceRecorder(one.outbox.statuses)
        await others.wait { [server] in
            $0.last?.inFlight == 0 && server.post("8").isMine && server.post("9").isMine
        }
        #expect(one.outbox.entries.map(\.operation) == ["pay"])
        // The first process may check once more; then the second waits for the lock by a clock that does not move.
        while senders.withLock({ $0.isEmpty }), !Task.isCancelled {
            await lock.waitUntilFree()
            two.networkReturned()
            await rest()
        }
        #expect(try await receipt.value == 1)
        #expect(senders.withLock { $0 } == ["two"])
    }

    @Test func `while one process uploads a file, another one sends, except behind the upload`() async throws {
        let one = try scene.cache()
        let two = try scene.cache()
        let gate = ScriptedSource<Int>()
        var upload = WriteBehind<Tap, Int>("upload", scope: { $0.post }) { _, _ in
        } send: { attempts in
            _ = try await gate.fetch(FetchContext())
            return attempts.map { _ in .accepted(1) }
        }
        upload.isLong = true
        for cache in [one, two] {
            cache.outbox.register(upload)
            cache.outbox.register(server.operation)
        }
        try one.enqueue(Tap(post: "1", isLike: true), upload)
        one.outbox.resume()
        await gate.waitForRequests(1)
        for post in ["1", "2"] { try two.enqueue(Tap(post: post, isLike: true), server.operation) }
        two.outbox.resume()
        let pay = WriteThrough<Tap, Int>("pay", scope: { $0.post }) { _ in .accepted(3) }
        let isPaid = Mutex(false)
        let paying = Task {
            defer { isPaid.withLock { $0 = true } }
            return try await two.commit(Tap(post: "3", isLike: true), pay)
        }
        await reached {
            // The first process may have had the lock for a moment: then this one tries again later.
            let retry = two.outbox.turn(of: .awaited).retryAt
            if let retry { scene.clock.advance(by: max(.zero, retry - scene.clock.uptime)) }
            return isPaid.withLock { $0 } && server.post("2").isMine
        }
        #expect(try await paying.value == 3)
        #expect(server.requests == [["2+"]] && gate.requests.count == 1)
        two.close()
        gate.prepare(.value(0))
        gate.answer(0, .value(0))
        one.networkReturned()
        try await one.outbox.drained()
        #expect(server.requests == [["2+"], ["1+"]])
    }

    @Test func `an awaited operation is left to the process of its caller by one that starts later`() async throws {
        let lock = ManualProcessLock()
        let senders = Mutex<[String]>([])
        func open(_ name: String) throws -> LarderCache {
            var configuration = scene.configuration()
            configuration.outboxLock = lock.handle()
            let cache = try LarderCache(configuration)
            cache.outbox.register(pay(name))
            cache.outbox.resume()
            return cache
        }
        func pay(_ name: String) -> WriteThrough<Tap, Int> {
            WriteThrough<Tap, Int>("pay", scope: { $0.post }) { _ in
                senders.withLock { $0.append(name) }
                return .accepted(1)
            }
        }
        let one = try open("one")
        lock.seize()
        let paying = pay("one")
        let receipt = Task { try await one.commit(Tap(post: "1", isLike: true), paying) }
        await reached { one.outbox.entries.count == 1 && lock.rejections > 0 }
        let two = try open("two")
        lock.release()
        two.networkReturned()
        // Not woken by it.
        try two.enqueue(Tap(post: "2", isLike: true), server.operation)
        await reached { server.post("2").isMine }
        await reached {
            one.networkReturned()
            await rest()
            return senders.withLock { !$0.isEmpty }
        }
        #expect(try await receipt.value == 1)
        #expect(senders.withLock { $0 } == ["one"])
    }

    @Test func `an awaited write ends unsent when another process keeps the lock for longer than its timeout`()
        async throws
    {
        let (lock, cache) = try contended()
        let pay = WriteThrough<Tap, Int>("pay", scope: { $0.post }) { _ in .accepted(1) }
        let receipt = Task { try await cache.commit(Tap(post: "1", isLike: true), pay) }
        await lock.waitForRejections(1)
        try await scene.clock.waitForSleepers()
        scene.clock.advance(by: pay.timeout + .seconds(1))
        let error = await #expect(throws: LarderError.self) { try await receipt.value }
        #expect(error?.code == .offline && cache.outbox.entries.isEmpty)
    }

    @Test func `a process that has nothing to send does not ask for the lock of another one`() async throws {
        let (lock, cache) = try contended()
        let id = try #require(try cache.enqueue(Tap(post: "1", isLike: true), server.operation))
        await lock.waitForRejections(1)
        try await scene.clock.waitForSleepers()
        try cache.outbox.drop(id)
        await reached { scene.clock.sleeperCount == 0 }
    }

    @Test func `an operation of another process that a call has read is sent, also if the call fails`() async throws {
        let one = try scene.cache()
        var configuration = scene.configuration()
        configuration.outboxOperationsMaximum = 1
        let two = try LarderCache(configuration)
        let pay = WriteThrough<Tap, Int>("pay", scope: { $0.post }) { _ in .accepted(1) }
        two.outbox.register(pay)
        two.outbox.register(server.operation)
        two.outbox.resume()
        // Until then it looks for operations of other processes by itself.
        try two.enqueue(Tap(post: "2", isLike: true), server.operation)
        try await two.outbox.drained()
        try one.enqueue(Tap(post: "1", isLike: true), server.operation)
        one.close()
        let error = await #expect(throws: LarderError.self) {
            try await two.commit(Tap(post: "3", isLike: true), pay)
        }
        #expect(error?.code == .outboxFull)
        try await two.outbox.drained()
        #expect(server.requests == [["2+"], ["1+"]])
    }

    @Test func `rows that arrive while others are read are found by a check during it`() async throws {
        let one = try scene.cache()
        let two = try scene.cache()
        let plain = server.operation
        var watching = plain
        let isFirst = Mutex(true)
        watching.changes = { tap, changes in
            plain.changes(tap, &changes)
            guard
                isFirst.withLock({ isFirst in
                    defer { isFirst = false }
                    return isFirst
                })
            else { return }
            // The rows were read, and this one is not among them.
            do { try two.enqueue(Tap(post: "2", isLike: true), plain) } catch { Issue.record(error) }
            one.networkReturned()
        }
        one.outbox.register(watching)
        try two.enqueue(Tap(post: "1", isLike: true), plain)
        one.outbox.resume()
        let statuses = SequenceRecorder(one.outbox.statuses)
        await statuses.wait { [server] in
            $0.last?.inFlight == 0 && server.post("1").isMine && server.post("2").isMine
        }
        #expect(server.requests.flatMap { $0 }.sorted() == ["1+", "2+"])
    }

    @Test func `an operation behind a rejected one that another process has dropped is sent`() async throws {
        let one = try scene.cache()
        let two = try scene.cache()
        var operation = server.operation
        operation.coalescingKey = { _ in nil }
        operation.rejectionBlocksScope = true
        operation.batchMaximum = 1
        server.behave { _ in .rejects(["1"]) }
        for isLike in [true, false] { try one.enqueue(Tap(post: "1", isLike: isLike), operation) }
        one.outbox.resume()
        let statuses = SequenceRecorder(one.outbox.statuses)
        await statuses.wait { $0.last.map { $0.blockedScopes == 1 && $0.pending == 1 && $0.inFlight == 0 } ?? false }
        one.outbox.pause()
        server.behave { _ in .answers }
        two.outbox.register(operation)
        two.outbox.resume()
        try await two.outbox.drain(within: .zero)
        let id = try #require(two.outbox.rejected.first?.id)
        try one.outbox.drop(id)
        #expect(throws: LarderError.self) { try two.outbox.retry(id) }
        let others = SequenceRecorder(two.outbox.statuses)
        await others.wait { $0.last?.isDrained ?? false }
        #expect(server.requests == [["1+"], ["1-"]])
    }

    @Test func `who waits for an empty outbox waits for operations that another process has stored, too`() async throws
    {
        let one = try scene.cache()
        let two = try scene.cache()
        one.outbox.register(server.operation)
        one.outbox.resume()
        for post in ["1", "2"] {
            try two.enqueue(Tap(post: post, isLike: true), server.operation)
            if post == "1" { try await one.outbox.drained() } else { try await one.outbox.drain(within: .seconds(1)) }
            #expect(server.post(post).isMine)
        }
    }

    @Test(arguments: seeds(3))
    func `random taps in two processes with crashes end with the last taps, each with one effect`(_ seed: UInt64)
        async throws
    {
        var generator = SeededGenerator(seed: seed)
        let server = LikeServer(posts: 12)
        server.behave { number in
            var generator = SeededGenerator(seed: seed &* 1_000 &+ UInt64(number))
            switch generator.uniform(in: 0..<5) {
            case 0: return .losesReply
            case 1: return .isUnreachable
            case 2: return .isBusy(.zero)
            default: return .answers
            }
        }
        let lock = ManualProcessLock()
        func open() throws -> LarderCache {
            var configuration = scene.configuration()
            configuration.outboxLock = lock.handle()
            configuration.random = { 0 }
            let cache = try LarderCache(configuration)
            cache.outbox.register(server.operation)
            cache.outbox.resume()
            return cache
        }
        var caches = [try open(), try open()]
        var hearts: [String: Bool] = [:]
        _ = try await caches[0].value(server.list((0..<12).map { "\($0)" }))
        for tap in 0..<200 {
            let post = "\(generator.uniform(in: 0..<12))"
            let isLike = !(hearts[post] ?? false)
            let index = Int(generator.uniform(in: 0..<2))
            try caches[index].enqueue(Tap(post: post, isLike: isLike), server.operation)
            hearts[post] = isLike
            if tap % 60 == 59 { caches[index] = try open() }
            if tap % 7 == 0 { scene.clock.advance(by: .milliseconds(50)) }
        }
        // The remaining process finishes the operations of both.
        caches[0].close()
        caches[1].networkReturned()
        try await caches[1].outbox.drained()
        for (post, isMine) in hearts {
            #expect(server.post(post).isMine == isMine, "seed \(seed), post \(post)")
            #expect(server.post(post).likes == (isMine ? 11 : 10), "seed \(seed), post \(post)")
        }
        #expect(try scene.cache().outbox.entries.isEmpty, "seed \(seed)")
    }

    @Test func `a file lock is exclusive until it is released or its process dies or the file is replaced`() throws {
        let path = scene.path
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        let (one, two) = (FileProcessLock(path: path + "/lock"), FileProcessLock(path: path + "/lock"))
        #expect(try one.take() && one.take() && !two.take())
        // A copy of the descriptor, as a child process inherits it.
        let twin = try DescriptorTwin(of: path + "/lock")
        one.release()
        #expect(try two.take() && !one.take())
        withExtendedLifetime(twin) {}
        try FileManager.default.removeItem(atPath: path + "/lock")
        // The locked file was unlinked: it excludes no process, and the next one creates a new file.
        #expect(try one.take())
        two.release()
        #expect(try !two.take())
        #expect(throws: DiskError.self) { try FileProcessLock(path: path + "/none/lock").take() }
    }
}
