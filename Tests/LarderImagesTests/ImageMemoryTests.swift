import LarderHTTP
import LarderTime
import Synchronization
import TestSupport
import Testing

@testable import Larder
@testable import LarderDevice
@testable import LarderEvents
@testable import LarderImages
@testable import LarderMemory
@testable import LarderStorage

/// Pictures in memory: eviction order, re-creation cost and memory pressure.
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

    /// What a client does with its pictures.
    private func reaction(_ pipeline: ImagePipeline) throws -> MemoryReaction {
        let limits = LimitController(pipeline, try LarderCache(CacheConfiguration()))
        return MemoryReaction(
            "client",
            measure: { limits.usage() },
            stop: { limits.stopWork(for: $0) },
            release: { limits.releaseMemory(for: $0) }
        )
    }

    @Test func `a small picture stays while large ones pass, and is evicted when it was unused for long`() async throws
    {
        // No time passes, so that all pictures have the same effort. The first one has an eighth of the pixels.
        func isThere(after count: Int) async throws -> Bool {
            let setting = try setting(count) { $0.memoryBytesMaximum = 3_200 }
            defer { setting.remove() }
            let small = PNGBuilder.picture(width: 8, height: 4) { (UInt8($0), UInt8($1), 1) }
            setting.server[url(0)]?.bytes = small
            for number in 0..<count { _ = try await setting.pipeline.image(for: ImageRequest(url: url(number))) }
            return setting.pipeline.cachedImage(for: ImageRequest(url: url(0))) != nil
        }
        #expect(try await isThere(after: 12))
        #expect(try await !isThere(after: 60))
    }

    @Test func `a picture that was loaded earlier does not take the place of a newer one`() async throws {
        let (idle, more) = AsyncStream.makeStream(of: (@Sendable () -> Void).self)
        let setting = try setting(1) { $0.submitWhenIdle = { _, start in more.yield(start) } }
        defer { setting.remove() }
        let old = setting.pipeline.task(for: ImageRequest(url: url(0)))
        var iterator = idle.makeAsyncIterator()
        let decodeOld = await iterator.next()
        setting.clock.advance(by: .seconds(1))
        setting.server[url(0)]?.bytes = picture(9)
        setting.server[url(0)]?.tag = "\"v2\""
        let reload = ImageRequest(url: url(0), priority: .high, cache: [.skipMemoryRead, .skipDiskRead])
        let new = try await setting.pipeline.image(for: reload)
        decodeOld?()
        #expect(try await old.image != new)
        #expect(setting.pipeline.cachedImage(for: ImageRequest(url: url(0))) == new)
    }

    @Test func `the score is effort per byte`() {
        func score(_ pixels: Int, _ effort: Int) -> Double {
            let image = DecodedImage(width: pixels, height: 1, pixels: [UInt8](repeating: 0, count: pixels * 4))
            return MemoryPicture(image: image, contentID: "", freshness: nil, effort: .milliseconds(effort)).score
        }
        #expect(score(250, 9) == 10_000)
        #expect(score(2_500, 9) == 1_000)
        #expect(score(250, 99) == 100_000)
    }

    @Test func `under pressure memory falls and stays low, and recovers step by step`() async throws {
        let setting = try setting(20) { $0.memoryBytesMaximum = 10_240 }
        defer { setting.remove() }
        let source = MemoryGuard.ManualSource()
        let memory = MemoryGuard(source: source, clock: setting.clock)
        let registration = memory.register(try reaction(setting.pipeline))
        func scroll() async throws {
            for number in 0..<20 { _ = try await setting.pipeline.image(for: ImageRequest(url: url(number))) }
        }
        try await scroll()
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
        withExtendedLifetime(registration) {}
    }

    @Test func `pending loads are cancelled, except for visible pictures`() async throws {
        let gate = Gate()
        let setting = try setting(6) { $0.loadsMaximum = 2 }
        defer { setting.remove() }
        for number in 0..<6 { setting.server[url(number)]?.gate = gate }
        let looked = setting.pipeline.task(for: ImageRequest(url: url(0), priority: .high))
        let others = (1..<6).map { setting.pipeline.task(for: ImageRequest(url: url($0))) }
        let source = MemoryGuard.ManualSource()
        let memory = MemoryGuard(source: source, clock: setting.clock)
        let registration = memory.register(try reaction(setting.pipeline))
        source.signal(.warning)
        #expect(setting.pipeline.workload.loads == 1)
        for task in others { await #expect(throws: ImageError.self) { try await task.image } }
        gate.open()
        #expect(try await looked.image.width > 0)
        withExtendedLifetime(registration) {}
    }
}
