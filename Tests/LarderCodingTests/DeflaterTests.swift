import LarderTime
import TestSupport
import Testing

@testable import LarderCoding

@Suite("Deflater", .oneMinute)
struct DeflaterTests {
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

    @Test(arguments: [Deflater.Level.fast, .good], [CompressionFormat.deflate, .zlib, .gzip])
    func `what was compressed is decompressed to the same bytes`(
        _ level: Deflater.Level,
        _ format: CompressionFormat
    ) throws {
        let seed: UInt64 = 0xDEF1_A7E5
        print("round trips with seed \(seed)")
        var random = SeededGenerator(seed: seed)
        for round in 0..<60 {
            let count = round < 20 ? round : random.uniform(in: 0..<(round % 10 == 0 ? 300_000 : 12_000))
            let content = content(count, &random)
            let expected = round % 3 == 0 ? count : round % 3 == 1 ? Int.max : count / 7
            let stream = deflate(content, format, level, expected: expected)
            #expect(try inflate(stream, format) == content, "seed \(seed), round \(round), \(count) bytes")
        }
    }

    @Test(arguments: [Deflater.Level.fast, .good])
    func `the output does not depend on how the input is divided`(_ level: Deflater.Level) throws {
        let seed: UInt64 = 0x0005_9117
        print("divisions with seed \(seed)")
        var random = SeededGenerator(seed: seed)
        for round in 0..<12 {
            let content = content(random.uniform(in: 1..<(round == 0 ? 400_000 : 20_000)), &random)
            let expected = round % 2 == 0 ? Int.max : 2_000
            let whole = deflate(content, .gzip, level, expected: expected)
            for pieces in [1..<2, 1..<400, 200..<70_000] where content.count < 50_000 || pieces.lowerBound > 1 {
                let stream = deflate(content, .gzip, level, expected: expected) { random.uniform(in: pieces) }
                #expect(stream == whole, "seed \(seed), round \(round), pieces of \(pieces)")
            }
            let decoded = try inflate(
                whole,
                .gzip,
                pieceBytes: { random.uniform(in: 1..<5_000) },
                readBytes: { random.uniform(in: 1..<5_000) }
            )
            #expect(decoded == content, "seed \(seed), round \(round)")
        }
    }

    @Test func `noise grows by the heads of stored blocks only`() throws {
        var random = SeededGenerator(seed: 1)
        for count in [1, 100, 20_000, 200_000] {
            let noise = (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            for level in [Deflater.Level.fast, .good] {
                let stream = deflate(noise, .deflate, level)
                // A block has 16 Ki symbols or a few less.
                #expect(stream.count <= count + 6 * (count / 16_000 + 1), "\(count) bytes: \(stream.count)")
                #expect(try inflate(stream, .deflate) == noise)
            }
        }
    }

    @Test func `repetition and few symbols cost little`() throws {
        let zeros = [UInt8](repeating: 0, count: 1_000_000)
        #expect(deflate(zeros, .deflate).count < 1_100)
        #expect(try inflate(deflate(zeros, .deflate), .deflate) == zeros)
        // zlib needs 204 bytes at level 6 and 237 at level 1.
        #expect(deflate(CompressedSample.text, .gzip, .good).count < 215)
        #expect(deflate(CompressedSample.text, .gzip, .fast).count < 249)
        #expect(deflate([], .deflate) == [3, 0])
        #expect(deflate(Array("a".utf8), .deflate).count == 3)
    }

    @Test func `a repetition is found as far back as the window reaches, and not beyond`() throws {
        var random = SeededGenerator(seed: 2)
        let noise = (0..<40_000).map { _ in UInt8(truncatingIfNeeded: random.next()) }
        for level in [Deflater.Level.fast, .good] {
            for distance in [32_000, 32_766, 32_767, 32_768, 32_769, 39_000] {
                let content = Array(noise.prefix(distance)) + noise.prefix(1_000)
                let stream = deflate(content, .deflate, level)
                #expect(try inflate(stream, .deflate) == content, "distance \(distance)")
                #expect(
                    (stream.count < distance + 300) == (distance <= 32_767),
                    "distance \(distance): \(stream.count)"
                )
            }
        }
    }

    @Test func `a stream may be longer than positions have numbers`() throws {
        var random = SeededGenerator(seed: 3)
        let content = content(200_000, &random)
        for level in [Deflater.Level.fast, .good] {
            var deflater = Deflater(.zlib, level)
            // As after nearly 4 GiB: positions begin again at 0 within the content.
            deflater.base = .max - 100_000
            var stream: [UInt8] = []
            deflater.write(content.span, to: &stream)
            deflater.finish(to: &stream)
            #expect(try inflate(stream, .zlib) == content)
            #expect(stream.count < deflate(content, .zlib, level).count * 101 / 100)
        }
    }

    @Test func `codes are complete, within the limit and shorter for what is frequent`() {
        var fibonacci: [UInt32] = [1, 1]
        while fibonacci.count < 30 { fibonacci.append(fibonacci[fibonacci.count - 1] + fibonacci[fibonacci.count - 2]) }
        for (frequencies, limit) in [
            (fibonacci, 15), (Array(fibonacci.prefix(19)), 7), ([0, 5, 0], 15), ([0, 0, 0], 15),
            ([UInt32](repeating: 1, count: 286), 15), (Array(fibonacci.prefix(8)), 7),
        ] {
            let code = HuffmanCode(frequencies: frequencies, limit: limit)
            let used = code.lengths.filter { $0 > 0 }
            #expect(used.allSatisfy { $0 <= limit } && used.count >= 2)
            #expect(used.reduce(0) { $0 + 1 << (15 - Int($1)) } == 1 << 15, "\(code.lengths)")
            for (a, b) in zip(frequencies.indices, frequencies.indices.dropFirst())
            where frequencies[a] < frequencies[b] {
                #expect(code.lengths[a] >= code.lengths[b] || frequencies[a] == 0)
            }
        }
    }

    @Test func `equal frequencies within the limit give Huffman's total`() {
        let code = HuffmanCode(frequencies: [5, 9, 12, 13, 16, 45], limit: 15)
        #expect(code.lengths == [4, 4, 3, 3, 3, 1])
    }
}
