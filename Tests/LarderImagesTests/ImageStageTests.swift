import LarderEvents
import LarderTime
import Synchronization
import TestSupport
import Testing

@testable import LarderDevice
@testable import LarderImages

@Suite("Image stages and idle moments", .oneMinute)
struct ImageStageTests {
    private let url = "http://pictures/a.png"
    private let placeholder = PNGBuilder.picture(width: 2, height: 2) { _, _ in (1, 2, 3) }

    /// An interlaced gray picture in chunks of a hundred bytes.
    private static func interlaced(side: Int) -> [UInt8] {
        var raw: [UInt8] = []
        for pass in Adam7.passes {
            for row in 0..<pass.height(of: side) {
                raw.append(0)
                raw += stride(from: pass.x, to: side, by: pass.stepX).map { UInt8(($0 + row) & 255) }
            }
        }
        let stream = PNGBuilder.stored(raw)
        return PNGBuilder.file(
            [PNGBuilder.header(width: side, height: side, depth: 8, color: 0, interlaced: true)]
                + stride(from: 0, to: stream.count, by: 100).map {
                    PNGBuilder.Chunk(type: "IDAT", content: Array(stream[$0..<min($0 + 100, stream.count)]))
                } + [PNGBuilder.Chunk(type: "IEND", content: [])]
        )
    }

    @Test func `a placeholder comes first, then coarse pictures, then the picture, and only that is kept`() async throws
    {
        let setting = try ImageSetting(pieceLength: 60)
        defer { setting.remove() }
        let gate = Gate()
        setting.server[url] = .init(bytes: Self.interlaced(side: 64), gate: gate)
        let request = ImageRequest(url: url, placeholder: placeholder, wantsPreviews: true)
        let task = setting.pipeline.task(for: request)
        var iterator = task.stages.makeAsyncIterator()
        guard case .placeholder(let tiny)? = try await iterator.next() else {
            Issue.record("The placeholder comes first.")
            return
        }
        #expect(tiny.width == 2 && setting.pipeline.cachedImage(for: request) == nil)
        gate.open()
        var widths: [Int] = []
        while let stage = try await iterator.next() {
            if case .image(let image, let origin) = stage { #expect(image.width == 64 && origin == .network) }
            widths.append(stage.image.width)
        }
        #expect(widths.last == 64 && widths == widths.sorted())
        #expect(setting.pipeline.cachedImage(for: request)?.width == 64)
        // A late reader gets the final stage.
        for try await stage in task.stages { #expect(stage.image.width == 64) }
    }

    @Test func `a placeholder that is no small picture is not decoded on the caller's thread`() throws {
        let setting = try ImageSetting()
        defer { setting.remove() }
        setting.server[url] = .init(bytes: placeholder, gate: Gate())
        for (side, count) in [(257, 0), (256, 1)] {
            let picture = PNGBuilder.picture(width: side, height: side) { _, _ in (1, 2, 3) }
            setting.pipeline.task(for: ImageRequest(url: url, placeholder: picture)).cancel()
            #expect(setting.log.count { if case .placeholder = $0 { true } else { false } } == count)
        }
    }

    @Test func `a preview is shown during the download and never stored`() async throws {
        let fixture = try JPEGFixture.named("pillow-420-progressive")
        let scans = JPEGEditor.markers(0xDA, in: fixture.bytes)
        let setting = try ImageSetting()
        defer { setting.remove() }
        let gate = Gate()
        setting.server[url] = .init(bytes: fixture.bytes, pieceEnds: [scans[1] + 4], pieceGates: [gate])
        let request = ImageRequest(url: url, wantsPreviews: true)
        let task = setting.pipeline.task(for: request)
        var iterator = task.stages.makeAsyncIterator()
        guard case .preview(let coarse)? = try await iterator.next() else {
            Issue.record("A preview comes first.")
            return
        }
        #expect(coarse.width < fixture.width && coarse.sourceWidth == fixture.width)
        #expect(setting.pipeline.cachedImage(for: request) == nil)
        gate.open()
        #expect(try await task.image == fixture.image)
    }

    @Test func `a progressive JPEG is shown in stages as its scans arrive`() async throws {
        let fixture = try JPEGFixture.named("pillow-420-progressive")
        let scans = JPEGEditor.markers(0xDA, in: fixture.bytes)
        let setting = try ImageSetting()
        defer { setting.remove() }
        let (second, last) = (Gate(), Gate())
        setting.server[url] = .init(
            bytes: fixture.bytes,
            pieceEnds: [scans[1] + 4, scans[scans.count - 1] + 4],
            pieceGates: [second, last]
        )
        let task = setting.pipeline.task(for: ImageRequest(url: url, wantsPreviews: true))
        var iterator = task.stages.makeAsyncIterator()
        let coarse = try #require(try await iterator.next())
        second.open()
        let finer = try #require(try await iterator.next())
        last.open()
        guard case .preview(let one) = coarse, case .preview(let two) = finer else {
            Issue.record("Two previews come first: \(coarse), \(finer)")
            return
        }
        #expect(one != two && one.width <= two.width && two != fixture.image)
        #expect(try await iterator.next()?.image == fixture.image)
        #expect(try await iterator.next() == nil)
    }

    @Test func `previews are decodes, and one that took long is the last of its picture`() async throws {
        let decoder = PreviewingDecoder()
        let setting = try ImageSetting {
            $0.decoders = [decoder]
            $0.decodesMaximum = 1
        }
        defer { setting.remove() }
        decoder.onPreview { [clock = setting.clock, pipeline = setting.pipeline] in
            clock.advance(by: .milliseconds(251))
            return pipeline.state.withLock { $0.runningDecodes }
        }
        let gate = Gate()
        setting.server[url] = .init(
            bytes: PlainDecoder.file(width: 4, height: 4, gray: 9) + [UInt8](repeating: 5, count: 5_000),
            bodyGate: gate
        )
        let task = setting.pipeline.task(for: ImageRequest(url: url, wantsPreviews: true))
        var iterator = task.stages.makeAsyncIterator()
        guard case .preview? = try await iterator.next() else {
            Issue.record("A preview comes first.")
            return
        }
        gate.open()
        #expect(try await task.image.width == 4)
        #expect(decoder.running == [1])
        #expect(setting.pipeline.state.withLock { $0.runningDecodes } == 0)
    }

    @Test func `a preview of a progressive JPEG is made of the scans that are there`() async throws {
        let fixture = try JPEGFixture.named("pillow-420-progressive")
        let scans = JPEGEditor.markers(0xDA, in: fixture.bytes)
        let setting = try ImageSetting(pieceLength: scans[3] + 4)
        defer { setting.remove() }
        let gate = Gate()
        setting.server[url] = .init(bytes: fixture.bytes, bodyGate: gate)
        let task = setting.pipeline.task(for: ImageRequest(url: url, wantsPreviews: true))
        var iterator = task.stages.makeAsyncIterator()
        guard case .preview(let coarse)? = try await iterator.next() else {
            Issue.record("A preview comes first.")
            return
        }
        let start = Array(fixture.bytes[..<(scans[3] + 4)])
        let expected = JPEGDecoder().preview(start, beyond: 0, into: nil, limits: DecodedImage.Limits())
        #expect(coarse == expected?.image && expected?.detail == 3)
        gate.open()
        #expect(try await task.image == fixture.image)
    }

    @Test func `releasing the stages cancels the request`() async throws {
        let setting = try ImageSetting()
        defer { setting.remove() }
        setting.server[url] = .init(bytes: placeholder, gate: Gate())
        for try await stage in setting.pipeline.stages(for: ImageRequest(url: url, placeholder: placeholder)) {
            if case .placeholder = stage { break }
        }
        #expect(setting.log.cancelled == 1 && setting.pipeline.workload == (0, 0))
    }

    @Test func `lower quality makes smaller pictures, and returns full ones in memory`() async throws {
        let setting = try ImageSetting()
        defer { setting.remove() }
        let picture = PNGBuilder.picture(width: 40, height: 40) { (UInt8($0), UInt8($1), 0) }
        for name in ["a", "b"] { setting.server[name] = .init(bytes: picture) }
        func request(_ name: String) -> ImageRequest {
            ImageRequest(url: name, target: ImageTarget(width: 20, height: 20))
        }
        _ = try await setting.pipeline.image(for: request("a"))
        setting.pipeline.setQuality(0.5)
        #expect(try await setting.pipeline.image(for: request("a")).width == 20)
        #expect(try await setting.pipeline.image(for: request("b")).width == 10)
        setting.pipeline.setQuality(1)
        #expect(try await setting.pipeline.image(for: request("b")).width == 20)
    }

    // MARK: Idle

    private func finishDownloads(_ setting: ImageSetting, _ count: Int) async {
        await setting.log.wait { $0.count { if case .downloadFinished = $0 { true } else { false } } == count }
    }

    @Test func `decoding waits while the user interacts, except for pictures in view`() async throws {
        let clock = ManualClock()
        let idle = IdleScheduler(countMaximum: 1, clock: clock)
        let setting = try ImageSetting { $0.submitWhenIdle = { idle.submit(isWanted: $0, run: $1) } }
        defer { setting.remove() }
        for name in ["a", "b", "c", "d"] { setting.server[name] = .init(bytes: placeholder) }
        idle.interacted()
        let tasks = ["a", "b", "c"].map { setting.pipeline.task(for: ImageRequest(url: $0)) }
        #expect(try await setting.pipeline.image(for: ImageRequest(url: "d", priority: .high)).width == 2)
        await finishDownloads(setting, 4)
        tasks[1].cancel()
        #expect(setting.log.decodes == 1)
        let moving = Task {
            while !Task.isCancelled {
                try await clock.waitForSleepers()
                clock.advance(by: .milliseconds(100))
            }
        }
        #expect(try await tasks[0].image.width == 2)
        #expect(try await tasks[2].image.width == 2)
        #expect(setting.log.decodes == 3)
        moving.cancel()
    }

    @Test func `no download starts while many bytes wait to be decoded, except for a more urgent picture`() async throws
    {
        let (idle, more) = AsyncStream.makeStream(of: (@Sendable () -> Void).self)
        let setting = try ImageSetting(pieceLength: 1 << 20) {
            $0.disk = nil
            $0.decoders = [PlainDecoder()]
            $0.loadsMaximum = 1
            $0.submitWhenIdle = { _, start in more.yield(start) }
        }
        defer { setting.remove() }
        let file = PlainDecoder.file(width: 2, height: 2, gray: 9) + [UInt8](repeating: 0, count: 12 << 20)
        let names = ["a", "b", "c", "d", "e"]
        for name in names + ["seen"] { setting.server[name] = .init(bytes: file) }
        let tasks = names.map { setting.pipeline.task(for: ImageRequest(url: $0)) }
        var starts: [@Sendable () -> Void] = []
        var iterator = idle.makeAsyncIterator()
        while starts.count < 3, let start = await iterator.next() { starts.append(start) }
        #expect(setting.pipeline.state.withLock { $0.runningLoads } == 0)
        #expect(setting.server.requests.count == 3 && setting.pipeline.workload.loads == 2)
        #expect(try await setting.pipeline.image(for: ImageRequest(url: "seen", priority: .high)).width == 2)
        #expect(setting.server.requests.count == 4)
        for start in starts { start() }
        for _ in 0..<2 { await iterator.next()?() }
        for task in tasks { #expect(try await task.image.width == 2) }
    }

    @Test func `decoding waits for nothing if no interaction was ever reported`() async throws {
        let clock = ManualClock()
        let idle = IdleScheduler(clock: clock)
        let setting = try ImageSetting { $0.submitWhenIdle = { idle.submit(isWanted: $0, run: $1) } }
        defer { setting.remove() }
        for name in ["a", "b", "c", "d"] {
            setting.server[name] = .init(bytes: placeholder)
            #expect(try await setting.pipeline.image(for: ImageRequest(url: name)).width == 2)
        }
        #expect(clock.nextWakeUp == nil)
    }
}

/// Decodes previews and notes how many decodes run meanwhile.
private final class PreviewingDecoder: ProgressiveImageDecoder {
    private struct State {
        var onPreview: @Sendable () -> Int = { 0 }
        var running: [Int] = []
    }

    private let state = Mutex(State())
    private let plain = PlainDecoder()

    let name = "Previewing"

    var running: [Int] { state.withLock { $0.running } }

    func onPreview(_ body: @escaping @Sendable () -> Int) { state.withLock { $0.onPreview = body } }

    func canDecode(_ start: [UInt8]) -> Bool { plain.canDecode(start) }

    func decode(
        _ bytes: [UInt8],
        into target: ImageTarget?,
        limits: DecodedImage.Limits
    ) throws(ImageError) -> DecodedImage {
        try plain.decode(bytes, into: target, limits: limits)
    }

    func preview(
        _ start: [UInt8],
        beyond detail: Int,
        into target: ImageTarget?,
        limits: DecodedImage.Limits
    ) -> (image: DecodedImage, detail: Int)? {
        let running = state.withLock { $0.onPreview }()
        state.withLock { $0.running.append(running) }
        let pixels = [UInt8](repeating: 1, count: 4)
        return (DecodedImage(width: 1, height: 1, pixels: pixels), detail + 1)
    }
}
