import LarderCoding
import LarderStorage
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@Suite("Disk store: compression", .oneMinute)
struct CompressingTransformTests {
    private typealias Compression = DiskStore.CompressingTransform

    /// Records what it gets, and changes it.
    private final class Recorder: DiskStore.PayloadTransform {
        let seen = Mutex<[[UInt8]]>([])

        var identifier: String { "recorder" }

        func encode(_ payload: [UInt8]) throws -> [UInt8] {
            seen.withLock { $0.append(payload) }
            return payload.map { $0 ^ 0x55 }
        }

        func decode(_ stored: [UInt8]) throws -> [UInt8] { stored.map { $0 ^ 0x55 } }
    }

    private let text = Array(String(repeating: "a sentence that is on the disk once; ", count: 60).utf8)

    private func noise(_ count: Int, _ seed: UInt64) -> [UInt8] {
        var generator = SeededGenerator(seed: seed)
        return (0..<count).map { _ in UInt8(truncatingIfNeeded: generator.next()) }
    }

    @Test func `a payload that can be compressed is stored in less, others with one byte more`() throws {
        let transform = Compression()
        #expect(try transform.encode(text).count < text.count / 5)
        for count in [0, 1, 255, 256, 5_000, 16_385, 100_000] {
            let payload = noise(count, 1)
            #expect(try transform.encode(payload) == [0] + payload, "\(count)")
        }
        // Too small to be tried.
        let small = [UInt8](repeating: 7, count: 255)
        #expect(try transform.encode(small) == [0] + small)
        #expect(try transform.encode(small + [7]).count < 20)
        // A picture has metadata in front that could be compressed.
        let picture = [UInt8](repeating: 0, count: 9_000) + noise(20_000, 2)
        #expect(try transform.encode(picture).count == picture.count + 1)
    }

    @Test
    func `without zlib payloads are stored as they are, and compressed ones are an error that says what is missing`()
        throws
    {
        let without = Compression(then: nil, zlib: Zlib.load("libz.so.0.none"))
        #expect(try without.encode(text) == [0] + text)
        #expect(try without.decode(without.encode(text)) == text)
        let stored = try Compression().encode(text)
        let error = #expect(throws: InflateError.self) { try without.decode(stored) }
        #expect(error?.description.contains("zlib1g") == true)
    }

    @Test func `what is decoded is what was encoded, for random payloads`() throws {
        for seed in UInt64(1)...200 {
            var generator = SeededGenerator(seed: seed)
            var payload: [UInt8] = []
            for _ in 0..<generator.uniform(in: 0..<30) {
                let count = generator.uniform(in: 0..<1_500)
                switch generator.uniform(in: 0..<3) {
                case 0: payload += noise(count, seed)
                case 1: payload += [UInt8](repeating: UInt8(truncatingIfNeeded: count), count: count)
                default: payload += text.prefix(count)
                }
            }
            let transform = Compression(then: seed % 2 == 0 ? Recorder() : nil)
            let stored = try transform.encode(payload)
            #expect(try transform.decode(stored) == payload, "seed \(seed)")
            #expect(stored.count <= payload.count + 1, "seed \(seed)")
        }
    }

    @Test func `payloads are compressed before they are encrypted`() throws {
        let recorder = Recorder()
        let transform = Compression(then: recorder)
        #expect(transform.identifier == "deflate+recorder" && Compression().identifier == "deflate")
        #expect(try transform.decode(transform.encode(text)) == text)
        #expect(recorder.seen.withLock { $0.map(\.count) }.allSatisfy { $0 < text.count / 5 })
    }

    @Test func `a store compresses entities and records`() throws {
        let fixture = DiskFixture()
        let store = try fixture.store { $0.transform = Compression() }
        try store.put(fixture.entity("1", text))
        try store.put(fixture.record("r", text))
        #expect(try store.entity(fixture.key("1"))?.payload == text)
        #expect(try store.record("r")?.payload == text)
        #expect(!fixture.directory.contains(text))
        // Without the transform the store does not read it, and does not fail.
        store.suspend()
        let plain = try fixture.store()
        #expect(try plain.entity(fixture.key("1")) == nil)
        #expect(fixture.events.transformChanges == ["2 items, 0 operations"])
    }

    @Test func `damaged payloads fail and allocate no more than they can be`() throws {
        let transform = Compression()
        let stored = try transform.encode(text)
        for end in 0..<stored.count {
            #expect(throws: (any Error).self, "\(end)") { try transform.decode(Array(stored.prefix(end))) }
        }
        var generator = SeededGenerator(seed: 4)
        for round in 0..<3_000 {
            var damaged = stored
            damaged[generator.uniform(in: 0..<stored.count)] ^= UInt8(1 << generator.uniform(in: 0..<8))
            let decoded = try? transform.decode(damaged)
            #expect(decoded.map { $0.count <= 1_033 * (stored.count + 1) } ?? true, "round \(round)")
        }
        let error = #expect(throws: (any Error).self) { try transform.decode([1, 255, 255, 255, 255, 3, 0]) }
        #expect("\(error as Any)".contains("7 bytes cannot be a payload of 4294967295 bytes"))
        #expect(throws: (any Error).self) { try transform.decode([9, 1, 2]) }
    }
}
