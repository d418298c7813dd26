import LarderResources
import LarderStorage
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@Suite("Outbox: payload transforms", .oneMinute)
struct OutboxTransformTests {
    /// A wrong key decodes to other bytes without an error.
    private struct Mask: DiskStore.PayloadTransform {
        let byte: UInt8
        var identifier: String { "mask" }

        func encode(_ payload: [UInt8]) throws -> [UInt8] { payload.map { $0 ^ byte } }

        func decode(_ stored: [UInt8]) throws -> [UInt8] { stored.map { $0 ^ byte } }
    }

    private final class Sent: Sendable {
        let inputs = Mutex<[String]>([])
    }

    private let scene = CacheScene()
    private let sent = Sent()

    private func cache(_ byte: UInt8) throws -> LarderCache {
        var configuration = scene.configuration()
        configuration.editStore { $0.transform = Mask(byte: byte) }
        configuration.operations = [operation]
        return try LarderCache(configuration)
    }

    private var operation: WriteBehind<String, Bool> {
        WriteBehind("send", scope: { $0 }, changes: { _, _ in }) { [sent] attempts in
            attempts.map { attempt in
                sent.inputs.withLock { $0.append(attempt.input) }
                return .accepted(true)
            }
        }
    }

    private var unregistered: [String] {
        scene.events.withLock { events in
            events.compactMap { if case .unregistered(let name, let count) = $0 { "\(name) \(count)" } else { nil } }
        }
    }

    @Test func `with a wrong key nothing garbled is sent, what waits is reported and kept, and is sent with the key`()
        async throws
    {
        let first = try cache(1)
        try first.enqueue("a", operation)
        first.close()

        let second = try cache(2)
        try second.enqueue("b", operation)
        second.outbox.resume()
        let error = await #expect(throws: LarderError.self) { try await second.outbox.drained() }
        #expect(error?.code == .unregistered)
        #expect(sent.inputs.withLock { $0 } == ["b"])
        #expect(unregistered == ["larder.unreadable 1"])
        let kept = try #require(second.outbox.entries.first)
        #expect(kept.operation == "larder.unreadable" && second.outbox.entries.count == 1)
        second.close()

        let third = try cache(1)
        third.outbox.resume()
        try await third.outbox.drained()
        #expect(sent.inputs.withLock { $0 } == ["b", "a"])
        third.close()
    }
}
