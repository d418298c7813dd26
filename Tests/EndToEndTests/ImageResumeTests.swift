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

        /// The database of the pictures.
        var database: URL { URL(fileURLWithPath: "\(directory)/store.sqlite") }

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
        // The middle of the file is the middle of the picture, which is much larger than all else.
        var bytes = [UInt8](try Data(contentsOf: setting.database))
        bytes[bytes.count / 2] ^= 0x40
        try Data(bytes).write(to: setting.database)
        let again = try await setting.started().image(for: request)
        let requests = await setting.journal().count
        #expect(again == expected && requests == 2)
        // The last download was stored.
        let image = try await setting.started().image(for: request)
        let count = await setting.journal().count
        #expect(image == expected && count == 2)
        #expect(await setting.backend.activity() == [])
        await setting.backend.stop()
    }
}
