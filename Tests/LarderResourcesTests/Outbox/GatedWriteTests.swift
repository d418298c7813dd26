import LarderResources
import LarderTesting
import LarderTime
import SDKTestSupport
import TestSupport
import Testing

@Suite("Outbox: writes that need a validated value", .oneMinute)
struct GatedWriteTests {
    let scene = CacheScene()
    let source = ScriptedSource<Int>()

    private var balance: Resource<Int> {
        let source = source
        return Resource("balance", freshness: .critical) { try await source.fetch($0) }
    }

    private var payment: WriteThrough<Int, Int>.Gated<Int> {
        WriteThrough<Int, Int>("pay", scope: { _ in "a" }) { .accepted($0.input) }.requiring(Int.self) {
            amount,
            balance in
            if amount > balance { throw LarderError(.invalidArgument, "\(balance) is too little for \(amount).") }
        }
    }

    @Test func `a write with a validated value is sent, and the value says when it was confirmed`() async throws {
        let cache = try scene.cache()
        cache.outbox.resume()
        source.prepare(.value(10))
        let confirmed = try await cache.requireValidated(balance, within: .seconds(30))
        #expect(confirmed.value == 10 && confirmed.validatedAt == scene.clock.now && confirmed.bound == .seconds(30))
        scene.clock.advance(by: .seconds(30))
        #expect(try await cache.commit(4, payment, given: confirmed) == 4)
        cache.close()
    }

    @Test func `an expired value is rejected, and nothing is stored or sent`() async throws {
        let cache = try scene.cache()
        cache.outbox.resume()
        source.prepare(.value(10))
        let confirmed = try await cache.requireValidated(balance, within: .seconds(30))
        scene.clock.advance(by: .seconds(31))
        let error = await #expect(throws: LarderError.self) { try await cache.commit(4, payment, given: confirmed) }
        #expect(error?.code == .notValidated && error?.description.contains("31") ?? false)
        #expect(cache.outbox.entries.isEmpty)
        source.prepare(.value(10))
        let again = try await cache.requireValidated(balance, within: .seconds(30))
        #expect(try await cache.commit(4, payment, given: again) == 4)
        cache.close()
    }

    @Test(arguments: [3_600, 20] as [Int64], [false, true])
    func `a value whose age is unknown after the clock was set back is rejected`(
        _ seconds: Int64,
        isFromDisk: Bool
    ) async throws {
        var cache = try scene.cache()
        source.prepare(.value(10))
        var confirmed = try await cache.requireValidated(balance, within: .seconds(30))
        if isFromDisk {
            cache.close()
            cache = try scene.cache()
            confirmed = try await cache.requireValidated(balance, within: .seconds(30))
        }
        cache.outbox.resume()
        scene.clock.advance(by: .seconds(25))
        scene.clock.set(wall: scene.clock.now - .seconds(seconds))
        let error = await #expect(throws: LarderError.self) { try await cache.commit(4, payment, given: confirmed) }
        #expect(error?.code == .notValidated)
        cache.close()
    }

    @Test func `a value of another cache is rejected`() async throws {
        let (one, two) = (try scene.cache(inMemory: true), try scene.cache(inMemory: true))
        source.prepare(.value(10))
        let confirmed = try await one.requireValidated(balance, within: .seconds(30))
        let error = await #expect(throws: LarderError.self) { try await two.commit(4, payment, given: confirmed) }
        #expect(error?.code == .invalidArgument && two.outbox.entries.isEmpty)
    }

    @Test func `the check of the write sees the confirmed value`() async throws {
        let cache = try scene.cache()
        cache.outbox.resume()
        source.prepare(.value(10))
        let confirmed = try await cache.requireValidated(balance, within: .seconds(30))
        let error = await #expect(throws: LarderError.self) { try await cache.commit(11, payment, given: confirmed) }
        #expect(error?.code == .invalidArgument && cache.outbox.entries.isEmpty)
        cache.close()
    }
}
