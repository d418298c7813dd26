import LarderCoding
import LarderHTTP
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import LarderImages
@testable import LarderStorage
@testable import LarderTransport

@Suite("Image pipeline, failures", .oneMinute)
struct ImageFailureTests {
    private let url = "http://pictures/a.png"
    private let picture = PNGBuilder.picture(width: 24, height: 16) { (UInt8($0 * 10), UInt8($1 * 10), 7) }

    private func failure(_ body: () async throws -> DecodedImage) async -> ImageError? {
        do {
            _ = try await body()
            return nil
        } catch {
            return error as? ImageError
        }
    }

    private func whole() throws -> DecodedImage {
        try PNGDecoder().decode(picture, into: nil, limits: DecodedImage.Limits())
    }

    @Test(arguments: ["max-age=60", "no-store"])
    func `a download that was interrupted five times resumes and gives the right bytes`(control: String) async throws {
        let setting = try ImageSetting()
        defer { setting.remove() }
        let fields: Fields = [.cacheControl: control]
        setting.server[url] = .init(bytes: picture, fields: fields, breaks: [150, 200, 90, 10, 300])
        #expect(try await setting.pipeline.image(for: ImageRequest(url: url)) == whole())
        let ranges = setting.server.requests.map { $0.fields[.range] }
        #expect(ranges == [nil, "bytes=150-", "bytes=350-", "bytes=440-", "bytes=450-", "bytes=750-"])
        #expect(setting.server.requests.dropFirst().allSatisfy { $0.fields[.ifRange] == "\"v1\"" })
    }

    /// A JPEG, and the place of a byte whose damage is found when it is decoded.
    private func damageable() throws -> (JPEGFixture, Int) {
        let fixture = try JPEGFixture.named("pillow-restarts")
        let markers = JPEGEditor.restarts(in: fixture.bytes)
        let place = try #require(
            ((markers[0] + 2)..<markers[1])
                .first { place in
                    var bytes = fixture.bytes
                    bytes[place] ^= 0x10
                    return (try? JPEGDecoder().decode(bytes, into: nil, limits: DecodedImage.Limits())) == nil
                }
        )
        return (fixture, place)
    }

    @Test func `a picture whose damage is found when it is decoded is fetched again`() async throws {
        let setting = try ImageSetting()
        defer { setting.remove() }
        let (fixture, place) = try damageable()
        setting.server[url] = .init(bytes: fixture.bytes, flips: [place])
        #expect(try await setting.pipeline.image(for: ImageRequest(url: url)) == fixture.image)
        #expect(setting.server.requests.count == 2 && setting.log.damaged == 1)
        // A cache on the way would send the damaged copy again.
        #expect(setting.server.requests.map { $0.fields[.cacheControl] } == [nil, "no-cache"])
    }

    @Test func `a picture that stays damaged fails, and is requested again later`() async throws {
        let setting = try ImageSetting()
        defer { setting.remove() }
        let (fixture, place) = try damageable()
        var damaged = fixture.bytes
        damaged[place] ^= 0x10
        setting.server[url] = .init(bytes: damaged)
        let request = ImageRequest(url: url)
        #expect(await failure { try await setting.pipeline.image(for: request) }?.code == .damaged)
        #expect(setting.server.requests.count == 2 && setting.pipeline.cachedImage(for: request) == nil)
        setting.server[url] = .init(bytes: fixture.bytes, tag: "\"v2\"")
        // Not at once: the server would be asked for each cell that shows it.
        #expect(await failure { try await setting.pipeline.image(for: request) }?.code == .damaged)
        #expect(setting.server.requests.count == 2)
        setting.clock.advance(by: .seconds(5))
        #expect(try await setting.pipeline.image(for: request) == fixture.image)
    }

    @Test func `a file that changes during its download is fetched again`() async throws {
        let setting = try ImageSetting()
        defer { setting.remove() }
        let gate = Gate()
        let changed = PNGBuilder.picture(width: 24, height: 16) { (UInt8($1), 200, UInt8($0)) }
        setting.server[url] = .init(bytes: changed, breaks: [300], bodyGate: gate)
        let task = setting.pipeline.task(for: ImageRequest(url: url))
        await setting.log.waitForDownloads(1)
        setting.server[url]?.bytes = picture
        setting.server[url]?.tag = "\"v2\""
        gate.open()
        #expect(try await task.image == whole())
    }

    @Test func `without a strong entity tag a download is not resumed`() async throws {
        for tag in [nil, "W/\"v1\""] {
            let setting = try ImageSetting()
            defer { setting.remove() }
            setting.server[url] = .init(bytes: picture, tag: tag, breaks: [300])
            #expect(try await setting.pipeline.image(for: ImageRequest(url: url)) == whole())
            #expect(setting.server.requests.allSatisfy { $0.fields[.range] == nil })
        }
    }

    @Test func `a failed download resumes on the next request`()
        async throws
    {
        let setting = try ImageSetting { $0.retry = .never }
        defer { setting.remove() }
        setting.server[url] = .init(bytes: picture, breaks: [900])
        #expect(await failure { try await setting.pipeline.image(for: ImageRequest(url: url)) }?.code == .interrupted)
        setting.pipeline.forgetFailures()
        #expect(try await setting.pipeline.image(for: ImageRequest(url: url)) == whole())
        #expect(setting.server.requests.last?.fields[.range] == "bytes=900-")
    }

    @Test func `a picture damaged in transit is never shown and is fetched again`() async throws {
        let setting = try ImageSetting()
        defer { setting.remove() }
        setting.server[url] = .init(bytes: picture, flips: [600, 60])
        #expect(try await setting.pipeline.image(for: ImageRequest(url: url)) == whole())
        #expect(setting.log.damaged == 2 && setting.log.decodes == 1)
        #expect(setting.server.requests.map { $0.fields[.cacheControl] } == [nil, "no-cache", "no-cache"])
    }

    @Test func `a picture that stays damaged is an error and is not stored`() async throws {
        let setting = try ImageSetting()
        defer { setting.remove() }
        var broken = picture
        broken[700] ^= 4
        setting.server[url] = .init(bytes: broken)
        let request = ImageRequest(url: url)
        #expect(await failure { try await setting.pipeline.image(for: request) }?.code == .damaged)
        #expect(try setting.storedCount(request) == 0)
    }

    @Test func `a stored picture that exceeds the limit fails, before and after its lifetime`() async throws {
        let setting = try ImageSetting()
        defer { setting.remove() }
        setting.server[url] = .init(bytes: picture)
        _ = try await setting.pipeline.image(for: ImageRequest(url: url))
        let limited = setting.restarted { $0.bytesMaximum = 500 }
        #expect(await failure { try await limited.image(for: ImageRequest(url: url)) }?.code == .tooLarge)
        #expect(setting.server.requests.count == 1)
        limited.forgetFailures()
        setting.clock.advance(by: .seconds(61))
        #expect(await failure { try await limited.image(for: ImageRequest(url: url)) }?.code == .tooLarge)
    }

    @Test func `a picture damaged on disk is never shown and is fetched again`() async throws {
        let setting = try ImageSetting()
        defer { setting.remove() }
        setting.server[url] = .init(bytes: picture)
        let request = ImageRequest(url: url)
        _ = try await setting.pipeline.image(for: request)
        let ids = try setting.disk.read { transaction in try transaction.entityIDs(ofType: "http.body") }
        let id = try #require(ids.first)
        var entity = try #require(try setting.disk.entity(EntityKey(type: "http.body", id: id)))
        // Written through the store, so that only the checksum of the format detects the damage.
        entity.payload[entity.payload.count - 200] ^= 1
        try setting.disk.put(entity)
        #expect(try await setting.restarted().image(for: request) == whole())
        #expect(setting.log.damaged == 1 && setting.server.requests.count == 2)
    }

    @Test func `bytes that fail to decode are removed and fetched once more`() async throws {
        let setting = try ImageSetting { $0.decoders = [PlainDecoder()] }
        defer { setting.remove() }
        var bytes = PlainDecoder.file(width: 4, height: 4, gray: 9)
        bytes[4] = 200
        setting.server[url] = .init(bytes: bytes)
        let request = ImageRequest(url: url)
        #expect(await failure { try await setting.pipeline.image(for: request) }?.code == .damaged)
        #expect(setting.server.requests.count == 2)
        #expect(try setting.storedCount(request) == 0)
        setting.clock.advance(by: .seconds(6))
        setting.server[url]?.bytes = PlainDecoder.file(width: 4, height: 4, gray: 9)
        #expect(try await setting.pipeline.image(for: request).width == 4)
    }

    @Test func `a failure is remembered for a short time and no longer`() async throws {
        let setting = try ImageSetting()
        defer { setting.remove() }
        let request = ImageRequest(url: url)
        let first = await failure { try await setting.pipeline.image(for: request) }
        #expect(first?.code == .status && first?.status == 404 && first?.isRemembered == false)
        let second = await failure { try await setting.pipeline.image(for: request) }
        #expect(second?.status == 404 && second?.isRemembered == true)
        #expect(setting.server.requests.count == 1)
        setting.server[url] = .init(bytes: picture)
        setting.clock.advance(by: .seconds(5))
        #expect(try await setting.pipeline.image(for: request).width == 24)
    }

    @Test func `a reload that fails does not keep other requests from the file on disk`() async throws {
        let setting = try ImageSetting()
        defer { setting.remove() }
        setting.server[url] = .init(bytes: picture)
        let small = ImageRequest(url: url, target: ImageTarget(width: 12, height: 8))
        _ = try await setting.pipeline.image(for: small)
        setting.server.isOffline = true
        let reload = ImageRequest(url: url, cache: [.skipMemoryRead, .skipDiskRead])
        #expect(await failure { try await setting.pipeline.image(for: reload) }?.code == .offline)
        let count = setting.server.requests.count
        #expect(try await setting.pipeline.image(for: ImageRequest(url: url)) == whole())
        #expect(setting.server.requests.count == count)
    }

    @Test func `a failure is not remembered against a request that sends nothing`() async throws {
        let setting = try ImageSetting { $0.retry = .never }
        defer { setting.remove() }
        setting.server[url] = .init(bytes: picture)
        let request = ImageRequest(url: url, cache: .skipMemoryRead)
        _ = try await setting.pipeline.image(for: request)
        setting.clock.advance(by: .seconds(61))
        setting.server[url]?.statuses = [429]
        #expect(await failure { try await setting.pipeline.image(for: request) }?.status == 429)
        let stored = ImageRequest(url: url, cache: [.skipMemoryRead, .onlyCached])
        #expect(try await setting.pipeline.image(for: stored) == whole())
    }

    @Test func `some statuses are retried and others are not`() async throws {
        let setting = try ImageSetting()
        defer { setting.remove() }
        setting.server[url] = .init(bytes: picture, statuses: [503, 429])
        #expect(try await setting.pipeline.image(for: ImageRequest(url: url)).width == 24)
        setting.server["b"] = .init(bytes: picture, statuses: [403])
        #expect(await failure { try await setting.pipeline.image(for: ImageRequest(url: "b")) }?.status == 403)
        setting.server["c"] = .init(bytes: picture, statuses: [500, 500, 500, 500])
        #expect(await failure { try await setting.pipeline.image(for: ImageRequest(url: "c")) }?.status == 500)
        #expect(setting.server.requests.map(\.url) == [url, url, url, "b", "c", "c", "c"])
    }

    @Test func `Retry-After is respected`() async throws {
        let waits = Mutex<[Duration]>([])
        let setting = try ImageSetting { configuration in
            configuration.retry.base = .milliseconds(2)
            configuration.random = { 0.5 }
            configuration.uptime = NoWaitClock(configuration.uptime) { wait in waits.withLock { $0.append(wait) } }
        }
        defer { setting.remove() }
        setting.server[url] = .init(bytes: picture, statuses: [503], statusFields: [.retryAfter: "7"])
        #expect(try await setting.pipeline.image(for: ImageRequest(url: url)).width == 24)
        #expect(waits.withLock { $0 } == [.milliseconds(7_001)])
        // The wait exceeds the limit: no retry, and later requests fail for a while.
        setting.server["b"] = .init(bytes: picture, statuses: [429, 429], statusFields: [.retryAfter: "60"])
        #expect(await failure { try await setting.pipeline.image(for: ImageRequest(url: "b")) }?.status == 429)
        setting.clock.advance(by: .seconds(59))
        #expect(await failure { try await setting.pipeline.image(for: ImageRequest(url: "b")) }?.isRemembered == true)
        #expect(setting.server.requests.map(\.url) == [url, url, "b"])
        setting.clock.advance(by: .seconds(1))
        setting.server["b"]?.statuses = []
        #expect(try await setting.pipeline.image(for: ImageRequest(url: "b")).width == 24)
    }

    @Test func `without a network there is one clear error`() async throws {
        let setting = try ImageSetting()
        defer { setting.remove() }
        setting.server.isOffline = true
        #expect(await failure { try await setting.pipeline.image(for: ImageRequest(url: url)) }?.code == .offline)
    }

    @Test func `a download beyond the size limit is stopped early`() async throws {
        let setting = try ImageSetting { $0.bytesMaximum = 500 }
        defer { setting.remove() }
        setting.server[url] = .init(bytes: picture)
        #expect(await failure { try await setting.pipeline.image(for: ImageRequest(url: url)) }?.code == .tooLarge)
    }

    @Test func `a page of the network neither replaces a stored picture nor hides it`() async throws {
        let setting = try ImageSetting()
        defer { setting.remove() }
        setting.server[url] = .init(bytes: picture)
        let request = ImageRequest(url: url, cache: .skipMemoryRead)
        _ = try await setting.pipeline.image(for: request)
        setting.clock.advance(by: .seconds(61))
        for control in ["no-store", "max-age=60"] {
            setting.server[url] = .init(
                bytes: Array("<html>".utf8),
                tag: nil,
                fields: [.cacheControl: control, .contentType: "text/html"]
            )
            #expect(try await setting.pipeline.image(for: request) == whole())
        }
        #expect(try setting.storedCount(request) == 1)
    }

    @Test func `a proxy that rejects a request counts as no network`() {
        #expect(ImageError(TransportError(.proxyRejected, "407")).code == .offline)
    }

    @Test func `a decoder adds a format, and without one the error names the formats`() async throws {
        let file = PlainDecoder.file(width: 2, height: 2, gray: 77)
        let setting = try ImageSetting()
        defer { setting.remove() }
        setting.server[url] = .init(bytes: file)
        #expect(
            await failure { try await setting.pipeline.image(for: ImageRequest(url: url)) }?.code == .unsupportedFormat
        )
        let adding = try ImageSetting { $0.decoders = [PNGDecoder(), PlainDecoder()] }
        defer { adding.remove() }
        adding.server[url] = .init(bytes: file)
        #expect(
            try await adding.pipeline.image(for: ImageRequest(url: url)).pixels
                == (0..<4).flatMap { _ in [77, 77, 77, 255] as [UInt8] }
        )
    }
}

/// A format of one gray: `GRAY`, width, height, gray, and padding. A wrong size in its header is detected by decoding only.
struct PlainDecoder: ImageDecoder {
    let name = "Plain"

    static func file(width: UInt8, height: UInt8, gray: UInt8) -> [UInt8] {
        Array("GRAY".utf8) + [width, height, gray] + [UInt8](repeating: 0, count: 64)
    }

    func canDecode(_ start: [UInt8]) -> Bool { start.starts(with: Array("GRAY".utf8)) }

    func decode(
        _ bytes: [UInt8],
        into target: ImageTarget?,
        limits: DecodedImage.Limits
    ) throws(ImageError) -> DecodedImage {
        guard bytes.count > 6, bytes[4] < 100 else { throw ImageError(.damaged, "It is too wide.") }
        let (width, height) = (Int(bytes[4]), Int(bytes[5]))
        let pixels = (0..<(width * height)).flatMap { _ -> [UInt8] in [bytes[6], bytes[6], bytes[6], 255] }
        return DecodedImage(width: width, height: height, pixels: pixels)
    }
}
