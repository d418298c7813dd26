import Foundation
import Larder
import LarderImages
import LarderServer
import LarderStorage
import LarderTime
import LarderTransport
import Synchronization
import TestSupport
import Testing

@testable import LarderDemo

@Suite("Images, end to end", .oneMinute)
struct ImageTests {
    /// A server with real images, and a pipeline with its own store.
    private final class Setting {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("larder-\(UUID().uuidString)")
            .path
        let backend: MockBackend
        let disk: DiskStore
        let events = Events()

        init() throws {
            backend = try MockBackend.startWithImages(people: 10, posts: 20)
            disk = try DiskStore(DiskStore.Configuration(directory: directory))
        }

        deinit { try? FileManager.default.removeItem(atPath: directory) }

        func pipeline(_ change: (inout ImagePipeline.Configuration) -> Void = { _ in }) -> ImagePipeline {
            var configuration = ImagePipeline.Configuration(
                transport: SocketTransport(clock: ManualClock()),
                disk: disk
            )
            configuration.retry.base = .zero
            let events = events
            configuration.onEvent = { events.add($0) }
            change(&configuration)
            return ImagePipeline(configuration)
        }

        func url(_ id: String, width: Int) -> String { "\(backend.url)/v1/images/\(id)?width=\(width)" }

        func file(_ name: String) throws -> [UInt8] {
            [UInt8](try Data(contentsOf: URL(fileURLWithPath: "\(MockBackend.fixtures)/images/\(name)")))
        }
    }

    private final class Events: Sendable {
        private let list = Mutex<[ImagePipeline.Event]>([])

        func add(_ event: ImagePipeline.Event) { list.withLock { $0.append(event) } }

        var offsets: [Int] {
            list.withLock { $0 }.compactMap { if case .downloadStarted(_, let offset, _) = $0 { offset } else { nil } }
        }

        var damaged: Int { list.withLock { $0 }.count { if case .damaged = $0 { true } else { false } } }
    }

    private let ridges = "img_ridges_19818cd2"

    @Test func `an image is fetched in the requested size, and read from disk without a server`()
        async throws
    {
        let setting = try Setting()
        let target = ImageTarget(width: 100, height: 100)
        let expected = try PNGDecoder()
            .decode(try setting.file("ridges-320.png"), into: target, limits: DecodedImage.Limits())
        let request = ImageRequest(url: setting.url(ridges, width: 320), target: target)
        let image = try await setting.pipeline().image(for: request)
        #expect(image == expected && image.width == 100 && image.height == 75)
        #expect(await setting.backend.activity() == [])
        await setting.backend.stop()
        #expect(try await setting.pipeline().image(for: request) == expected)
        #expect(setting.events.offsets == [0])
    }

    @Test func `a download that is interrupted five times is resumed and complete`() async throws {
        let setting = try Setting()
        var occurrence = Fault.Occurrence()
        occurrence.count = 5
        try setting.backend.main.set(
            Fault(.truncate(.byte(3_000)), when: FaultMatch("GET", "/v1/images/*"), occurrence: occurrence)
        )
        let expected = try PNGDecoder()
            .decode(try setting.file("ridges-320.png"), into: nil, limits: DecodedImage.Limits())
        let image = try await setting.pipeline().image(for: ImageRequest(url: setting.url(ridges, width: 320)))
        #expect(image == expected)
        let offsets = setting.events.offsets
        #expect(offsets.count == 6 && offsets.last == 15_000, "\(offsets)")
        #expect(await setting.backend.activity() == [])
        await setting.backend.stop()
    }

    @Test func `a corrupted image is never shown and is fetched again`() async throws {
        let setting = try Setting()
        var occurrence = Fault.Occurrence()
        occurrence.count = 2
        try setting.backend.main.set(
            Fault(.corrupt(bytes: 3), when: FaultMatch("GET", "/v1/images/*"), occurrence: occurrence)
        )
        let expected = try PNGDecoder()
            .decode(try setting.file("ridges-320.png"), into: nil, limits: DecodedImage.Limits())
        #expect(try await setting.pipeline().image(for: ImageRequest(url: setting.url(ridges, width: 320))) == expected)
        #expect(setting.events.damaged == 2)
        #expect(await setting.backend.activity() == [])
        await setting.backend.stop()
    }

    @Test func `a JPEG is decoded to its target, and without its decoder it is a clear error`() async throws {
        let setting = try Setting()
        let url = setting.url(ridges, width: 640) + "&format=jpeg"
        let request = ImageRequest(url: url, target: ImageTarget(width: 160, height: 160))
        let image = try await setting.pipeline().image(for: request)
        #expect(image.width == 160 && image.sourceWidth == 640 && image.isOpaque)
        let other = setting.pipeline { $0.decoders = [PNGDecoder()] }
        do {
            _ = try await other.image(for: request)
            Issue.record("There is no decoder for JPEG.")
        } catch {
            #expect(error.code == .unsupportedFormat && error.description.contains("ff d8 ff"))
        }
        #expect(await setting.backend.activity() == [])
        await setting.backend.stop()
    }
}
