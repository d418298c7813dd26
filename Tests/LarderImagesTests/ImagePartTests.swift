import LarderHTTP
import LarderTime
import SDKTestSupport
import TestSupport
import Testing

@testable import LarderHTTPCache
@testable import LarderImages
@testable import LarderStorage
@testable import LarderTransport

/// Interrupted downloads that resume, also in another process.
@Suite("Image pipeline, parts of files", .oneMinute)
struct ImagePartTests {
    private let url = "http://pictures/a.png"
    private let picture = PNGBuilder.picture(width: 24, height: 16) { (UInt8($0 * 10), UInt8($1 * 10), 7) }
    /// Some pieces long, so that it is written while it arrives.
    private let long = PlainDecoder.file(width: 4, height: 4, gray: 9) + [UInt8](repeating: 5, count: 500_000)

    private func whole() throws -> DecodedImage {
        try PNGDecoder().decode(picture, into: nil, limits: DecodedImage.Limits())
    }

    private func fail(_ setting: ImageSetting, _ pipeline: ImagePipeline, _ request: ImageRequest) async {
        await #expect(throws: ImageError.self) { try await pipeline.image(for: request) }
    }

    @Test func `a download resumes in another process and leaves no parts behind`() async throws {
        let setting = try ImageSetting { $0.retry = .never }
        defer { setting.remove() }
        setting.server[url] = .init(bytes: picture, breaks: [300, 200, 250])
        let request = ImageRequest(url: url)
        await fail(setting, setting.pipeline, request)
        for _ in 0..<2 { await fail(setting, setting.restarted { $0.retry = .never }, request) }
        #expect(try setting.parts().count == 1)
        #expect(try await setting.restarted().image(for: request) == whole())
        let ranges = setting.server.requests.map { $0.fields[.range] }
        #expect(ranges == [nil, "bytes=300-", "bytes=500-", "bytes=750-"])
        #expect(setting.server.requests.dropFirst().allSatisfy { $0.fields[.ifRange] == "\"v1\"" })
        #expect(try setting.parts().isEmpty)
        // The assembled file is stored.
        #expect(try await setting.restarted().image(for: request) == whole())
        #expect(setting.server.requests.count == 4)
    }

    @Test func `received bytes are on disk before the download fails`() async throws {
        let (broken, never) = (Gate(), Gate())
        let setting = try ImageSetting(pieceLength: 10_000) { configuration in
            configuration.decoders = [PlainDecoder()]
            configuration.uptime = NoWaitClock(configuration.uptime) { _ in
                broken.open()
                try await never.pass()
            }
        }
        defer { setting.remove() }
        setting.server[url] = .init(bytes: long, breaks: [300_000, 0])
        let request = ImageRequest(url: url)
        let task = setting.pipeline.task(for: request)
        try await broken.pass()
        // The process dies here: the first pipeline does nothing more.
        let pipeline = setting.restarted { $0.decoders = [PlainDecoder()] }
        #expect(try await pipeline.image(for: request).width == 4)
        let resumed = try #require(setting.server.requests.last?.fields[.range])
        let start = try #require(Int(resumed.dropFirst(6).dropLast()))
        // A part is written when it has doubled: less than half of it is lost, or one piece.
        #expect(start > 300_000 - HTTPCache.partBytesMinimum - 10_000 && start <= 300_000, "\(resumed)")
        task.cancel()
    }

    @Test func `a part of a file that has changed is discarded`() async throws {
        let setting = try ImageSetting { $0.retry = .never }
        defer { setting.remove() }
        let old = PNGBuilder.picture(width: 24, height: 16) { (UInt8($1), 200, UInt8($0)) }
        setting.server[url] = .init(bytes: old, breaks: [500])
        let request = ImageRequest(url: url)
        await fail(setting, setting.pipeline, request)
        setting.server[url] = .init(bytes: picture, tag: "\"v2\"")
        #expect(try await setting.restarted().image(for: request) == whole())
        #expect(setting.server.requests.last?.fields[.ifRange] == "\"v1\"")
        #expect(try setting.parts().isEmpty)
    }

    @Test func `a part damaged on disk is never shown, and the file is fetched again`() async throws {
        let setting = try ImageSetting { $0.retry = .never }
        defer { setting.remove() }
        setting.server[url] = .init(bytes: picture, breaks: [700])
        let request = ImageRequest(url: url)
        await fail(setting, setting.pipeline, request)
        let ids = try setting.disk.read { transaction in try transaction.entityIDs(ofType: "http.body") }
        let id = try #require(ids.first)
        var part = try #require(try setting.disk.entity(EntityKey(type: "http.body", id: id)))
        part.payload[part.payload.count - 300] ^= 8
        try setting.disk.put(part)
        #expect(try await setting.restarted().image(for: request) == whole())
        #expect(setting.server.requests.map { $0.fields[.range] } == [nil, "bytes=700-", nil])
        #expect(setting.log.damaged == 1)
        #expect(try setting.parts().isEmpty)
    }
}
