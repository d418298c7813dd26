import LarderTime
import TestSupport
import Testing

@testable import LarderCoding

@Suite("Compression by the system's zlib", .oneMinute)
struct CompressionTests {
    /// Bytes of one of several kinds: noise, few letters, runs, copies from far back, text.
    private func content(_ count: Int, _ random: inout SeededGenerator) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count + 1_000)
        let letters = 1 << random.uniform(in: 1..<9)
        while bytes.count < count {
            switch random.uniform(in: 0..<5) {
            case 0: for _ in 0..<random.uniform(in: 1..<600) { bytes.append(UInt8(random.uniform(in: 0..<letters))) }
            case 1:
                let byte = UInt8(random.uniform(in: 0..<256))
                bytes += repeatElement(byte, count: random.uniform(in: 1..<1_000))
            case 2 where !bytes.isEmpty:
                // Also one byte at a time, so that a copy may overlap itself.
                let distance = random.uniform(in: 1..<(min(bytes.count, 40_000) + 1))
                for _ in 0..<random.uniform(in: 1..<700) { bytes.append(bytes[bytes.count - distance]) }
            default:
                let start = random.uniform(in: 0..<CompressedSample.text.count)
                bytes += CompressedSample.text[start...].prefix(random.uniform(in: 1..<200))
            }
        }
        return Array(bytes.prefix(count))
    }

    @Test(arguments: [Zlib.Level.fast, .good], [CompressionFormat.deflate, .zlib, .gzip])
    func `what was compressed is decompressed to the same bytes`(
        _ level: Zlib.Level,
        _ format: CompressionFormat
    ) throws {
        let seed: UInt64 = 0xDEF1_A7E5
        print("round trips with seed \(seed)")
        var random = SeededGenerator(seed: seed)
        for round in 0..<60 {
            let count = round < 20 ? round : random.uniform(in: 0..<(round % 10 == 0 ? 300_000 : 12_000))
            let content = content(count, &random)
            let stream = try deflate(content, format, level)
            #expect(stream.count <= count + count / 1_000 + 64)
            let decoded = try inflate(
                stream,
                format,
                pieceBytes: { random.uniform(in: 1..<5_000) },
                readBytes: { random.uniform(in: 1..<5_000) }
            )
            #expect(decoded == content, "seed \(seed), round \(round), \(count) bytes")
        }
    }

    @Test func `what is compressed follows the bytes that it is to follow`() throws {
        let zlib = try Zlib.system.get()
        let text = CompressedSample.text
        let stream = try #require(zlib.deflated(text, .deflate, .fast, after: [7, 8]))
        #expect(stream.prefix(2) == [7, 8])
        #expect(try inflate(Array(stream.dropFirst(2)), .deflate) == text)
        #expect(try deflate(text, .gzip, .good).count < deflate(text, .gzip, .fast).count)
        #expect(try deflate([], .deflate) == [3, 0])
    }

    @Test func `the CRC-32 is that of the standard`() throws {
        let bytes = Array("-123456789-".utf8)
        #expect(try Zlib.system.get().crc32(bytes, 1..<10) == 0xCBF4_3926)
        #expect(try Zlib.system.get().crc32([], 0..<0) == 0)
    }

    @Test func `a missing zlib is an error that says what to install`() throws {
        let missing = Zlib.load("libz.so.0.none")
        #expect(throws: InflateError.self) { try missing.get() }
        guard case .failure(.unavailable(let text)) = missing else { return #expect(Bool(false), "\(missing)") }
        #expect(text.contains("libz.so.0.none") && text.contains("apt-get install zlib1g"))
        #expect(throws: InflateError.unavailable(text)) {
            try inflate(CompressedSample.all[0].stream, .deflate, zlib: missing)
        }
        // Another library that can be loaded, without zlib's functions.
        guard case .failure(.unavailable(let reason)) = Zlib.load("libc.so.6") else { return #expect(Bool(false)) }
        #expect(reason.contains("inflateInit2_"))
    }
}
