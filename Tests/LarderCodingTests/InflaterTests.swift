import LarderTime
import TestSupport
import Testing

@testable import LarderCoding

@Suite("Inflater", .oneMinute)
struct InflaterTests {
    private func failure(_ stream: [UInt8], _ format: CompressionFormat) -> InflateError? {
        do {
            _ = try inflate(stream, format)
            return nil
        } catch {
            return error
        }
    }

    @Test(arguments: CompressedSample.all)
    func `streams of zlib are decompressed`(_ sample: CompressedSample) throws {
        #expect(!sample.stream.isEmpty)
        #expect(try inflate(sample.stream, sample.format) == sample.content)
    }

    @Test(arguments: CompressedSample.all)
    func `input and output may be split anywhere`(_ sample: CompressedSample) throws {
        #expect(try inflate(sample.stream, sample.format, pieceBytes: { 1 }, readBytes: { 1 }) == sample.content)
        let seed: UInt64 = 0x5911_7000
        var random = SeededGenerator(seed: seed)
        for round in 0..<200 {
            let (piece, read) = (1 + random.uniform(in: 0..<90), 1 + random.uniform(in: 0..<300))
            let result = try inflate(sample.stream, sample.format, pieceBytes: { piece }, readBytes: { read })
            #expect(result == sample.content, "seed \(seed), round \(round): pieces of \(piece), reads of \(read)")
        }
    }

    @Test(arguments: CompressedSample.all)
    func `every proper prefix is reported as truncated`(_ sample: CompressedSample) throws {
        // A gzip file may end after each of its members.
        let ends: Set<Int> = sample.testDescription.contains("members") ? [27, 47] : []
        for count in 0..<sample.stream.count where !ends.contains(count) {
            #expect(failure(Array(sample.stream.prefix(count)), sample.format) == .truncated, "\(count) bytes")
        }
    }

    @Test(arguments: CompressedSample.all.filter { $0.format == .zlib || $0.testDescription.contains("level") })
    func `a flipped bit never changes the content unnoticed`(_ sample: CompressedSample) throws {
        // Without checksum there is nothing to detect it by; a gzip header has a time that any value suits.
        guard sample.format != .deflate else { return }
        for index in ((sample.format == .gzip ? 10 : 0) * 8)..<(sample.stream.count * 8) {
            var stream = sample.stream
            stream[index / 8] ^= 1 << UInt8(index % 8)
            // Bits that fill up a byte mean nothing.
            #expect((try? inflate(stream, sample.format)).map { $0 == sample.content } ?? true, "bit \(index)")
        }
    }

    @Test func `thousands of damaged streams decode or fail without a trap`() {
        let seed: UInt64 = 0x1AF1_A7E0
        var random = SeededGenerator(seed: seed)
        var failed = 0
        for _ in 0..<20_000 {
            let sample = CompressedSample.all[random.uniform(in: 0..<CompressedSample.all.count)]
            // Without the checksum, so that the damage reaches the decoder of symbols.
            var stream = sample.stream
            for _ in 0...random.uniform(in: 0..<3) {
                stream[random.uniform(in: 0..<stream.count)] = UInt8(random.uniform(in: 0..<256))
            }
            let format: CompressionFormat = sample.format == .zlib ? .deflate : sample.format
            if sample.format == .zlib { stream.removeFirst(min(2, stream.count)) }
            if failure(stream, format) != nil { failed += 1 }
        }
        print("streams with seed \(seed): \(failed) of 20000 failed")
        #expect(failed > 10_000)
    }

    @Test func `wrong headers are rejected with their reason`() throws {
        let head = InflateError.damaged("The compressed data is damaged: incorrect header check.")
        #expect(failure([0x50, 0x4B, 3, 4], .gzip) == head && failure([0x78, 0x02], .zlib) == head)
        // A window of 64 KiB.
        #expect(failure([0x88, 0x1C], .zlib) == .damaged("The compressed data is damaged: invalid window size."))
        #expect(failure([0x78, 0xBB, 0, 0, 0, 1], .zlib) == .damaged("The compressed data needs a preset dictionary."))
        #expect(
            failure([0x1F, 0x8B, 8, 0x20], .gzip)
                == .damaged("The compressed data is damaged: unknown header flags set.")
        )
        #expect(failure([0b111], .deflate) == .damaged("The compressed data is damaged: invalid block type."))
    }

    /// Each block has ten bits and no content, so no limit on content ends it.
    @Test func `millions of empty blocks cost little more than their bits`() throws {
        let blocks = Array(repeatElement([0x02, 0x08, 0x20, 0x80, 0x00] as [UInt8], count: 400_000).joined())
        #expect(try inflate(blocks + [0x03, 0x00], .deflate) == [])
    }

    @Test func `a distance before the beginning is damage`() {
        // Fixed codes: a match of 3 bytes at distance 1, before any byte.
        #expect(
            failure([0x03, 0x02, 0, 0], .deflate)
                == .damaged("The compressed data is damaged: invalid distance too far back.")
        )
    }

    @Test func `bytes after a gzip member that are no member are damage, and zlib leaves them unread`() throws {
        let gzip = try #require(CompressedSample.all.first { $0.testDescription == "gzip, level 6" })
        #expect(
            failure(gzip.stream + [0, 0, 0], .gzip)
                == .damaged("The compressed data is damaged: incorrect header check.")
        )
        #expect(failure(gzip.stream + [0x1F], .gzip) == .truncated)
        let zlib = try #require(CompressedSample.all.first { $0.format == .zlib })
        var inflater = Inflater(.zlib)
        var buffer = [UInt8](repeating: 0, count: 10_000)
        var consumed = 0
        let stream = zlib.stream + [1, 2, 3]
        let count = try inflater.read(buffer.count, into: &buffer, from: stream.span, consumed: &consumed)
        #expect(count == zlib.content.count && inflater.hasEnded)
        #expect(consumed == zlib.stream.count)
    }

    @Test func `no more than the limit is read, in bytes and as a ratio`() throws {
        let zeros = try #require(CompressedSample.all.last)
        #expect(try inflate(zeros.stream, .zlib, limits: Inflater.Limits(outputBytesMaximum: 100_000)) == zeros.content)
        #expect(throws: InflateError.tooLarge("99999 bytes")) {
            try inflate(zeros.stream, .zlib, limits: Inflater.Limits(outputBytesMaximum: 99_999))
        }
        // The ratio is judged beyond a mebibyte: twelve gzip members with the same zeros.
        let checksum = try Zlib.system.get().crc32(zeros.content, 0..<100_000)
        let trailer = [checksum, 100_000].flatMap { word in (0..<4).map { UInt8(truncatingIfNeeded: word >> ($0 * 8)) }
        }
        let member = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 0xFF] + zeros.stream[2..<(zeros.stream.count - 4)] + trailer
        let gzip = [[UInt8]](repeating: member, count: 12).flatMap { $0 }
        #expect(try inflate(gzip, .gzip).count == 1_200_000)
        #expect(throws: InflateError.tooLarge("500 times the compressed data")) {
            try inflate(gzip, .gzip, limits: Inflater.Limits(ratioMaximum: 500))
        }
    }

    @Test func `a stream is decompressed only as far as it is read`() throws {
        let zeros = try #require(CompressedSample.all.last)
        var inflater = Inflater(.zlib)
        var buffer = [UInt8](repeating: 1, count: 10)
        var consumed = 0
        #expect(try inflater.read(10, into: &buffer, from: zeros.stream.span, consumed: &consumed) == 10)
        #expect(buffer == [UInt8](repeating: 0, count: 10))
        #expect(!inflater.hasEnded && consumed < zeros.stream.count)
    }
}
