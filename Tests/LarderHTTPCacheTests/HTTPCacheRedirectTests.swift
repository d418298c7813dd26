import LarderHTTP
import LarderHTTPCache
import LarderTime
import LarderTransport
import TestSupport
import Testing

@Suite("HTTP cache: redirects, RFC 9110 §15.4", .oneMinute)
struct HTTPCacheRedirectTests {
    private static let first = "http://origin.test/latest"
    private static let page = "http://origin.test/pages/1"

    /// A server that redirects with these fields to a page that may be stored for an hour.
    private func stage(_ redirect: Fields, status: Int = 302, to location: String = "/pages/1") -> CacheStage {
        CacheStage(
            Origin { request, _ throws(TransportError) in
                guard request.url == Self.first else {
                    return reply([.cacheControl: "max-age=3600", .etag: "\"1\""], request.url)
                }
                var fields = redirect
                fields.set(.location, location)
                return reply(fields, "", status: status)
            }
        )
    }

    private func get(_ stage: CacheStage, _ request: TransportRequest, streams: Bool) async throws -> TransportResponse
    {
        streams ? try await stage.cache.open(request).whole() : try await stage.cache.send(request)
    }

    @Test(arguments: [[.cacheControl: "no-store"], Fields(), [.cacheControl: "no-cache"]], [false, true])
    func `a redirect that is not stored is asked for again, its stored target is not`(
        redirect: Fields,
        streams: Bool
    ) async throws {
        let stage = stage(redirect)
        for _ in 0..<2 {
            let response = try await get(stage, TransportRequest(url: Self.first), streams: streams)
            #expect(String(decoding: response.body, as: UTF8.self) == Self.page && response.redirectedTo == Self.page)
        }
        #expect(stage.origin.requests.map(\.url) == [Self.first, Self.page, Self.first])
        // The target is stored under its own URL.
        #expect(try await stage.get(url: Self.page).source == .hit)
        #expect(try await stage.get(url: Self.first).source == .hit)
    }

    @Test(arguments: [false, true])
    func `a redirect that may be stored is followed without a request`(streams: Bool) async throws {
        let stage = stage([.cacheControl: "max-age=60"], status: 301)
        for _ in 0..<2 {
            let response = try await get(stage, TransportRequest(url: Self.first), streams: streams)
            #expect(response.status == .ok && response.redirectedTo == Self.page)
        }
        #expect(stage.origin.count == 2)
        stage.clock.advance(by: .seconds(61))
        _ = try await get(stage, TransportRequest(url: Self.first), streams: streams)
        #expect(stage.origin.requests.map(\.url) == [Self.first, Self.page, Self.first])
    }

    @Test(arguments: [false, true])
    func `a redirect is returned if the request does not follow it, and stored`(streams: Bool) async throws {
        let stage = stage([.cacheControl: "max-age=60"])
        let request = TransportRequest(url: Self.first, followsRedirects: false)
        for _ in 0..<2 {
            let response = try await get(stage, request, streams: streams)
            #expect(response.status.code == 302 && response.redirectedTo == nil)
        }
        #expect(stage.origin.count == 1)
    }

    @Test func `a streamed redirect whose content breaks off is followed, and not stored`() async throws {
        let stage = stage(Fields())
        stage.origin.answer { [origin = stage.origin] request, _ throws(TransportError) in
            let isFirst = request.url == Self.first
            origin.breakStreams(after: isFirst ? 0 : nil)
            return isFirst
                ? reply([.location: "/pages/1", .cacheControl: "max-age=60"], "moved", status: 301)
                : reply([.cacheControl: "no-store"], "a page")
        }
        for _ in 0..<2 {
            let response = try await stage.cache.open(TransportRequest(url: Self.first)).whole()
            #expect(String(decoding: response.body, as: UTF8.self) == "a page" && response.redirectedTo == Self.page)
        }
        #expect(stage.origin.count == 4)
        // Who does not follow it reads its content, and gets the error.
        let redirect = try await stage.cache.open(TransportRequest(url: Self.first, followsRedirects: false))
        #expect(redirect.status.code == 301)
        await #expect { try await redirect.whole() } throws: { ($0 as? TransportError)?.code == .interrupted }
    }

    @Test func `the transport below is never asked to follow`() async throws {
        let stage = stage(Fields())
        _ = try await stage.get(url: Self.first)
        _ = try await stage.get(url: "http://origin.test/other", method: .post)
        _ = try await stage.cache.open(TransportRequest(url: "http://origin.test/streamed")).whole()
        #expect(stage.origin.count == 4 && stage.origin.requests.allSatisfy { !$0.followsRedirects })
    }

    @Test func `credentials and the methods of redirects are those of RFC 9110`() async throws {
        var request = TransportRequest(method: .post, url: Self.first, fields: [.authorization: "secret"])
        request.body = [1]
        for status in [302, 303] {
            let stage = stage(Fields(), status: status, to: "http://other.test/")
            _ = try await stage.cache.send(request)
            let last = try #require(stage.origin.requests.last)
            #expect(last.method == .get && last.url == "http://other.test/" && last.body.isEmpty)
            #expect(!last.fields.contains(.authorization))
        }
        for status in [301, 307, 308] {
            let inside = stage(Fields(), status: status)
            _ = try await inside.cache.send(request)
            let last = try #require(inside.origin.requests.last)
            #expect(last.method == .post && last.url == Self.page && last.body == [1])
            #expect(last.fields[.authorization] == "secret")
            // Content is not sent to another origin: the redirect is the response.
            let outside = stage(Fields(), status: status, to: "http://other.test/")
            #expect(try await outside.cache.send(request).status.code == status)
            #expect(outside.origin.count == 1)
        }
    }

    @Test func `a change that is answered by a redirect invalidates its own URL`() async throws {
        let stage = stage(Fields(), status: 303)
        _ = try await stage.get(url: Self.page)
        let changed = "http://origin.test/changed"
        _ = try await stage.get(url: changed)
        stage.origin.answer { _, number throws(TransportError) in
            number == 2 ? reply([.location: Self.page], "", status: 303) : reply([.cacheControl: "max-age=60"], "new")
        }
        let response = try await stage.get(url: changed, method: .post)
        #expect(response.redirectedTo == Self.page)
        #expect(try await stage.get(url: changed).source == .network)
    }

    @Test func `a loop ends after 16 redirects`() async throws {
        let stage = CacheStage(
            Origin { _, _ throws(TransportError) in reply([.location: Self.first], "", status: 302) }
        )
        await #expect { try await stage.get(url: Self.first) } throws: { ($0 as? TransportError)?.code == .interrupted }
        #expect(stage.origin.count == 17)
    }

    @Test(arguments: [false, true])
    func `nothing is stored of a response that the transport got by a redirect all the same`(
        streams: Bool
    ) async throws {
        let moved = Flag()
        let stage = CacheStage(
            Origin { request, _ throws(TransportError) in
                if request.fields.contains(.ifNoneMatch) {
                    return TransportResponse(
                        status: .notModified,
                        fields: [.etag: "\"1\""],
                        redirectedTo: moved.value ? Self.page : nil
                    )
                }
                return TransportResponse(
                    status: .ok,
                    fields: [.cacheControl: "max-age=60", .etag: "\"1\""],
                    body: Array((moved.value ? "moved" : "here").utf8),
                    redirectedTo: moved.value ? Self.page : nil
                )
            }
        )
        func text() async throws -> String {
            String(
                decoding: try await get(stage, TransportRequest(url: Self.first), streams: streams).body,
                as: UTF8.self
            )
        }
        #expect(try await text() == "here")
        moved.set(true)
        stage.clock.advance(by: .seconds(61))
        // Neither its 304 confirms what is stored, nor is its content stored.
        #expect(try await text() == "moved")
        moved.set(false)
        #expect(try await text() == "here")
    }
}
