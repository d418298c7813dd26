import Larder
import LarderTime
import TestSupport
import Testing

@testable import LarderImages
@testable import LarderTelemetry

@Suite("Image pipeline events", .oneMinute)
struct ImageStageEventsTests {
    /// Takes three seconds of the test's clock.
    private struct SlowDecoder: ImageDecoder {
        let clock: ManualClock
        var name: String { "slow" }
        func canDecode(_ start: [UInt8]) -> Bool { PNGDecoder().canDecode(start) }
        func verify(_ bytes: [UInt8]) throws(ImageError) { try PNGDecoder().verify(bytes) }
        func decode(
            _ bytes: [UInt8],
            into target: ImageTarget?,
            limits: DecodedImage.Limits
        ) throws(ImageError) -> DecodedImage {
            let image = try PNGDecoder().decode(bytes, into: target, limits: limits)
            if image.width > 2 { clock.advance(by: .seconds(3)) }
            return image
        }
    }

    @Test func `every stage of a picture is reported in order with its duration`() async throws {
        let clock = ManualClock()
        let setting = try ImageSetting {
            $0.decoders = [SlowDecoder(clock: clock)]
            $0.uptime = clock
        }
        defer { setting.remove() }
        let url = "http://pictures/a.png"
        setting.server[url] = .init(bytes: PNGBuilder.picture(width: 24, height: 16) { (UInt8($0), UInt8($1), 7) })
        let tiny = PNGBuilder.picture(width: 2, height: 2) { (UInt8($0), UInt8($1), 7) }
        let request = ImageRequest(url: url, placeholder: tiny)
        let task = setting.pipeline.task(for: request)
        _ = try await task.image
        await setting.log.wait { events in
            events.contains { if case .delivered = $0 { true } else { false } }
        }
        let told = setting.log.events.compactMap { event -> String? in
            switch event {
            case .placeholder: "placeholder"
            case .downloadFinished: "download"
            case .decodeBegan: "wait"
            case .decoded(_, _, _, let duration): "decode \(duration)"
            case .delivered(_, let origin, let duration, _): "\(origin) \(duration)"
            default: nil
            }
        }
        #expect(told == ["placeholder", "download", "wait", "decode 3.0 seconds", "network 3.0 seconds"])
        let telemetry = Telemetry(wall: setting.clock, monotonic: setting.clock)
        for event in setting.log.events { telemetry.record(event) }
        #expect(telemetry.totals.images[.delivered]?.maximum == .seconds(3))
        #expect(telemetry.totals.images[.decodeWait]?.count == 1 && telemetry.totals.images[.placeholder]?.count == 1)
    }

    @Test func `events tell prefetching from wanted pictures, and their totals are apart`() async throws {
        let setting = try ImageSetting { $0.loadsMaximum = 1 }
        defer { setting.remove() }
        let (ahead, joined, wanted) = ("http://pictures/a.png", "http://pictures/b.png", "http://pictures/c.png")
        for url in [ahead, joined, wanted] {
            setting.server[url] = .init(bytes: PNGBuilder.picture(width: 4, height: 4) { (UInt8($0), UInt8($1), 7) })
        }
        func prefetch(_ url: String) -> ImageTask {
            setting.pipeline.task(for: ImageRequest(url: url, priority: .prefetch))
        }
        _ = try await prefetch(ahead).image
        setting.pipeline.pausePrefetch()
        let later = prefetch(joined)
        _ = try await setting.pipeline.image(for: ImageRequest(url: joined))
        _ = try await later.image
        _ = try await setting.pipeline.image(for: ImageRequest(url: wanted))
        _ = try await setting.pipeline.image(for: ImageRequest(url: ahead))
        setting.pipeline.resumePrefetch()
        _ = try await prefetch(wanted).image
        let told = setting.log.events.compactMap { event -> String? in
            switch event {
            case .downloadStarted(let url, _, let isPrefetch): "start \(url.suffix(5).prefix(1)) \(isPrefetch)"
            case .downloadFinished(let url, _, _, let isPrefetch): "end \(url.suffix(5).prefix(1)) \(isPrefetch)"
            case .hit(let url, let tier, let isPrefetch): "\(tier) \(url.suffix(5).prefix(1)) \(isPrefetch)"
            default: nil
            }
        }
        #expect(
            told == [
                "start a true", "end a true", "start b false", "end b false", "start c false", "end c false",
                "memory a false", "memory c true",
            ]
        )
        let telemetry = Telemetry(wall: setting.clock, monotonic: setting.clock)
        for event in setting.log.events { telemetry.record(event) }
        let totals = telemetry.totals
        #expect(totals.images[.download]?.count == 2 && totals.prefetchedImages[.download]?.count == 1)
        #expect(totals.features["images"]?.reads[.memory]?.hits == 1)
        #expect(totals.features["images"]?.reads[.memory]?.misses == 2)
        #expect(totals.features["images.prefetch"]?.reads[.memory]?.hits == 1)
        #expect(totals.features["images.prefetch"]?.reads[.disk]?.misses == 1)
    }
}
