import LarderHTTP
import LarderTime
import Synchronization
import TestSupport
import Testing

@testable import LarderImages
@testable import LarderStorage
@testable import LarderTransport

/// RFC 9111 for pictures in memory and on disk.
@Suite("Image pipeline, HTTP caching", .oneMinute)
struct ImageCachingTests {
    private let url = "http://pictures/a.png"
    private let picture = PNGBuilder.picture(width: 24, height: 16) { (UInt8($0 * 10), UInt8($1 * 10), 7) }
    private let changed = PNGBuilder.picture(width: 24, height: 16) { (UInt8($1), 200, UInt8($0)) }

    private func setting(_ fields: Fields) throws -> ImageSetting {
        let setting = try ImageSetting()
        setting.server[url] = .init(bytes: picture, fields: fields)
        return setting
    }

    private func conditions(_ setting: ImageSetting) -> [String?] {
        setting.server.requests.map { $0.fields[.ifNoneMatch] }
    }

    private func reused(_ setting: ImageSetting) -> Int {
        setting.log.count { if case .reused = $0 { true } else { false } }
    }

    @Test func `a fresh picture needs no request, and later a 304 saves the bytes and the decode`() async throws {
        let setting = try setting([.cacheControl: "max-age=60"])
        defer { setting.remove() }
        let request = ImageRequest(url: url)
        let first = try await setting.pipeline.image(for: request)
        setting.clock.advance(by: .seconds(59))
        #expect(setting.pipeline.cachedImage(for: request) == first)
        setting.clock.advance(by: .seconds(1))
        #expect(setting.pipeline.cachedImage(for: request) == nil)
        #expect(try await setting.pipeline.image(for: request) == first)
        #expect(conditions(setting) == [nil, "\"v1\""])
        #expect(setting.log.decodes == 1 && reused(setting) == 1)
        #expect(setting.pipeline.cachedImage(for: request) == first)
        // A changed picture is replaced.
        setting.clock.advance(by: .seconds(60))
        setting.server[url]?.bytes = changed
        setting.server[url]?.tag = "\"v2\""
        let second = try await setting.pipeline.image(for: request)
        #expect(second != first && setting.log.decodes == 2)
    }

    @Test func `the Age of a response counts`() async throws {
        let setting = try setting([.cacheControl: "max-age=60", .age: "50"])
        defer { setting.remove() }
        let request = ImageRequest(url: url)
        let first = try await setting.pipeline.image(for: request)
        setting.clock.advance(by: .seconds(9))
        #expect(setting.pipeline.cachedImage(for: request) == first)
        setting.clock.advance(by: .seconds(1))
        #expect(setting.pipeline.cachedImage(for: request) == nil)
    }

    @Test func `no-cache revalidates each time, even with pixels in memory`() async throws {
        let setting = try setting([.cacheControl: "no-cache, max-age=60"])
        defer { setting.remove() }
        let request = ImageRequest(url: url)
        let first = try await setting.pipeline.image(for: request)
        #expect(setting.pipeline.cachedImage(for: request) == nil)
        #expect(try await setting.pipeline.image(for: request) == first)
        #expect(conditions(setting) == [nil, "\"v1\""] && setting.log.decodes == 1)
        // Without a successful validation it is not shown.
        setting.server.isOffline = true
        await #expect(throws: ImageError.self) { try await setting.pipeline.image(for: request) }
    }

    @Test func `a no-store response is kept neither in memory nor on disk nor in parts`() async throws {
        let setting = try ImageSetting { $0.retry = .never }
        defer { setting.remove() }
        setting.server[url] = .init(bytes: picture, fields: [.cacheControl: "no-store"], breaks: [500])
        let request = ImageRequest(url: url)
        await #expect(throws: ImageError.self) { try await setting.pipeline.image(for: request) }
        #expect(try setting.parts().isEmpty)
        setting.pipeline.forgetFailures()
        #expect(try await setting.pipeline.image(for: request).width == 24)
        #expect(setting.pipeline.memoryCost == 0 && setting.pipeline.cachedImage(for: request) == nil)
        #expect(try setting.storedCount(request) == 0)
        let totals = try setting.disk.statistics()
        #expect(totals.items == 0)
        #expect(try await setting.pipeline.image(for: request).width == 24)
        #expect(setting.server.requests.count == 3)
    }

    @Test func `an immutable picture is not revalidated while fresh, even with no-cache in the request`() async throws {
        let setting = try setting([.cacheControl: "max-age=3600, immutable"])
        defer { setting.remove() }
        let insisting = ImageRequest(url: url, fields: [.cacheControl: "max-age=0"])
        _ = try await setting.pipeline.image(for: insisting)
        _ = try await setting.pipeline.image(for: insisting)
        #expect(setting.server.requests.count == 1)
        setting.server[url]?.fields = [.cacheControl: "max-age=3600"]
        let other = try self.setting([.cacheControl: "max-age=3600"])
        defer { other.remove() }
        _ = try await other.pipeline.image(for: insisting)
        _ = try await other.pipeline.image(for: insisting)
        #expect(conditions(other) == [nil, "\"v1\""])
    }

    @Test func `variants differ by the fields named in Vary, and by nothing else`() async throws {
        let setting = try setting([.cacheControl: "max-age=3600", .vary: "Accept-Language"])
        defer { setting.remove() }
        let language = FieldName("Accept-Language")
        let trace = FieldName("X-Trace")
        func request(_ language: FieldName, _ name: String, _ number: String) -> ImageRequest {
            ImageRequest(url: url, fields: [language: name, trace: number])
        }
        let german = try await setting.pipeline.image(for: request(language, "de", "1"))
        #expect(try await setting.pipeline.image(for: request(language, "de", "2")) == german)
        #expect(setting.server.requests.count == 1)
        setting.server[url]?.bytes = changed
        setting.server[url]?.tag = "\"v2\""
        #expect(try await setting.pipeline.image(for: request(language, "fr", "3")) != german)
        #expect(setting.server.requests.count == 2)
        // Both variants stay stored.
        #expect(try await setting.restarted().image(for: request(language, "de", "4")) == german)
        #expect(setting.server.requests.count == 2)
    }

    @Test func `a picture for one account is not shown to another`() async throws {
        let setting = try setting([.cacheControl: "private, max-age=3600"])
        defer { setting.remove() }
        let first = ImageRequest(url: url, fields: [.authorization: "Bearer a"])
        let second = ImageRequest(url: url, fields: [.authorization: "Bearer b"])
        _ = try await setting.pipeline.image(for: first)
        _ = try await setting.pipeline.image(for: second)
        #expect(setting.server.requests.count == 2)
        var offline = second
        offline.fields = [.authorization: "Bearer c"]
        setting.server.isOffline = true
        await #expect(throws: ImageError.self) { try await setting.pipeline.image(for: offline) }
    }

    @Test func `a stale picture is used when the server fails, unless the response forbids it`() async throws {
        for (control, stands) in [("max-age=60", true), ("max-age=60, must-revalidate", false)] {
            for isDown in [false, true] {
                let setting = try setting([.cacheControl: control])
                defer { setting.remove() }
                let request = ImageRequest(url: url)
                let first = try await setting.pipeline.image(for: request)
                setting.clock.advance(by: .seconds(61))
                setting.server.isOffline = !isDown
                setting.server[url]?.statuses = isDown ? [503, 503, 503] : []
                let shown = try? await setting.pipeline.image(for: request)
                #expect(shown == (stands ? first : nil), "\(control), \(isDown ? 503 : 0)")
            }
        }
    }

    @Test(arguments: [("max-age=60", true), ("max-age=60, must-revalidate", false)])
    func `without a request a stale picture is shown from memory if it would be shown from disk`(
        control: String,
        isShown: Bool
    ) async throws {
        let setting = try setting([.cacheControl: control])
        defer { setting.remove() }
        let first = try await setting.pipeline.image(for: ImageRequest(url: url))
        setting.clock.advance(by: .seconds(61))
        for pipeline in [setting.pipeline, setting.restarted()] {
            let shown = try? await pipeline.image(for: ImageRequest(url: url, cache: .onlyCached))
            #expect(shown == (isShown ? first : nil))
        }
    }

    /// Requests for one picture in two sizes, and the same that send nothing.
    private var sizes: (sending: [ImageRequest], stored: [ImageRequest]) {
        let targets = [nil, ImageTarget(width: 12, height: 8)]
        return (
            targets.map { ImageRequest(url: url, target: $0) },
            targets.map { ImageRequest(url: url, target: $0, cache: .onlyCached) }
        )
    }

    @Test(arguments: [404, 410])
    func `a picture answered with 404 or 410 is not shown any more and is removed from memory and disk`(
        status: Int
    ) async throws {
        let setting = try setting([.cacheControl: "max-age=60"])
        defer { setting.remove() }
        let (sending, stored) = sizes
        for request in sending { _ = try await setting.pipeline.image(for: request) }
        setting.clock.advance(by: .seconds(61))
        setting.server[url]?.statuses = [status]
        await #expect(throws: ImageError.self) { try await setting.pipeline.image(for: sending[0]) }
        #expect(try setting.storedCount(sending[0]) == 0)
        for request in stored {
            await #expect(throws: ImageError.self) { try await setting.pipeline.image(for: request) }
        }
    }

    @Test func `a no-store response removes the pixels of the response before it`() async throws {
        let setting = try setting([.cacheControl: "max-age=60"])
        defer { setting.remove() }
        let (sending, stored) = sizes
        for request in sending { _ = try await setting.pipeline.image(for: request) }
        setting.clock.advance(by: .seconds(61))
        setting.server[url] = .init(bytes: changed, tag: "\"v2\"", fields: [.cacheControl: "no-store"])
        _ = try await setting.pipeline.image(for: sending[0])
        for request in stored { #expect(setting.pipeline.cachedImage(for: request) == nil) }
    }

    @Test(arguments: [401, 403, 404, 429, 500, 503])
    func `an error is not stored, whatever its lifetime is`(_ status: Int) async throws {
        let setting = try setting([.cacheControl: "max-age=60"])
        defer { setting.remove() }
        let request = ImageRequest(url: url)
        func fail() async {
            setting.server[url]?.statusFields = [.cacheControl: "max-age=86400"]
            setting.server[url]?.statuses = Array(repeating: status, count: 3)
            let error = await #expect(throws: ImageError.self) { try await setting.pipeline.image(for: request) }
            #expect(error?.status == status)
            setting.server[url]?.statuses = []
            setting.pipeline.forgetFailures()
        }
        await fail()
        let picture = try await setting.pipeline.image(for: request)
        guard status < 500, status != 404 else { return }
        // It does not replace a picture either.
        setting.clock.advance(by: .seconds(61))
        await fail()
        setting.server.isOffline = true
        #expect(try await setting.pipeline.image(for: request) == picture)
    }

    @Test
    func `stale-while-revalidate shows the stored picture at once and validates it, also while prefetching is paused`()
        async throws
    {
        let setting = try setting([.cacheControl: "max-age=60, stale-while-revalidate=600"])
        defer { setting.remove() }
        setting.pipeline.pausePrefetch()
        let request = ImageRequest(url: url)
        let first = try await setting.pipeline.image(for: request)
        setting.clock.advance(by: .seconds(100))
        let gate = Gate()
        setting.server[url]?.gate = gate
        // The server does not answer yet.
        #expect(try await setting.pipeline.image(for: request) == first)
        try #require(setting.pipeline.state.withLock { $0.runningLoads } == 1)
        gate.open()
        await setting.log.wait { $0.contains { if case .revalidated = $0 { true } else { false } } }
        #expect(conditions(setting) == [nil, "\"v1\""])
    }

    @Test func `background validations are cancelled with other work of low priority`() async throws {
        let setting = try setting([.cacheControl: "max-age=60, stale-while-revalidate=600"])
        defer { setting.remove() }
        setting.pipeline.setConcurrency(loads: 1, decodes: 1)
        let request = ImageRequest(url: url)
        _ = try await setting.pipeline.image(for: request)
        setting.clock.advance(by: .seconds(100))
        let gate = Gate()
        setting.server[url]?.gate = gate
        _ = try await setting.pipeline.image(for: request)
        await setting.log.waitForDownloads(2)
        #expect(setting.pipeline.workload.loads == 1)
        setting.pipeline.cancelPending()
        #expect(setting.pipeline.workload.loads == 0)
        // The download was stopped: its gate is closed, and its place is free.
        setting.server[url]?.gate = nil
        #expect(try await setting.pipeline.image(for: request).width > 0)
    }

    @Test func `without freshness information the default lifetime applies, or a heuristic one with Last-Modified`()
        async throws
    {
        let silent = try setting(Fields())
        defer { silent.remove() }
        let request = ImageRequest(url: url)
        _ = try await silent.pipeline.image(for: request)
        silent.clock.advance(by: .seconds(86_399))
        #expect(silent.pipeline.cachedImage(for: request) != nil)
        silent.clock.advance(by: .seconds(1))
        #expect(silent.pipeline.cachedImage(for: request) == nil)
        // A tenth of the time since the last change (RFC 9111 §4.2.2).
        let guessed = try setting(Fields())
        defer { guessed.remove() }
        let modified = guessed.clock.now - .seconds(1_000)
        guessed.server[url]?.fields = [
            .lastModified: HTTPDate.format(modified), .date: HTTPDate.format(guessed.clock.now),
        ]
        _ = try await guessed.pipeline.image(for: request)
        guessed.clock.advance(by: .seconds(98))
        #expect(guessed.pipeline.cachedImage(for: request) != nil)
        guessed.clock.advance(by: .seconds(3))
        #expect(guessed.pipeline.cachedImage(for: request) == nil)
    }

    @Test func `setting the clock back makes no pixels fresh`() async throws {
        let setting = try setting([.cacheControl: "max-age=60"])
        defer { setting.remove() }
        let request = ImageRequest(url: url)
        _ = try await setting.pipeline.image(for: request)
        setting.clock.set(wall: setting.clock.now - .seconds(3_600))
        #expect(setting.pipeline.cachedImage(for: request) == nil)
    }
}
