import LarderTime
import TestSupport
import Testing

@testable import LarderImages

@Suite("JPEG decoder, damaged and hostile files", .oneMinute)
struct JPEGDamageTests {
    /// The error of decoding, or nil where it works.
    private func failure(_ bytes: [UInt8], limits: DecodedImage.Limits = DecodedImage.Limits()) -> ImageError? {
        do {
            _ = try JPEGDecoder().decode(bytes, into: nil, limits: limits)
            return nil
        } catch {
            return error
        }
    }

    private func decode(_ bytes: [UInt8]) throws -> DecodedImage {
        try JPEGDecoder().decode(bytes, into: nil, limits: DecodedImage.Limits())
    }

    // MARK: Rejected

    @Test(arguments: [
        (0xC3, "lossless"), (0xC5, "hierarchical"), (0xC9, "arithmetically"), (0xCA, "arithmetically"),
        (0xCB, "arithmetically"), (0xC8, "unknown"),
    ])
    func `unsupported processes are named`(_ marker: UInt8, _ name: String) throws {
        for fixture in ["pillow-420", "pillow-420-progressive"] {
            var file = try JPEGFixture.named(fixture).bytes
            file[JPEGEditor.frame(of: file) + 1] = marker
            let error = try #require(failure(file))
            #expect(error.code == .unsupportedFormat && error.description.contains(name))
            let second = #expect(throws: ImageError.self) { try JPEGDecoder().verify(file) }
            #expect(second?.code == error.code && second?.description == error.description)
        }
    }

    @Test func `other depths, component counts and a height behind the data are rejected`() throws {
        let file = try JPEGFixture.named("pillow-420").bytes
        let frame = JPEGEditor.frame(of: file)
        func changed(_ offset: Int, _ value: UInt8) -> [UInt8] {
            var file = file
            file[frame + offset] = value
            return file
        }
        let deep = try #require(failure(changed(4, 12)))
        #expect(deep.code == .unsupportedFormat && deep.description.contains("12 bits"))
        #expect(failure(changed(4, 9))?.code == .damaged)
        let tall = try #require(failure(JPEGEditor.resized(file, width: 35, height: 0)))
        #expect(tall.code == .unsupportedFormat && tall.description.contains("height"))
        #expect(failure(JPEGEditor.resized(file, width: 0, height: 19))?.code == .damaged)
        let two = try #require(failure(changed(9, 2)))
        #expect(two.code == .unsupportedFormat && two.description.contains("2 components"))
        // Sampling factors, a table that is not there, and the same component twice.
        for (offset, value) in [(11, 0x51), (11, 0x02), (12, 3), (13, 1)] as [(Int, UInt8)] {
            #expect(failure(changed(offset, value))?.code == .damaged, "byte \(offset)")
        }
    }

    @Test func `a large picture is rejected by its header before memory is allocated`() throws {
        for name in ["pillow-420", "pillow-420-progressive"] {
            let file = JPEGEditor.resized(try JPEGFixture.named(name).bytes, width: 65_535, height: 65_535)
            #expect(failure(file)?.code == .tooLarge)
        }
        let file = try JPEGFixture.named("pillow-420-progressive").bytes
        #expect(failure(file, limits: DecodedImage.Limits(resultPixelsMaximum: 35 * 19 - 1))?.code == .tooLarge)
        // 3 × 2 units of 6 blocks of 128 bytes.
        let least = 6 * 6 * 128
        #expect(failure(file, limits: DecodedImage.Limits(workingBytesMaximum: least)) == nil)
        let error = try #require(failure(file, limits: DecodedImage.Limits(workingBytesMaximum: least - 1)))
        #expect(error.code == .tooLarge && error.description.contains("\(least)"))
    }

    @Test func `too many scans are rejected`() throws {
        let file = try JPEGFixture.named("pillow-420-progressive").bytes
        let scans = JPEGEditor.markers(0xDA, in: file)
        let scan = file[scans[1]..<scans[2]]
        let end = file.count - 2
        func repeated(_ count: Int) -> [UInt8] {
            Array(file[..<end] + repeatElement(scan, count: count).joined() + file[end...])
        }
        #expect(failure(repeated(JPEGFile.scansMaximum))?.code == .tooLarge)
        #expect(failure(repeated(2))?.code != .tooLarge)
    }

    @Test func `every proper prefix of a file is reported as truncated`() throws {
        for name in ["pillow-420", "pillow-420-progressive", "pillow-orientation-6", "pillow-restarts"] {
            let file = try JPEGFixture.named(name).bytes
            for count in 0..<file.count {
                let start = Array(file.prefix(count))
                #expect(failure(start)?.code == .truncated, "\(name), \(count) bytes")
                #expect(throws: ImageError.self) { try JPEGDecoder().verify(start) }
            }
        }
    }

    @Test func `data that ends too soon is damaged`() throws {
        for name in ["pillow-444", "pillow-420-progressive", "cjpeg-scans-components"] {
            let file = try JPEGFixture.named(name).bytes
            let start = try #require(JPEGEditor.markers(0xDA, in: file).first)
            // The scan's data goes on behind its header.
            let data = start + 2 + Int(file[start + 3])
            #expect(failure(Array(file[..<(data + 9)] + [0xFF, 0xD9]))?.code == .damaged, "\(name)")
        }
    }

    @Test func `a few bytes behind the last block are ignored, and many are not`() throws {
        let fixture = try JPEGFixture.named("pillow-444")
        let end = fixture.bytes.count - 2
        func padded(_ count: Int) -> [UInt8] {
            Array(fixture.bytes[..<end] + [UInt8](repeating: 7, count: count) + fixture.bytes[end...])
        }
        #expect(try decode(padded(200)).pixels == fixture.pixels)
        #expect(failure(padded(300))?.code == .damaged)
        // Behind the end anything may follow.
        #expect(try decode(fixture.bytes + padded(900)).pixels == fixture.pixels)
    }

    // MARK: Restart markers

    @Test func `damage, and lost or repeated restart markers, are found`() throws {
        let file = try JPEGFixture.named("pillow-restarts").bytes
        let markers = JPEGEditor.restarts(in: file)
        #expect(markers.count == 5)
        // The second unit, whose codes become ones, which is no code.
        var damaged = file
        for place in (markers[0] + 2)..<(markers[1] - 1) where (place - markers[0]) % 2 == 0 { damaged[place] = 0xFE }
        var lost = file
        lost.removeSubrange((markers[1] + 2)..<(markers[2] + 2))
        var repeated = file
        repeated.insert(contentsOf: [0xFF, 0xD1], at: markers[2])
        for bytes in [damaged, lost, repeated, Array(file[..<markers[3]] + [0xFF, 0xD9])] {
            #expect(failure(bytes)?.code == .damaged)
        }
    }

    @Test func `a progressive file without one of its restart markers is damaged`() throws {
        var file = try JPEGFixture.named("pillow-restarts-progressive").bytes
        let marker = try #require(JPEGEditor.restarts(in: file).first)
        file.removeSubrange(marker..<(marker + 2))
        #expect(failure(file)?.code == .damaged)
    }

    // MARK: Mutations

    @Test func `many damaged files decode or fail without a trap`() {
        let seed = seeds(1).lowerBound
        var random = SeededGenerator(seed: seed)
        var (decoded, failed, previews) = (0, 0, 0)
        let limits = DecodedImage.Limits(sourcePixelsMaximum: 100_000, resultPixelsMaximum: 100_000)
        let fixtures = JPEGFixture.all
        for round in 0..<1_200 {
            var bytes = fixtures[random.uniform(in: 0..<fixtures.count)].bytes
            // Two of three in the coded data, which most of the decoder reads.
            let start = round % 3 == 0 ? 0 : JPEGEditor.markers(0xDA, in: bytes).first ?? 0
            for _ in 0...random.uniform(in: 0..<4) {
                let place = random.uniform(in: start..<bytes.count)
                switch random.uniform(in: 0..<5) {
                case 0: bytes.remove(at: place)
                case 1: bytes.insert(UInt8(random.uniform(in: 0..<256)), at: place)
                case 2: bytes[place] = UInt8(random.uniform(in: 0..<256))
                case 3: bytes.swapAt(place, random.uniform(in: start..<bytes.count))
                default: bytes[place] ^= 1 << UInt8(random.uniform(in: 0..<8))
                }
            }
            let target = round % 2 == 0 ? nil : ImageTarget(width: 1 + round % 40, height: 9, mode: .fill)
            do {
                let image = try JPEGDecoder().decode(bytes, into: target, limits: limits)
                #expect(image.width * image.height <= limits.resultPixelsMaximum)
                decoded += 1
            } catch {
                failed += 1
            }
            if JPEGDecoder().preview(bytes, beyond: 0, into: target, limits: limits) != nil { previews += 1 }
        }
        print("mutations with seed \(seed): \(decoded) decoded, \(failed) failed, \(previews) previews")
        #expect(decoded > 200 && failed > 200 && previews > 0)
    }

    @Test func `any frame header over valid data decodes or fails without a trap`() throws {
        let seed = seeds(1).lowerBound
        var random = SeededGenerator(seed: seed)
        let limits = DecodedImage.Limits(sourcePixelsMaximum: 20_000, workingBytesMaximum: 1 << 20)
        var decoded = 0
        let fixtures = JPEGFixture.all
        for round in 0..<1_200 {
            var file = fixtures[random.uniform(in: 0..<fixtures.count)].bytes
            file = JPEGEditor.resized(file, width: random.uniform(in: 1..<140), height: random.uniform(in: 1..<140))
            let frame = JPEGEditor.frame(of: file)
            for component in 0..<Int(file[frame + 9]) where round % 2 == 0 {
                file[frame + 11 + 3 * component] = UInt8(random.uniform(in: 1..<5) << 4 | random.uniform(in: 1..<5))
            }
            let target = round % 3 == 0 ? nil : ImageTarget(width: 1 + round % 30, height: 1 + round % 11)
            if (try? JPEGDecoder().decode(file, into: target, limits: limits)) != nil { decoded += 1 }
        }
        print("frame headers with seed \(seed): \(decoded) decoded")
        #expect(decoded > 20)
    }
}
