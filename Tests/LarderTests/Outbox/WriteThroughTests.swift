import Larder
import LarderTesting
import LarderTime
import Synchronization
import TestSupport
import Testing

@Suite("Changes that are awaited", .oneMinute)
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
            var refuses = false
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
                        if state.refuses { return (false, -1) }
                        state.paid[attempt.idempotencyKey] = attempt.input.amount
                        state.loses -= 1
                        return (state.loses >= 0, state.paid.values.reduce(0, +))
                    }
                    if isLost { throw TransportError(.interrupted, "the reply was lost") }
                    if total < 0 { return .rejected(LarderError(.refused, "Insufficient funds.", status: 422)) }
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

    @Test func `it is done when it returns, and what the server answered is stored`() async throws {
        let cache = try scene.cache()
        cache.outbox.resume()
        #expect(try await cache.commit(Payment(account: "a", amount: 5), bank.operation) == 5)
        #expect(try await cache.value(note, .cacheOnly).text == "5")
        #expect(cache.outbox.entries.isEmpty)
    }

    @Test func `a refusal is an error, and nothing is left of it`() async throws {
        let cache = try scene.cache()
        cache.outbox.resume()
        bank.state.withLock { $0.refuses = true }
        let error = await #expect(throws: LarderError.self) {
            try await cache.commit(Payment(account: "a", amount: 5), bank.operation)
        }
        #expect(error?.status == 422 && cache.outbox.entries.isEmpty)
    }

    @Test(arguments: [false, true])
    func `without a network nothing is sent, and nothing is kept`(_ isKnown: Bool) async throws {
        let cache = try scene.cache()
        cache.outbox.resume()
        if isKnown { scene.isOnline.withLock { $0 = false } } else { bank.state.withLock { $0.isReachable = false } }
        let error = await #expect(throws: LarderError.self) {
            try await cache.commit(Payment(account: "a", amount: 5), bank.operation)
        }
        #expect(error?.code == .offline && cache.outbox.entries.isEmpty)
    }

    @Test func `a lost reply leaves it in doubt, also across the death of the process, and it resolves itself once`()
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
        // Nothing else is paid from there before it is known.
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
        #expect(try await cache.commit(Payment(account: "a", amount: 7), bank.operation) == 12)
    }

    @Test func `its key and body are stored before its first byte leaves`() async throws {
        let cache = try scene.cache()
        let path = scene.path
        let clock = scene.clock
        let seen = Mutex<[OutboxEntry.State]>([])
        let operation = WriteThrough<Payment, Int>("pay", scope: { $0.account }) { attempt in
            // As another process would see it.
            var configuration = CacheConfiguration(directory: path)
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
}
