import LarderHTTP
import LarderTime
import LarderTransport
import TestSupport
import Testing

@testable import LarderHTTPCache

/// Files whose parts are stored and completed (RFC 9111 §3.3, §3.4).
@Suite("HTTP cache: files in parts", .oneMinute)
struct HTTPCacheFileTests {
    private static let tagged: Fields = [.etag: "\"1\"", .cacheControl: "max-age=60"]
    private let request = TransportRequest(url: CacheStage.url)
    private let file = HTTPCacheFile(key: CacheStage.url)

    /// A cache with the first four of twelve bytes.
    private func stage(_ file: HTTPCacheFile, _ later: TransportResponse...) async throws -> CacheStage {
        let origin = Origin { _, number throws(TransportError) in
            number == 0 ? reply(Self.tagged, "abcdefghijkl") : later[min(number, later.count) - 1]
        }
        let stage = CacheStage(origin)
        origin.breakStreams(after: 1)
        await #expect(throws: TransportError.self) { try await stage.cache.response(for: request, file) }
        origin.breakStreams(after: nil)
        return stage
    }

    private func rest(_ range: String, _ text: String) -> TransportResponse {
        reply([.contentRange: range, .etag: "\"1\""], text, status: 206)
    }

    @Test func `a part takes its length from a later range, and is whole with the last`() async throws {
        let stage = try await stage(file, rest("bytes 4-7/12", "efgh"), rest("bytes 8-11/12", "ijkl"))
        // As in another process.
        await #expect(throws: TransportError.self) {
            try await stage.cache.response(for: request, HTTPCacheFile(key: CacheStage.url))
        }
        #expect(try await stage.cache.response(for: request, HTTPCacheFile(key: CacheStage.url)).text == "abcdefghijkl")
        #expect(stage.origin.requests.map { $0.fields[.range] } == [nil, "bytes=4-", "bytes=8-"])
        #expect(stage.origin.requests.last?.fields[.ifRange] == "\"1\"")
        #expect(try await stage.get().text == "abcdefghijkl")
        #expect(stage.origin.count == 3)
    }

    @Test(arguments: [[.contentRange: "bytes 4-7/8", .etag: "\"2\""], [.contentRange: "bytes 4-11/12"]] as [Fields])
    func `a range of another file, or of one that it does not name, discards the part`(other: Fields) async throws {
        let stage = try await stage(file, reply(other, "56789012", status: 206), reply(Self.tagged, "12345678"))
        #expect(try await stage.cache.response(for: request, file).text == "12345678")
        #expect(stage.origin.requests.map { $0.fields[.range] } == [nil, "bytes=4-", nil])
    }

    @Test func `a file is stored in place of the part that was stored while it arrived`() async throws {
        let stage = CacheStage(
            Origin(reply(Self.tagged, String(repeating: "a", count: HTTPCache.partBytesMinimum + 8)))
        )
        var slow = HTTPCacheFile(key: CacheStage.url)
        slow.onRequest = { [clock = stage.clock] _ in clock.advance(by: .seconds(1)) }
        _ = try await stage.cache.response(for: request, slow)
        #expect(try await stage.get().source == .hit)
    }

    @Test func `a part is no response, and is not stored if the file may not be`() async throws {
        let stage = try await stage(file, reply())
        #expect(try await stage.get([.cacheControl: "only-if-cached"]).source == .cacheOnlyMiss)
        #expect(try stage.cache.configuration.storage.entries(for: CacheStage.url).map(\.isPart) == [true])
        var unstored = HTTPCacheFile(key: CacheStage.url)
        unstored.mayStore = { false }
        let none = try await self.stage(unstored, reply())
        #expect(try none.cache.configuration.storage.entries(for: CacheStage.url).isEmpty)
    }
}
