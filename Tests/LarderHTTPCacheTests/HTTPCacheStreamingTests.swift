import LarderHTTP
import LarderTime
import LarderTransport
import TestSupport
import Testing

@testable import LarderHTTPCache

@Suite("HTTP cache: streams", .oneMinute)
struct HTTPCacheStreamingTests {
    private let fresh: Fields = [.cacheControl: "max-age=60", .etag: "\"1\""]

    private func open(_ stage: CacheStage, _ fields: Fields = Fields()) async throws -> (status: Int, pieces: [String])
    {
        let stream = try await stage.cache.open(TransportRequest(url: CacheStage.url, fields: fields))
        var pieces: [String] = []
        for try await piece in stream.body { pieces.append(String(decoding: piece, as: UTF8.self)) }
        return (stream.status.code, pieces)
    }

    @Test func `content is given on as it comes, and stored at its end`() async throws {
        let stage = CacheStage(Origin(reply(fresh, "0123456789")))
        #expect(try await open(stage).pieces == ["0123", "4567", "89"])
        #expect(try await open(stage).pieces == ["0123456789"])
        #expect(try await stage.get().source == .hit)
        #expect(stage.origin.count == 1)
    }

    @Test func `truncated and unread content is not stored`() async throws {
        let stage = CacheStage(Origin(reply(fresh, "0123456789")))
        stage.origin.breakStreams(after: 2)
        await #expect(throws: TransportError.self) { try await open(stage) }
        stage.origin.breakStreams(after: nil)
        do {
            let stream = try await stage.cache.open(TransportRequest(url: CacheStage.url))
            var pieces = stream.body.makeAsyncIterator()
            _ = try await pieces.next()
        }
        #expect(try await stage.get().source == .network)
    }

    @Test func `a truncated replacement leaves the stored response`() async throws {
        let stage = CacheStage(
            Origin(reply([.cacheControl: "max-age=1, stale-if-error=60", .etag: "\"1\""], "0123456789"))
        )
        _ = try await open(stage)
        stage.clock.advance(by: .seconds(2))
        stage.origin.breakStreams(after: 1)
        stage.origin.answer { [fresh] _, _ in reply(fresh, "9876543210") }
        await #expect(throws: TransportError.self) { try await open(stage) }
        stage.origin.answer { _, _ throws(TransportError) in throw TransportError(.unreachable, "down") }
        #expect(try await open(stage).pieces == ["0123456789"])
    }

    @Test func `a 304 serves the stored response, and a failure serves a permitted stale one`() async throws {
        let terms: Fields = [.cacheControl: "max-age=1, stale-if-error=60", .etag: "\"1\""]
        let stage = CacheStage(Origin(reply(terms, "0123456789")))
        _ = try await open(stage)
        stage.clock.advance(by: .seconds(2))
        stage.origin.answer { _, _ in reply(terms, "", status: 304) }
        #expect(try await open(stage).pieces == ["0123456789"])
        stage.clock.advance(by: .seconds(2))
        stage.origin.answer { _, _ in reply(Fields(), "sorry", status: 503) }
        #expect(try await open(stage) == (200, ["0123456789"]))
        #expect(try await open(stage, [.cacheControl: "no-cache"]) == (503, ["sorry"]))
    }

    @Test func `content above the limit is returned, not stored, and removes the stored response`() async throws {
        let stage = CacheStage(Origin(reply(fresh, "0123"))) { $0.policy.bodyBytesMaximum = 6 }
        _ = try await open(stage)
        stage.clock.advance(by: .seconds(100))
        stage.origin.answer { [fresh] _, _ in reply(fresh, "0123456789") }
        #expect(try await open(stage).pieces == ["0123", "4567", "89"])
        #expect(try await open(stage).pieces.count == 3)
        #expect(!stage.origin.requests[2].fields.contains(.ifNoneMatch))
    }

    @Test func `no-store passes through, a change invalidates as soon as its head is there`() async throws {
        let stage = CacheStage(Origin(reply([.cacheControl: "no-store"], "0123456789")))
        #expect(try await open(stage).pieces.count == 3)
        stage.origin.answer { [fresh] _, _ in reply(fresh) }
        _ = try await open(stage)
        #expect(stage.origin.count == 2, "Nothing was stored.")
        _ = try await stage.cache.open(TransportRequest(method: .post, url: CacheStage.url))
        stage.origin.answer { [fresh] _, _ in reply(fresh, "", status: 304) }
        #expect(try await stage.get().source == .revalidated)
    }

    @Test func `a response that is removed while it streams is not stored`() async throws {
        let stage = CacheStage(Origin(reply(fresh, "0123456789")))
        let stream = try await stage.cache.open(TransportRequest(url: CacheStage.url))
        await stage.cache.removeAll()
        for try await _ in stream.body {}
        #expect(try await stage.get().source == .network)
    }
}
