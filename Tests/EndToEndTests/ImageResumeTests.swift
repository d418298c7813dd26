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

/// Interrupted downloads over restarts, and damaged files.
@Suite("Resumed image downloads, end to end", .oneMinute)
struct ImageResumeTests {
    /// A server with real images, and a directory that outlives pipelines.
    private final class Setting {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("larder-\(UUID().uuidString)")
            .path
        let backend: MockBackend
        let events = Events()

        init() throws {
            backend = try MockBackend.startWithImages(people: 5, posts: 5)
        }

        deinit { try? FileManager.default.removeItem(atPath: directory) }

        /// A pipeline with a newly opened store, as after a restart.
        func started(triesOnce: Bool = false) throws -> ImagePipeline {
            let disk = try DiskStore(DiskStore.Configuration(directory: directory))
            var configuration = ImagePipeline.Configuration(
                transport: SocketTransport(clock: ManualClock()),
                disk: disk
            )
            if triesOnce { configuration.retry = .never }
            configuration.retry.base = .zero
            let events = events
            configuration.onEvent = { event in
                switch event {
                case .damaged: events.damaged.withLock { $0 += 1 }
                case .downloadStarted(_, let offset, _): events.offsets.withLock { $0.append(offset) }
                default: break
                }
            }
            return ImagePipeline(configuration)
        }

        func url(width: Int) -> String { "\(backend.url)/v1/images/img_atlas_f2c66c32?width=\(width)" }

        func file(_ name: String) throws -> [UInt8] {
            [UInt8](try Data(contentsOf: URL(fileURLWithPath: "\(MockBackend.fixtures)/images/\(name)")))
        }

        func expected(_ name: String, _ target: ImageTarget?) throws -> DecodedImage {
            try PNGDecoder().decode(try file(name), into: target, limits: DecodedImage.Limits())
        }

        func fault(_ action: FaultAction, count: Int) throws {
            var occurrence = Fault.Occurrence()
            occurrence.count = count
            try backend.main.set(Fault(action, when: FaultMatch("GET", "/v1/images/*"), occurrence: occurrence))
        }

        /// The files of large payloads in the store.
        func blobs() -> [String] {
            let paths = FileManager.default.enumerator(atPath: directory)?.compactMap { $0 as? String } ?? []
            return paths.filter { ($0 as NSString).lastPathComponent.utf8.count == 64 }.map { "\(directory)/\($0)" }
        }

        func journal() async -> [JournalRecord] { await backend.main.journal(JournalFilter("GET", "/v1/images/*")) }
    }

    private final class Events: Sendable {
        let damaged = Mutex(0)
        let offsets = Mutex<[Int]>([])
    }

    private let target = ImageTarget(width: 64, height: 48)

    @Test func `a download that is interrupted five times is resumed by five processes without repeated bytes`()
        async throws
    {
        let setting = try Setting()
        let size = try setting.file("atlas-1280.png").count
        try setting.fault(.truncate(.byte(60_000)), count: 5)
        let request = ImageRequest(url: setting.url(width: 1_280), target: target)
        for _ in 0..<5 {
            let pipeline = try setting.started(triesOnce: true)
            await #expect(throws: ImageError.self) { try await pipeline.image(for: request) }
        }
        let image = try await setting.started().image(for: request)
        let expected = try setting.expected("atlas-1280.png", target)
        #expect(image == expected)
        let offsets = setting.events.offsets.withLock { $0 }
        #expect(offsets == [0, 60_000, 120_000, 180_000, 240_000, 300_000])
        // The heads are a few hundred bytes each.
        let journal = await setting.journal()
        let sent = journal.reduce(0) { $0 + $1.bytesSent }
        #expect(journal.count == 6 && sent >= size && sent < size + 6 * 1_000, "\(sent) of \(size)")
        #expect(journal.map(\.status) == [200, 206, 206, 206, 206, 206])
        #expect(setting.events.damaged.withLock { $0 } == 0)
        #expect(await setting.backend.activity() == [])
        await setting.backend.stop()
    }

    @Test func `a corrupted part is detected when the image is complete, and the image is fetched again`()
        async throws
    {
        let setting = try Setting()
        try setting.fault(.truncate(.byte(60_000)), count: 1)
        let request = ImageRequest(url: setting.url(width: 1_280), target: target)
        let broken = try setting.started(triesOnce: true)
        await #expect(throws: ImageError.self) { try await broken.image(for: request) }
        try setting.fault(.corrupt(bytes: 5), count: 1)
        let expected = try setting.expected("atlas-1280.png", target)
        let image = try await setting.started().image(for: request)
        #expect(image == expected)
        #expect(setting.events.damaged.withLock { $0 } == 1)
        #expect(setting.events.offsets.withLock { $0 } == [0, 60_000, 0])
        #expect(await setting.backend.activity() == [])
        await setting.backend.stop()
    }

    @Test func `a file that was overwritten on disk is never shown and is fetched again`() async throws {
        let setting = try Setting()
        let request = ImageRequest(url: setting.url(width: 1_280), target: target)
        let expected = try setting.expected("atlas-1280.png", target)
        _ = try await setting.started().image(for: request)
        // A damaged file, a valid but different image, a truncated file, an empty file.
        let other = try setting.file("arcs-320.png")
        for round in 0..<4 {
            let path = try #require(setting.blobs().first)
            let file = URL(fileURLWithPath: path)
            var bytes = [UInt8](try Data(contentsOf: file))
            switch round {
            case 0: bytes[bytes.count / 2] ^= 0x40
            case 1: bytes = other
            case 2: bytes.removeLast(1_000)
            default: break
            }
            if round < 3 { try Data(bytes).write(to: file) } else { try FileManager.default.removeItem(at: file) }
            let image = try await setting.started().image(for: request)
            #expect(image == expected, "round \(round)")
            let count = await setting.journal().count
            #expect(count == round + 2, "round \(round)")
        }
        // The last download was stored.
        let image = try await setting.started().image(for: request)
        let count = await setting.journal().count
        #expect(image == expected && count == 5)
        #expect(await setting.backend.activity() == [])
        await setting.backend.stop()
    }
}
