import LarderHTTP
import LarderTime
import LarderTransport
import TestSupport
import Testing

@testable import LarderImages

/// Redirects are followed above the stored files: each hop is stored, asked for and validated under its own URL.
@Suite("Image pipeline, redirects (RFC 9110 §15.4)", .oneMinute)
struct ImageRedirectTests {
    private static let first = "http://pictures/latest"
    private static let second = "http://pictures/also"
    private static let target = "http://pictures/a.png"
    private let picture = PNGBuilder.picture(width: 24, height: 16) { (UInt8($0 * 10), UInt8($1 * 10), 7) }
    private let other = PNGBuilder.picture(width: 24, height: 16) { (UInt8($1), 200, UInt8($0)) }

    private func setting(_ redirect: Fields, status: Int = 302) throws -> ImageSetting {
        let setting = try ImageSetting { $0.retry = .never }
        setting.server[Self.target] = .init(bytes: picture, fields: [.cacheControl: "max-age=60"])
        for url in [Self.first, Self.second] {
            setting.server[url] = .init(bytes: [], fields: redirect, location: "/a.png", redirectStatus: status)
        }
        return setting
    }

    private func urls(_ setting: ImageSetting) -> [String] { setting.server.requests.map(\.url) }

    @Test(arguments: [[.cacheControl: "no-store"], Fields(), [.cacheControl: "no-cache"]])
    func `a redirect that may not be reused is asked for again, its stored target is not`(redirect: Fields) async throws
    {
        let setting = try setting(redirect)
        defer { setting.remove() }
        let request = ImageRequest(url: Self.first)
        let image = try await setting.pipeline.image(for: request)
        #expect(setting.pipeline.cachedImage(for: request) == nil)
        #expect(try await setting.pipeline.image(for: request) == image)
        #expect(urls(setting) == [Self.first, Self.target, Self.first])
        #expect(setting.log.decodes == 1)
        // Now it leads to another picture.
        let moved = "http://pictures/b.png"
        setting.server[moved] = .init(bytes: other)
        setting.server[Self.first]?.location = moved
        #expect(try await setting.pipeline.image(for: request) != image)
        #expect(try await setting.pipeline.image(for: ImageRequest(url: Self.target)) == image)
        #expect(urls(setting).filter { $0 == Self.target }.count == 1)
    }

    @Test func `a redirect is followed without a request while it is fresh, and its target validated by itself`()
        async throws
    {
        let setting = try setting([.cacheControl: "max-age=100"])
        defer { setting.remove() }
        let request = ImageRequest(url: Self.first)
        let image = try await setting.pipeline.image(for: request)
        #expect(setting.pipeline.cachedImage(for: request) == image)
        let restarted = setting.restarted()
        #expect(try await restarted.image(for: request) == image)
        #expect(urls(setting) == [Self.first, Self.target])
        setting.clock.advance(by: .seconds(61))
        #expect(restarted.cachedImage(for: request) == nil)
        #expect(try await restarted.image(for: request) == image)
        #expect(urls(setting) == [Self.first, Self.target, Self.target])
        #expect(setting.server.requests.last?.fields[.ifNoneMatch] == "\"v1\"")
        setting.clock.advance(by: .seconds(40))
        #expect(restarted.cachedImage(for: request) == nil)
        #expect(try await restarted.image(for: request) == image)
        #expect(urls(setting).suffix(1) == [Self.first])
    }

    @Test func `URLs that redirect to one picture download it once, also at the same time`() async throws {
        let setting = try setting([.cacheControl: "no-store"])
        defer { setting.remove() }
        let gate = Gate()
        setting.server[Self.target]?.gate = gate
        async let one = setting.pipeline.image(for: ImageRequest(url: Self.first))
        async let two = setting.pipeline.image(for: ImageRequest(url: Self.second))
        async let three = setting.pipeline.image(for: ImageRequest(url: Self.target))
        await setting.log.wait { $0.count { if case .mergedDownload(Self.target) = $0 { true } else { false } } >= 2 }
        gate.open()
        let images = try await [one, two, three]
        #expect(images.allSatisfy { $0 == images[0] })
        _ = try await setting.pipeline.image(for: ImageRequest(url: Self.second))
        #expect(urls(setting).filter { $0 == Self.target }.count == 1)
    }

    @Test func `nothing is stored under the URL of a redirect but the redirect`() async throws {
        for (fields, count) in [([.cacheControl: "no-store"] as Fields, 0), ([.cacheControl: "max-age=60"], 1)] {
            let setting = try setting(fields)
            defer { setting.remove() }
            _ = try await setting.pipeline.image(for: ImageRequest(url: Self.first))
            #expect(try setting.storedCount(ImageRequest(url: Self.first)) == count)
            #expect(try setting.storedCount(ImageRequest(url: Self.target)) == 1)
        }
    }

    @Test func `a stored redirect stands in while there is no reply`() async throws {
        let setting = try setting([.cacheControl: "max-age=1"], status: 301)
        defer { setting.remove() }
        let image = try await setting.pipeline.image(for: ImageRequest(url: Self.first))
        setting.clock.advance(by: .seconds(100))
        setting.server.isOffline = true
        #expect(try await setting.restarted().image(for: ImageRequest(url: Self.first)) == image)
    }

    @Test func `a loop ends after 16 redirects`() async throws {
        let setting = try setting([.cacheControl: "no-store"])
        defer { setting.remove() }
        setting.server[Self.first]?.location = Self.second
        setting.server[Self.second]?.location = Self.first
        await #expect(throws: ImageError.self) { try await setting.pipeline.image(for: ImageRequest(url: Self.first)) }
        #expect(setting.server.requests.count == 17)
    }

    @Test func `credentials stay in their origin`() async throws {
        let setting = try setting([.cacheControl: "no-store"])
        defer { setting.remove() }
        let foreign = "http://elsewhere/a.png"
        setting.server[foreign] = .init(bytes: picture)
        setting.server[Self.first]?.location = foreign
        _ = try await setting.pipeline.image(for: ImageRequest(url: Self.first, fields: [.authorization: "Bearer a"]))
        #expect(setting.server.requests.map { $0.fields[.authorization] } == ["Bearer a", nil])
    }

    @Test func `the failure of a target is remembered for the URL that redirects to it`() async throws {
        let setting = try setting([.cacheControl: "no-store"])
        defer { setting.remove() }
        setting.server[Self.first]?.location = "/gone.png"
        for _ in 0..<2 {
            await #expect(throws: ImageError.self) {
                try await setting.pipeline.image(for: ImageRequest(url: Self.first))
            }
        }
        #expect(setting.server.requests.count == 2)
    }
}
