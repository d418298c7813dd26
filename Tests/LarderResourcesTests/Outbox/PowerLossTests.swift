import Foundation
import LarderResources
import LarderSQLite
import LarderStorage
import LarderTime
import LarderTransport
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@Suite("Outbox: power loss", .oneMinute)
struct PowerLossTests {
    struct Payment: Codable, Sendable {
        var account: String
        var amount: Int
    }

    /// What has left the device, and what the device was told.
    final class Network: Sendable {
        struct State {
            /// The keys of payments whose first byte has left.
            var left: [String] = []
            /// The keys whose outcome has arrived.
            var answered: Set<String> = []
            /// The operations of likes that were carried out.
            var liked: Set<String> = []
            var isReachable = true
        }

        let state = Mutex(State())
        let losesReply: @Sendable (Int) -> Bool

        init(losesReply: @escaping @Sendable (Int) -> Bool) { self.losesReply = losesReply }

        var payment: WriteThrough<Payment, Int> {
            WriteThrough<Payment, Int>("pay", scope: { $0.account }) { [self] attempt in
                try state.withLock { state in
                    guard state.isReachable else { throw TransportError(.unreachable, "no route") }
                    state.left.append(attempt.idempotencyKey)
                    if losesReply(state.left.count) { throw TransportError(.interrupted, "the reply was lost") }
                    state.answered.insert(attempt.idempotencyKey)
                    return .accepted(attempt.input.amount)
                }
            }
        }

        var like: WriteBehind<Tap, Int> {
            WriteBehind<Tap, Int>(
                "like",
                scope: { $0.post },
                changes: { _, _ in },
                send: { [self] attempts in
                    try state.withLock { state in
                        guard state.isReachable else { throw TransportError(.unreachable, "no route") }
                        state.liked.formUnion(attempts.map(\.idempotencyKey))
                        return attempts.map { _ in .accepted(1) }
                    }
                }
            )
        }
    }

    private func configuration(_ scene: CacheScene, _ killable: KillableStore) throws -> CacheConfiguration {
        var configuration = scene.configuration()
        configuration.storage = .store(try killable.store())
        // No retry while a test runs, unless the clock is moved.
        configuration.random = { 1 }
        return configuration
    }

    @Test(arguments: 1...60 as ClosedRange<UInt64>)
    func `after a power loss at any moment a payment that was sent is known under its key`(_ seed: UInt64) async throws
    {
        var generator = SeededGenerator(seed: seed)
        let scene = CacheScene()
        let killable = KillableStore(
            DiskStore.Configuration(directory: scene.path, clock: scene.clock),
            simulatesPowerLoss: true
        )
        let loses = Set((1...40).filter { _ in generator.uniform(in: 0..<3) == 0 })
        let network = Network { loses.contains($0) }
        let cache = try LarderCache(try configuration(scene, killable))
        cache.outbox.register(network.payment)
        cache.outbox.register(network.like)
        cache.outbox.resume()
        if seed.isMultiple(of: 3) { killable.kill(atStep: 1 + generator.uniform(in: 0..<400)) }
        /// The keys of likes in the order of enqueuing.
        var likes: [String] = []
        for number in 0..<(8 + generator.uniform(in: 0..<24)) {
            switch generator.uniform(in: 0..<4) {
            case 0:
                // It ends with its result, in doubt, or with the death of the process.
                let payment = Payment(account: "a\(number)", amount: number)
                do { _ = try await cache.commit(payment, network.payment) } catch {
                    #expect([.inDoubt, .storage, .closed].contains(error.code), "seed \(seed): \(error)")
                }
            case 1:
                let isReachable = generator.uniform(in: 0..<2) == 0
                network.state.withLock { $0.isReachable = isReachable || $0.left.isEmpty }
                try? await cache.update { $0.put(Note(id: "\(number)", text: String(repeating: "n", count: 3_000))) }
                network.state.withLock { $0.isReachable = true }
            default:
                do {
                    if let id = try cache.enqueue(Tap(post: "p\(number)", isLike: true), network.like) {
                        let entry = cache.outbox.entries(of: "like").first { $0.id == id }
                        if let entry { likes.append(entry.idempotencyKey) }
                    }
                } catch { #expect(killable.isDead, "seed \(seed): \(error)") }
            }
        }
        try killable.losePower(seed: seed)
        cache.close()

        let events = Mutex<[CacheEvent]>([])
        var restarted = try configuration(scene, killable)
        restarted.onEvent = { event in events.withLock { $0.append(event) } }
        let again = try LarderCache(restarted)
        again.outbox.register(network.payment)
        again.outbox.register(network.like)
        let (left, answered, liked) = network.state.withLock { (Set($0.left), $0.answered, $0.liked) }
        let payments = again.outbox.entries(of: "pay")
        for key in left where !answered.contains(key) {
            let entry = payments.first { $0.idempotencyKey == key }
            #expect(entry?.state == .inDoubt, "seed \(seed): payment \(key) has left the device and is forgotten")
        }
        // Of the likes that were not sent only the last ones may be missing.
        let found = Set(again.outbox.entries(of: "like").map(\.idempotencyKey))
        let open = likes.filter { !liked.contains($0) }
        #expect(open.map { found.contains($0) } == open.map { found.contains($0) }.sorted { $0 && !$1 }, "seed \(seed)")
        // Nothing was damaged, and nothing had to be salvaged.
        let damage = events.withLock { $0.filter { if case .storageFailed = $0 { true } else { false } } }
        #expect(damage.isEmpty, "seed \(seed)")
        again.close()
        killable.abandon()
        for directory in [scene.path, scene.outboxPath] {
            let database = try Database(.file(directory + "/store.sqlite"))
            #expect(try database.integrityProblems() == [], "seed \(seed)")
            let files = try FileManager.default.contentsOfDirectory(atPath: directory)
            #expect(!files.contains { $0.contains("damaged") }, "seed \(seed): \(files)")
        }
    }
}
