import LarderCoding
import LarderTime
import TestSupport
import Testing

@testable import LarderImages

@Suite("PNG decoder", .oneMinute)
struct PNGDecoderTests {
    private func decode(
        _ bytes: [UInt8],
        into target: ImageTarget? = nil,
        limits: DecodedImage.Limits = DecodedImage.Limits()
    ) throws(ImageError) -> DecodedImage {
        try PNGDecoder().decode(bytes, into: target, limits: limits)
    }

    /// The error of decoding; nil if it succeeds.
    private func failure(_ bytes: [UInt8], limits: DecodedImage.Limits = DecodedImage.Limits()) -> ImageError? {
        do {
            _ = try decode(bytes, limits: limits)
            return nil
        } catch {
            return error
        }
    }

    @Test func `there are pictures of every colour type, depth and interlacing`() {
        #expect(PictureFixture.all.count >= 100)
    }

    @Test(arguments: PictureFixture.all)
    func `files of other encoders decode to the same pixels`(_ fixture: PictureFixture) throws {
        let image = try decode(fixture.bytes)
        #expect(image.width == fixture.width && image.height == fixture.height)
        #expect(image.pixels == fixture.pixels)
        let hasTransparency = stride(from: 3, to: fixture.pixels.count, by: 4).contains { fixture.pixels[$0] < 255 }
        #expect(!(image.isOpaque && hasTransparency))
        try PNGDecoder().verify(fixture.bytes)
    }

    @Test(arguments: PictureFixture.all)
    func `a downsampled pixel is the mean of the pixels that it covers, for every file layout`(
        _ fixture: PictureFixture
    ) throws {
        for (width, height) in [(1, 1), (5, 3), (4, 11), (12, 2), (13, 11), (40, 40)] {
            for mode in [ImageTarget.ContentMode.fit, .fill] {
                let target = ImageTarget(width: width, height: height, mode: mode)
                let plan = ImageTarget.plan(width: fixture.width, height: fixture.height, target: target)
                let image = try decode(fixture.bytes, into: target)
                #expect(image.width == plan.width && image.height == plan.height)
                #expect(image.isNearly(fixture.averaged(plan)), "\(fixture.name) into \(width)×\(height), \(mode)")
            }
        }
    }

    @Test func `targets keep the aspect ratio, crop both sides equally, and never enlarge`() {
        func plan(_ width: Int, _ height: Int, _ mode: ImageTarget.ContentMode) -> [Int] {
            let plan = ImageTarget.plan(
                width: 4_000,
                height: 3_000,
                target: ImageTarget(width: width, height: height, mode: mode)
            )
            return [plan.x, plan.y, plan.sourceWidth, plan.sourceHeight, plan.width, plan.height]
        }
        #expect(plan(200, 200, .fit) == [0, 0, 4_000, 3_000, 200, 150])
        #expect(plan(200, 200, .fill) == [500, 0, 3_000, 3_000, 200, 200])
        #expect(plan(400, 100, .fill) == [0, 1_000, 4_000, 1_000, 400, 100])
        #expect(plan(8_000, 8_000, .fit) == [0, 0, 4_000, 3_000, 4_000, 3_000])
        #expect(plan(8_000, 8_000, .fill) == [500, 0, 3_000, 3_000, 3_000, 3_000])
        #expect(plan(1, 4_000, .fit) == [0, 0, 4_000, 3_000, 1, 1])
    }

    @Test func `random targets of a random picture agree with the plain computation`() throws {
        let seed: UInt64 = 6
        var random = SeededGenerator(seed: seed)
        let fixtures = ["hand-rgba-8-plain", "hand-rgb-8-plain", "hand-rgba-8-interlaced"]
        for name in fixtures {
            let fixture = try PictureFixture.named(name)
            for _ in 0..<60 {
                let target = ImageTarget(
                    width: random.uniform(in: 1..<16),
                    height: random.uniform(in: 1..<14),
                    mode: random.uniform(in: 0..<2) == 0 ? .fit : .fill
                )
                let plan = ImageTarget.plan(width: fixture.width, height: fixture.height, target: target)
                let image = try decode(fixture.bytes, into: target)
                #expect(image.isNearly(fixture.averaged(plan)), "seed \(seed), \(name), \(target)")
            }
        }
    }

    @Test func `every flipped bit is detected, also in unused chunks`() throws {
        let fixture = try PictureFixture.named("hand-rgb-8-plain")
        for index in 0..<(fixture.bytes.count * 8) {
            var bytes = fixture.bytes
            bytes[index / 8] ^= 1 << UInt8(index % 8)
            #expect(failure(bytes) != nil, "bit \(index)")
        }
    }

    @Test func `every proper prefix of a file is reported as truncated`() throws {
        for name in ["hand-rgb-8-plain", "hand-gray-1-interlaced"] {
            let fixture = try PictureFixture.named(name)
            for count in 0..<fixture.bytes.count {
                #expect(failure(Array(fixture.bytes.prefix(count)))?.code == .truncated, "\(name), \(count) bytes")
            }
        }
    }

    @Test func `thousands of damaged files decode or fail without a trap, with or without corrected checksums`() {
        let seed: UInt64 = 0x0FF5_E7ED
        var random = SeededGenerator(seed: seed)
        var (decoded, failed) = (0, 0)
        let limits = DecodedImage.Limits(sourcePixelsMaximum: 100_000, resultPixelsMaximum: 100_000)
        let fixtures = PictureFixture.all
        for round in 0..<4_000 {
            var bytes = fixtures[random.uniform(in: 0..<fixtures.count)].bytes
            for _ in 0...random.uniform(in: 0..<4) {
                switch random.uniform(in: 0..<4) {
                case 0: bytes.remove(at: random.uniform(in: 0..<bytes.count))
                case 1: bytes.insert(UInt8(random.uniform(in: 0..<256)), at: random.uniform(in: 0..<bytes.count))
                case 2: bytes[random.uniform(in: 0..<bytes.count)] = UInt8(random.uniform(in: 0..<256))
                default: bytes[random.uniform(in: 0..<bytes.count)] ^= 1 << UInt8(random.uniform(in: 0..<8))
                }
            }
            if round % 4 != 0 { PNGBuilder.mendChecksums(&bytes) }
            let target = round % 3 == 0 ? nil : ImageTarget(width: 5, height: 4)
            do {
                let image = try decode(bytes, into: target, limits: limits)
                #expect(image.width * image.height <= limits.resultPixelsMaximum)
                decoded += 1
            } catch {
                failed += 1
            }
        }
        print("mutations with seed \(seed): \(decoded) decoded, \(failed) failed")
        #expect(decoded > 0 && failed > 1_000)
    }

    @Test func `thousands of damaged streams with valid checksums decode or fail without a trap`() throws {
        let seed: UInt64 = 0xBAD_5EED
        var random = SeededGenerator(seed: seed)
        var failed = 0
        for _ in 0..<3_000 {
            let source = PictureFixture.all[random.uniform(in: 0..<PictureFixture.all.count)]
            var chunks = PNGBuilder.chunks(source.bytes)
            let places = chunks.indices.filter { chunks[$0].type == "IDAT" && !chunks[$0].content.isEmpty }
            for _ in 0...random.uniform(in: 0..<3) {
                let place = places[random.uniform(in: 0..<places.count)]
                let count = chunks[place].content.count
                chunks[place].content[random.uniform(in: 0..<count)] = UInt8(random.uniform(in: 0..<256))
            }
            if failure(PNGBuilder.file(chunks)) != nil { failed += 1 }
        }
        print("streams with seed \(seed): \(failed) of 3000 failed")
        #expect(failed > 2_500)
    }

    @Test func `a decompression bomb is rejected by its header before memory is allocated`() throws {
        let fixture = try PictureFixture.named("hand-rgb-8-plain")
        var chunks = PNGBuilder.chunks(fixture.bytes)
        chunks[0].content.replaceSubrange(0..<8, with: [0, 0, 0xFF, 0xFF, 0, 0, 0xFF, 0xFF])
        #expect(failure(PNGBuilder.file(chunks))?.code == .tooLarge)
        chunks[0].content.replaceSubrange(0..<8, with: [0x7F, 0xFF, 0xFF, 0xFF, 0x7F, 0xFF, 0xFF, 0xFF])
        #expect(failure(PNGBuilder.file(chunks))?.code == .tooLarge)
        chunks[0].content.replaceSubrange(0..<8, with: [0, 0, 0, 100, 0, 0, 0, 100])
        let limits = DecodedImage.Limits(resultPixelsMaximum: 9_999)
        #expect(failure(PNGBuilder.file(chunks), limits: limits)?.code == .tooLarge)
    }

    @Test func `an endless stream is read only as far as the picture needs`() throws {
        // The header announces a thousand pixels, and the stream has zeros for a million.
        let body = [UInt8](repeating: 0, count: 1_000_000)
        let file = PNGBuilder.file([
            PNGBuilder.header(width: 10, height: 10, depth: 8, color: 0),
            PNGBuilder.Chunk(type: "IDAT", content: PNGBuilder.stored(body)),
            PNGBuilder.Chunk(type: "IEND", content: []),
        ])
        let image = try decode(file)
        #expect(image.pixels == (0..<100).flatMap { _ in [0, 0, 0, 255] as [UInt8] })
    }

    @Test func `without zlib a PNG is an error that says what to install`() throws {
        let file = PNGBuilder.picture(width: 2, height: 2) { _, _ in (1, 2, 3) }
        let decoder = PNGDecoder(zlib: Zlib.load("libz.so.0.none"))
        for attempt in [
            { try decoder.verify(file) }, { _ = try decoder.decode(file, into: nil, limits: DecodedImage.Limits()) },
        ] as [() throws -> Void] {
            let error = #expect(throws: ImageError.self) { try attempt() }
            #expect(error?.code == .unsupportedFormat && error?.description.contains("zlib1g") == true)
        }
        #expect(decoder.canDecode(file))
    }

    @Test func `a wrong checksum of the decompressed data is found`() throws {
        var stream = PNGBuilder.stored([UInt8](repeating: 0, count: 11 * 10))
        stream[stream.count - 1] ^= 1
        let file = PNGBuilder.file([
            PNGBuilder.header(width: 10, height: 10, depth: 8, color: 0),
            PNGBuilder.Chunk(type: "IDAT", content: stream),
            PNGBuilder.Chunk(type: "IEND", content: []),
        ])
        #expect(failure(file)?.code == .damaged)
    }

    @Test func `the error names an unknown format`() {
        func message(_ bytes: [UInt8]) -> String {
            do {
                return try ([PNGDecoder(), JPEGDecoder()] as [any ImageDecoder]).decoder(for: bytes).name
            } catch {
                #expect(error.code == .unsupportedFormat)
                return error.description
            }
        }
        #expect(message([0xFF, 0xD8, 0xFF, 0xE0]) == "JPEG")
        #expect(message(Array("GIF89a".utf8)).contains("GIF"))
        #expect(message(Array("RIFF....WEBP".utf8)).contains("WebP"))
        #expect(message(Array("<html>".utf8)).contains("error page"))
        #expect(message([1, 2, 0xAB]).contains("01 02 ab"))
        #expect(message([]).contains("no bytes"))
        #expect(message(PNGChunks.signature) == "PNG")
    }
}
