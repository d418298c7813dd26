import LarderHTTP
import LarderTime
import Synchronization
import TestSupport
import Testing

@testable import Larder

/// What memory keeps of pictures, what leaves it first, where that goes, and what pressure does.
@Suite("Image pipeline, memory", .oneMinute)
struct ImageMemoryTests {
    /// 1,024 bytes of pixels.
    private func picture(_ shade: Int) -> [UInt8] {
        PNGBuilder.picture(width: 16, height: 16) { (UInt8($0 * 10), UInt8($1 * 10), UInt8(shade)) }
    }

    private func url(_ number: Int) -> String { "http://pictures/\(number).png" }

    private func setting(
        _ count: Int,
        _ change: (inout ImagePipeline.Configuration) -> Void
    ) throws -> ImageSetting {
        let setting = try ImageSetting(change)
        for number in 0..<count {
            setting.server[url(number)] = .init(bytes: picture(number), fields: [.cacheControl: "max-age=3600"])
        }
        return setting
    }

    @Test func `what was cheap to get again leaves before what was dear, however old that is`() async throws {
        // The first is dear. Three fit.
        let setting = try setting(12) { configuration in
            configuration.memory = .init(small: 3_072, large: 0, threshold: 1 << 20)
            configuration.score = { worth in Double(worth.fileByteCount) }
        }
        defer { setting.remove() }
        let padding = [UInt8](repeating: 0, count: 200_000)
        setting.server[url(0)]?.bytes = PNGBuilder.padded(picture(0), padding)
        for number in 0..<12 { _ = try await setting.pipeline.image(for: ImageRequest(url: url(number))) }
        let kept = (0..<12).filter { setting.pipeline.cachedImage(for: ImageRequest(url: url($0))) != nil }
        #expect(kept == [0, 10, 11])
    }

    @Test func `by default the effort for each byte is what counts, and the disk makes things cheap`() {
        func worth(_ bytes: Int, decode: Int, load: Int, isOnDisk: Bool) -> Double {
            ImageWorth(
                byteCount: bytes,
                fileByteCount: 1,
                isOnDisk: isOnDisk,
                loadTime: .milliseconds(load),
                decodeTime: .milliseconds(decode)
            ).effortForSize
        }
        let usual = worth(1_000, decode: 9, load: 90, isOnDisk: true)
        #expect(usual == 10_000)
        #expect(worth(10_000, decode: 9, load: 90, isOnDisk: true) < usual)
        #expect(worth(1_000, decode: 0, load: 90, isOnDisk: true) < usual)
        #expect(worth(1_000, decode: 9, load: 90, isOnDisk: false) == 100_000)
    }

    @Test func `pixels that leave memory come back from disk without being decoded, if their file may be shown`()
        async throws
    {
        let packed = Mutex((in: 0, out: 0))
        let setting = try setting(2) { configuration in
            configuration.memory = .init(small: 1_024, large: 0, threshold: 1 << 20)
            var rules = ImageSpillRules()
            rules.isWorthIt = { _ in true }
            rules.compress = { bytes in
                packed.withLock { $0.in += 1 }
                return bytes.reversed()
            }
            rules.decompress = { bytes in
                packed.withLock { $0.out += 1 }
                return bytes.reversed()
            }
            configuration.spill = rules
        }
        defer { setting.remove() }
        let (first, second) = (ImageRequest(url: url(0)), ImageRequest(url: url(1)))
        let shown = try await setting.pipeline.image(for: first)
        _ = try await setting.pipeline.image(for: second)
        await setting.pipeline.spill?.flush()
        #expect(setting.pipeline.cachedImage(for: first) == nil)
        #expect(try await setting.pipeline.image(for: first) == shown)
        #expect(setting.log.decodes == 2 && packed.withLock { $0.in >= 1 && $0.out == 1 })
        // The other one went to the disk for it. Its file changes: those pixels are nobody's any more.
        await setting.pipeline.spill?.flush()
        setting.server[url(1)]?.bytes = picture(200)
        setting.server[url(1)]?.tag = "\"v2\""
        setting.clock.advance(by: .seconds(3_601))
        let expected = try PNGDecoder().decode(picture(200), into: nil, limits: ImageDecodingLimits())
        #expect(try await setting.pipeline.image(for: second) == expected)
        #expect(setting.log.decodes == 3)
        setting.pipeline.removeAll()
        await setting.pipeline.spill?.flush()
        #expect(try setting.disk.statistics().items == 0)
    }

    @Test func `under pressure memory falls and stays down, and comes back step by step`() async throws {
        let setting = try setting(20) { $0.memory = .init(small: 8_192, large: 2_048, threshold: 1 << 20) }
        defer { setting.remove() }
        let source = ManualMemorySource()
        let memory = MemoryGuard(source: source, clock: setting.clock)
        let registration = memory.register(ImagePipelineReactor(setting.pipeline))
        func scroll() async throws {
            for number in 0..<20 { _ = try await setting.pipeline.image(for: ImageRequest(url: url(number))) }
        }
        try await scroll()
        // What belongs to large ones is lent.
        #expect(setting.pipeline.memoryCost == 10_240)
        source.signal(.warning)
        #expect(setting.pipeline.memoryCost == 5_120)
        try await scroll()
        #expect(setting.pipeline.memoryCost <= 5_120)
        source.signal(.critical)
        #expect(setting.pipeline.memoryCost == 0)
        try await scroll()
        #expect(setting.pipeline.memoryCost == 0)
        source.signal(.normal)
        var costs: [Int] = []
        for seconds in [5, 5, 10, 20] {
            setting.clock.advance(by: .seconds(seconds))
            memory.tick()
            try await scroll()
            costs.append(setting.pipeline.memoryCost)
        }
        #expect(costs == [2_048, 5_120, 7_168, 10_240])
        _ = registration
    }

    @Test func `under pressure loads are given up, but for what somebody looks at`() async throws {
        let gate = Gate()
        let setting = try setting(6) { $0.loadsMaximum = 2 }
        defer { setting.remove() }
        for number in 0..<6 { setting.server[url(number)]?.gate = gate }
        let looked = setting.pipeline.task(for: ImageRequest(url: url(0), priority: .high))
        let others = (1..<6).map { setting.pipeline.task(for: ImageRequest(url: url($0))) }
        let source = ManualMemorySource()
        let memory = MemoryGuard(source: source, clock: setting.clock)
        let registration = memory.register(ImagePipelineReactor(setting.pipeline))
        source.signal(.warning)
        #expect(setting.pipeline.workload.loads == 1)
        for task in others { await #expect(throws: ImageError.self) { try await task.image } }
        gate.open()
        #expect(try await looked.image.width > 0)
        _ = registration
    }
}
