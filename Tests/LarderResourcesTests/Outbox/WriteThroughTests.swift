import Foundation
import LarderEvents
import LarderResources
import LarderStorage
import LarderTesting
import LarderTime
import LarderTransport
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@Suite("Outbox: awaited operations", .oneMinute)
struct WriteThroughTests {
    struct Payment: Codable, Sendable {
        var account: String
        var amount: Int
    }

    final class Bank: Sendable {
        struct State {
            var paid: [String: Int] = [:]
            var keys: [String] = []
            var loses = 0
            var rejects = false
            var isReachable = true
        }

        let state = Mutex(State())

        var operation: WriteThrough<Payment, Int> {
            var operation = WriteThrough<Payment, Int>(
                "pay",
                scope: { $0.account },
                send: { [weak self] attempt in
                    guard let self else { throw LarderError(.closed, "The bank has closed.") }
                    let (isLost, total) = try state.withLock { state -> (Bool, Int) in
                        guard state.isReachable else { throw TransportError(.unreachable, "no route") }
                        state.keys.append(attempt.idempotencyKey)
                        if state.rejects { return (false, -1) }
                        state.paid[attempt.idempotencyKey] = attempt.input.amount
                        state.loses -= 1
                        return (state.loses >= 0, state.paid.values.reduce(0, +))
                    }
                    if isLost { throw TransportError(.interrupted, "the reply was lost") }
                    if total < 0 { return .rejected(LarderError(.rejected, "Insufficient funds.", status: 422)) }
                    return .accepted(total)
                }
            )
            operation.acknowledge = { payment, total, update in
                update.put(Note(id: payment.account, text: "\(total)", revision: Int64(total)))
            }
            return operation
        }
    }

    let scene = CacheScene()
    let bank = Bank()
    let note = Resource<Note>.entity("a") { _ in .gone }

    @Test func `an awaited write is synced to the disk before it is sent`() async throws {
        let killable = KillableStore(DiskStore.Configuration(directory: scene.path, clock: scene.clock))
        var configuration = scene.configuration()
        configuration.storage = .store(try killable.store())
        let cache = try LarderCache(configuration)
        cache.outbox.resume()
        let atSend = Mutex<[Int]>([])
        var operation = bank.operation
        let send = operation.send
        operation.send = { attempt in
            atSend.withLock { $0.append(killable.syncCount) }
            return try await send(attempt)
        }
        // The first commit of a store syncs it in any case.
        _ = try await cache.commit(Payment(account: "a", amount: 1), operation)
        let before = killable.syncCount
        _ = try await cache.commit(Payment(account: "a", amount: 1), operation)
        let second = try #require(atSend.withLock { $0 }.last)
        #expect(second > before)
    }

    @Test func `while the outcome of a cancelled write is unknown, another one of its scope is rejected`()
        async throws
    {
        let cache = try scene.cache()
        let gate = ScriptedSource<Int>()
        var slow = bank.operation
        slow.send = { _ in
            _ = try await gate.fetch(FetchContext())
            return .accepted(1)
        }
        cache.outbox.resume()
        let operation = slow
        let first = Task { try await cache.commit(Payment(account: "a", amount: 1), operation) }
        await gate.waitForRequests(1)
        first.cancel()
        let unknown = await #expect(throws: LarderError.self) { try await first.value }
        #expect(unknown?.code == .inDoubt)
        let second = await #expect(throws: LarderError.self) {
            try await cache.commit(Payment(account: "a", amount: 1), operation)
        }
        #expect(second?.code == .conflict && second?.operation == cache.outbox.entries.first?.id)
        gate.prepare(.value(0))
        gate.answer(0, .value(0))
        try await cache.outbox.drained()
        #expect(try await cache.commit(Payment(account: "a", amount: 1), operation) == 1)
    }

    @Test func `a write is carried out when it returns, and the server's answer is stored`() async throws {
        let cache = try scene.cache()
        cache.outbox.resume()
        #expect(try await cache.commit(Payment(account: "a", amount: 5), bank.operation) == 5)
        #expect(try await cache.value(note, .cacheOnly).text == "5")
        #expect(cache.outbox.entries.isEmpty)
    }

    @Test func `a rejection is an error, and the operation is removed`() async throws {
        let cache = try scene.cache()
        cache.outbox.resume()
        bank.state.withLock { $0.rejects = true }
        let error = await #expect(throws: LarderError.self) {
            try await cache.commit(Payment(account: "a", amount: 5), bank.operation)
        }
        #expect(error?.status == 422 && cache.outbox.entries.isEmpty)
    }

    @Test func `an awaited write is sent again under its key after a short Retry-After`() async throws {
        let cache = try scene.cache()
        cache.outbox.resume()
        let keys = Mutex<[String]>([])
        var operation = bank.operation
        let send = operation.send
        operation.send = { attempt in
            let count = keys.withLock { keys in
                keys.append(attempt.idempotencyKey)
                return keys.count
            }
            guard count > 1 else { throw LarderError(.rejected, "busy", status: 503, retryAfter: .seconds(1)) }
            return try await send(attempt)
        }
        let busy = operation
        let paying = Task { try await cache.commit(Payment(account: "a", amount: 5), busy) }
        await reached { cache.outbox.status.inDoubt == 1 }
        try await scene.clock.waitForSleepers()
        scene.clock.advance(by: .milliseconds(1_500))
        #expect(try await paying.value == 5)
        #expect(Set(keys.withLock { $0 }).count == 1 && keys.withLock { $0.count } == 2)
        #expect(cache.outbox.entries.isEmpty)
    }

    @Test(arguments: [false, true])
    func `without a network nothing is sent or kept`(_ isKnown: Bool) async throws {
        let cache = try scene.cache()
        cache.outbox.resume()
        if isKnown { scene.isOnline.withLock { $0 = false } } else { bank.state.withLock { $0.isReachable = false } }
        let error = await #expect(throws: LarderError.self) {
            try await cache.commit(Payment(account: "a", amount: 5), bank.operation)
        }
        #expect(error?.code == .offline && cache.outbox.entries.isEmpty)
    }

    private func payment(_ gate: ScriptedSource<Int>) -> WriteThrough<Payment, Int> {
        WriteThrough<Payment, Int>("pay", scope: { $0.account }) { attempt in
            _ = try await gate.fetch(FetchContext())
            return .accepted(attempt.input.amount)
        }
    }

    private typealias Paying = Task<Int, any Error>

    /// A payment in flight, and another one of its account that waits behind it.
    private func two(_ cache: LarderCache, _ gate: ScriptedSource<Int>) async -> (Paying, Paying) {
        let operation = payment(gate)
        cache.outbox.resume()
        let first = Task { try await cache.commit(Payment(account: "a", amount: 1), operation) }
        await gate.waitForRequests(1)
        let second = Task { try await cache.commit(Payment(account: "a", amount: 2), operation) }
        await reached { cache.outbox.entries.count == 2 }
        return (first, second)
    }

    private func error(of paying: Paying) async -> LarderError? {
        await #expect(throws: LarderError.self) {
            try await withTaskCancellationHandler {
                try await paying.value
            } onCancel: {
                paying.cancel()
            }
        }
    }

    @Test func `the caller of a write that is dropped before it is sent learns it, and the removal is synced`()
        async throws
    {
        let killable = KillableStore(DiskStore.Configuration(directory: scene.path, clock: scene.clock))
        var configuration = scene.configuration()
        configuration.storage = .store(try killable.store())
        let cache = try LarderCache(configuration)
        let gate = ScriptedSource<Int>()
        let (first, second) = await two(cache, gate)
        let syncCount = killable.syncCount
        try cache.outbox.drop(cache.outbox.entries[1].id)
        #expect(killable.syncCount > syncCount)
        #expect(await error(of: second)?.code == .cancelled)
        gate.answer(0, .value(0))
        #expect(try await first.value == 1)
        #expect(gate.requests.count == 1 && cache.outbox.entries.isEmpty)
    }

    @Test func `a write is not kept while the outbox may not send`() async throws {
        var configuration = scene.configuration()
        configuration.networkBehavior = { NetworkBehavior(sendsOutbox: false) }
        let cache = try LarderCache(configuration)
        cache.outbox.resume()
        let operation = bank.operation
        let paying = Task { try await cache.commit(Payment(account: "a", amount: 5), operation) }
        #expect(await error(of: paying)?.code == .offline)
        #expect(cache.outbox.entries.isEmpty)
    }

    @Test func `a write that waits behind one that the network has lost ends, too`() async throws {
        let cache = try scene.cache()
        let gate = ScriptedSource<Int>()
        let (first, second) = await two(cache, gate)
        scene.isOnline.withLock { $0 = false }
        gate.fail(0, TransportError(.unreachable, "no route"))
        #expect(await error(of: first)?.code == .offline)
        #expect(await error(of: second)?.code == .offline)
        #expect(cache.outbox.entries.isEmpty && gate.requests.count == 1)
    }

    @Test func `a write that waits behind another one ends when the outbox is paused`() async throws {
        let cache = try scene.cache()
        let gate = ScriptedSource<Int>()
        let (first, second) = await two(cache, gate)
        cache.outbox.pause()
        #expect(await error(of: second)?.code == .paused)
        gate.answer(0, .value(0))
        #expect(try await first.value == 1)
        #expect(cache.outbox.entries.isEmpty && gate.requests.count == 1)
    }

    @Test func `a write that waits behind one whose reply is lost ends as one that is made afterwards`() async throws {
        let cache = try scene.cache()
        let gate = ScriptedSource<Int>()
        let (first, second) = await two(cache, gate)
        gate.fail(0, TransportError(.interrupted, "the reply was lost"))
        #expect(await error(of: first)?.code == .inDoubt)
        let error = await error(of: second)
        #expect(error?.code == .conflict && error?.operation == cache.outbox.entries.first?.id)
        #expect(cache.outbox.entries.count == 1 && gate.requests.count == 1)
    }

    @Test(arguments: ["rejected", "unregistered", "delayed"])
    func `a write is not kept behind one that waits for a decision, a registration or the server`(_ cause: String)
        async throws
    {
        var noting = WriteBehind<Payment, Int>("note", scope: { $0.account }, changes: { _, _ in }) { attempts in
            attempts.map { _ -> Outbox.Outcome<Int> in
                if cause == "rejected" { return .rejected(LarderError(.rejected, "No.", status: 422)) }
                return .unsent(LarderError(.offline, "The host is held.", retryAfter: .seconds(600)))
            }
        }
        noting.rejectionBlocksScope = cause == "rejected"
        let isUnknown = cause == "unregistered"
        let first = try scene.cache()
        let id = try #require(try first.enqueue(Payment(account: "a", amount: 1), noting))
        if isUnknown {
            first.close()
        } else {
            first.outbox.resume()
            await reached { first.outbox.entries.first?.error != nil }
        }
        let cache = try isUnknown ? scene.cache() : first
        cache.outbox.resume()
        let operation = bank.operation
        let paying = Task { try await cache.commit(Payment(account: "a", amount: 5), operation) }
        let codes: [String: ErrorCode<LarderError>] = [
            "rejected": .conflict, "unregistered": .unregistered, "delayed": .offline,
        ]
        let error = await error(of: paying)
        #expect(error?.code == codes[cause])
        if cause == "rejected" { #expect(error?.operation == id) }
        #expect(cache.outbox.entries.map(\.id) == [id] && bank.state.withLock { $0.keys.isEmpty })
    }

    @Test func `a write with a lost reply is in doubt, also after a restart, and has one effect`()
        async throws
    {
        var cache = try scene.cache()
        cache.outbox.resume()
        bank.state.withLock { $0.loses = 2 }
        let error = await #expect(throws: LarderError.self) {
            try await cache.commit(Payment(account: "a", amount: 5), bank.operation)
        }
        #expect(error?.code == .inDoubt && cache.outbox.entries.map(\.id) == [error?.operation])
        #expect(cache.outbox.status.inDoubt == 1)
        // No other transfer of the account is accepted before the outcome is known.
        let second = await #expect(throws: LarderError.self) {
            try await cache.commit(Payment(account: "a", amount: 7), bank.operation)
        }
        #expect(second?.code == .conflict)
        scene.clock.advance(by: .seconds(60))
        let statuses = SequenceRecorder(cache.outbox.statuses)
        await statuses.wait { [bank] _ in bank.state.withLock { $0.keys.count } >= 2 }
        cache = try scene.cache()
        #expect(cache.outbox.entries.map(\.state) == [.inDoubt])
        cache.outbox.register(bank.operation)
        cache.outbox.resume()
        try await cache.outbox.drained()
        #expect(bank.state.withLock { Set($0.keys).count == 1 && $0.paid.values.reduce(0, +) == 5 })
        #expect(try await cache.value(note, .cacheOnly).text == "5")
        // The server may have stored the reply to an earlier attempt, and the value may have changed since.
        #expect(cache.stored(note)?.freshness == .stale(.invalidated))
        #expect(try await cache.commit(Payment(account: "a", amount: 7), bank.operation) == 12)
        #expect(cache.stored(note)?.freshness == .fresh)
    }

    @Test func `a write that another process has left in doubt is resolved after it has rejected a new one`()
        async throws
    {
        let two = try scene.cache()
        two.outbox.resume()
        // Afterwards it has nothing to do, and looks at no row.
        _ = try await two.commit(Payment(account: "b", amount: 1), bank.operation)
        bank.state.withLock { $0.loses = .max }
        let one = try scene.cache()
        one.outbox.resume()
        await #expect(throws: LarderError.self) {
            try await one.commit(Payment(account: "a", amount: 5), bank.operation)
        }
        one.close()
        bank.state.withLock { $0.loses = 0 }
        let conflict = await #expect(throws: LarderError.self) {
            try await two.commit(Payment(account: "a", amount: 7), bank.operation)
        }
        #expect(conflict?.code == .conflict)
        scene.clock.advance(by: .seconds(60))
        let statuses = SequenceRecorder(two.outbox.statuses)
        await statuses.wait { $0.last?.isDrained == true }
        #expect(bank.state.withLock { $0.paid.values.sorted() } == [1, 5])
    }

    @Test func `key and body are stored before the first byte is sent`() async throws {
        let cache = try scene.cache()
        let path = scene.path
        let clock = scene.clock
        let seen = Mutex<[Outbox.Entry.State]>([])
        let operation = WriteThrough<Payment, Int>("pay", scope: { $0.account }) { attempt in
            // The row as another process reads it.
            var configuration = CacheConfiguration(.directory(path))
            configuration.wallClock = clock
            let other = try LarderCache(configuration)
            #expect(other.outbox.entries.map(\.idempotencyKey) == [attempt.idempotencyKey])
            seen.withLock { $0 = other.outbox.entries.map(\.state) }
            return .accepted(1)
        }
        cache.outbox.resume()
        _ = try await cache.commit(Payment(account: "a", amount: 1), operation)
        #expect(seen.withLock { $0 } == [.inDoubt])
    }

    @Test func `an operation that is accepted before its caller waits returns its receipt`() async throws {
        var configuration = scene.configuration()
        let (isEnqueued, isDone) = (Pending<Bool>(), Hold())
        configuration.onEvent = { event in
            switch event {
            case .outbox(.enqueued, _):
                isEnqueued.finish(true)
                isDone.wait()
            case .outbox(.accepted, _): isDone.open()
            default: break
            }
        }
        let cache = try LarderCache(configuration)
        cache.outbox.resume()
        let operation = bank.operation
        let paying = Task {
            try await cache.commit(Payment(account: "a", amount: 5), operation)
        }
        #expect(await isEnqueued.value(ifCancelled: false))
        cache.networkReturned()
        #expect(try await paying.value == 5)
    }

    @Test func `an operation that is rejected before its caller waits throws the rejection`() async throws {
        var configuration = scene.configuration()
        let (isEnqueued, isDone) = (Pending<Bool>(), Hold())
        configuration.onEvent = { event in
            switch event {
            case .outbox(.enqueued, _):
                isEnqueued.finish(true)
                isDone.wait()
            case .rejected: isDone.open()
            default: break
            }
        }
        bank.state.withLock { $0.rejects = true }
        let cache = try LarderCache(configuration)
        cache.outbox.resume()
        let operation = bank.operation
        let paying = Task {
            try await cache.commit(Payment(account: "a", amount: 5), operation)
        }
        #expect(await isEnqueued.value(ifCancelled: false))
        cache.networkReturned()
        let error = await #expect(throws: LarderError.self) { try await paying.value }
        #expect(error?.code == .rejected && error?.status == 422)
    }

    @Test func `a cancelled caller, and one whose cache is closed, do not wait`() async throws {
        let cache = try scene.cache()
        let gate = ScriptedSource<Int>()
        let operation = WriteThrough<Payment, Int>("pay", scope: { $0.account }) { _ in
            _ = try await gate.fetch(FetchContext())
            return .accepted(1)
        }
        cache.outbox.resume()
        let cancelled = Task { try await cache.commit(Payment(account: "a", amount: 1), operation) }
        await gate.waitForRequests(1)
        cancelled.cancel()
        let doubt = await #expect(throws: LarderError.self) { try await cancelled.value }
        #expect(doubt?.code == .inDoubt && doubt?.operation == cache.outbox.entries.first?.id)
        let closed = Task { try await cache.commit(Payment(account: "b", amount: 1), operation) }
        await gate.waitForRequests(2)
        let last = cache.outbox.entries.last?.id
        cache.close()
        // It was sent: "closed" would say that nothing has happened.
        let end = await #expect(throws: LarderError.self) { try await closed.value }
        #expect(end?.code == .inDoubt && end?.operation == last)
    }

    @Test func `a receipt is returned although its acknowledgement cannot be stored, which is reported`() async throws {
        var configuration = scene.configuration()
        configuration.editStore { $0.bytesMaximum = 64 << 10 }
        let cache = try LarderCache(configuration)
        cache.outbox.resume()
        var operation = bank.operation
        operation.acknowledge = { payment, total, update in
            update.put(Note(id: payment.account, text: String(repeating: "x", count: 128 << 10), revision: 1))
        }
        #expect(try await cache.commit(Payment(account: "a", amount: 5), operation) == 5)
        #expect(cache.outbox.entries.isEmpty && bank.state.withLock { $0.keys.count } == 1)
        #expect(scene.events.withLock { $0.contains { if case .storageFailed = $0 { true } else { false } } })
        #expect(try scene.cache().outbox.entries.isEmpty)
    }

    @Test func `a conflict ends its operation although the server's state cannot be stored`() async throws {
        var configuration = scene.configuration()
        configuration.editStore { $0.bytesMaximum = 64 << 10 }
        let cache = try LarderCache(configuration)
        let large = Note(id: "a", text: String(repeating: "x", count: 128 << 10), revision: 1)
        let edit = WriteBehind<Payment, Int>("edit", scope: { $0.account }, changes: { _, _ in }) { attempts in
            attempts.map { _ -> Outbox.Outcome<Int> in .rejected(LarderError.conflict(large, validator: nil, "Old.")) }
        }
        cache.outbox.resume()
        try cache.enqueue(Payment(account: "a", amount: 1), edit)
        try await cache.outbox.drained()
        #expect(cache.outbox.rejected.first?.rejection?.code == .conflict)
    }

    @Test(arguments: [false, true])
    func `with a failing store a receipt is returned, a rejection is in doubt, and both have one effect`(
        _ isRejected: Bool
    ) async throws {
        let killable = KillableStore(DiskStore.Configuration(directory: scene.path, clock: scene.clock))
        var configuration = scene.configuration()
        configuration.storage = .store(try killable.store())
        let cache = try LarderCache(configuration)
        let keys = Mutex<[String]>([])
        let operation = WriteThrough<Payment, Int>("pay", scope: { $0.account }) { attempt in
            let count = keys.withLock { keys in
                keys.append(attempt.idempotencyKey)
                return keys.count
            }
            if count == 1 { killable.fail(.full, untilHealed: true) }
            return isRejected ? .rejected(LarderError(.rejected, "Insufficient funds.", status: 422)) : .accepted(7)
        }
        cache.outbox.resume()
        do {
            #expect(try await cache.commit(Payment(account: "a", amount: 1), operation) == 7)
            #expect(!isRejected)
        } catch {
            #expect(isRejected && error.code == .inDoubt)
        }
        #expect(cache.outbox.status.inDoubt == 1)
        killable.heal()
        cache.networkReturned()
        try await cache.outbox.drained()
        #expect(cache.outbox.entries.isEmpty && keys.withLock { $0.count == 2 && Set($0).count == 1 })
    }

    @Test func `an operation in progress at the server is in doubt, never rejected`() async throws {
        let cache = try scene.cache()
        let count = Mutex(0)
        let operation = WriteThrough<Payment, Int>("pay", scope: { $0.account }) { _ in
            guard
                count.withLock({ count in
                    count += 1
                    return count
                }) > 1
            else {
                throw LarderError(
                    .rejected,
                    "The first is running.",
                    status: 409,
                    problem: "https://larder.test/problems/idempotency-in-progress"
                )
            }
            return .accepted(1)
        }
        cache.outbox.resume()
        let error = await #expect(throws: LarderError.self) {
            try await cache.commit(Payment(account: "a", amount: 1), operation)
        }
        #expect(error?.code == .inDoubt && cache.outbox.status.inDoubt == 1)
        scene.clock.advance(by: .seconds(60))
        try await cache.outbox.drained()
        #expect(count.withLock { $0 } == 2)
    }
}
