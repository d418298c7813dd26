import LarderEvents
import LarderStorage
import LarderTime
import Synchronization
import TestSupport
import Testing

@testable import LarderImages

@Suite("Image pipeline: where the disk is used", .oneMinute)
struct ImageThreadTests {
    /// Counts the calls that come on threads for the disk, and the others.
    private final class NotingTransform: DiskStore.PayloadTransform {
        let calls = Mutex((disk: 0, others: 0))
        let identifier = "noting"

        private func note() {
            calls.withLock { if DiskExecutor.isCurrentThread { $0.disk += 1 } else { $0.others += 1 } }
        }

        func encode(_ payload: [UInt8]) throws -> [UInt8] {
            note()
            return payload
        }

        func decode(_ stored: [UInt8]) throws -> [UInt8] {
            note()
            return stored
        }
    }

    @Test func `the store is used on threads for the disk alone`() async throws {
        let scratch = try ScratchDirectory()
        let clock = ManualClock()
        let transform = NotingTransform()
        var store = DiskStore.Configuration(directory: scratch.path, clock: clock)
        store.transform = transform
        let disk = try DiskStore(store)
        transform.calls.withLock { $0 = (0, 0) }
        let server = PictureServer()
        let picture = PNGBuilder.picture(width: 24, height: 16) { (UInt8($0 * 10), UInt8($1 * 10), 7) }
        let urls = ["a", "b", "c"].map { "http://pictures/\($0).png" }
        func pipeline() -> ImagePipeline {
            var configuration = ImagePipeline.Configuration(transport: server, disk: disk)
            configuration.clock = clock
            configuration.uptime = NoWaitClock(clock)
            return ImagePipeline(configuration)
        }
        for url in urls { server[url] = .init(bytes: picture, breaks: [300]) }
        for url in urls { _ = try await pipeline().image(for: ImageRequest(url: url)) }
        // From disk, by a 304, and anew after damage.
        let later = pipeline()
        _ = try await later.image(for: ImageRequest(url: urls[0]))
        clock.advance(by: .seconds(100))
        _ = try await later.image(for: ImageRequest(url: urls[1]))
        await later.removeAll()
        _ = try await later.image(for: ImageRequest(url: urls[2]))
        let calls = transform.calls.withLock { $0 }
        #expect(calls.disk > 10 && calls.others == 0, "\(calls)")
        withExtendedLifetime(scratch) {}
    }
}
