import LarderHTTP
import LarderTime
import LarderTransport
import TestSupport
import Testing

@testable import LarderHTTPCache

@Suite("HTTP cache: ranges", .oneMinute)
struct HTTPCacheRangeTests {
    private let terms: Fields = [.cacheControl: "max-age=60", .etag: "\"1\""]

    /// What a server without a cache of its own answers that has `content` under a tag.
    private static func serve(_ content: String, _ tag: String) -> Origin.Handler {
        { request, _ throws(TransportError) in
            var fields: Fields = [.cacheControl: "max-age=60", .etag: tag]
            let tags = request.fields.combined(.ifNoneMatch)?.split(separator: ", ").map(String.init) ?? []
            if tags.contains(tag) { return reply(fields, "", status: 304) }
            guard let range = request.fields[.range].flatMap({ ByteRange.parse($0) })?.first,
                let bytes = range.resolved(against: content.utf8.count),
                request.fields[.ifRange].map({ $0 == tag }) ?? true
            else { return reply(fields, content) }
            fields.add(.contentRange, "bytes \(bytes.lowerBound)-\(bytes.upperBound - 1)/\(content.utf8.count)")
            return reply(fields, String(content.dropFirst(bytes.lowerBound).prefix(bytes.count)), status: 206)
        }
    }

    @Test func `a part is cut from a fresh whole, also where If-Range holds`() async throws {
        let stage = CacheStage(Origin(reply(terms, "0123456789")))
        _ = try await stage.get()
        for (fields, text, range) in [
            ([.range: "bytes=2-4"] as Fields, "234", "bytes 2-4/10"), ([.range: "bytes=-3"], "789", "bytes 7-9/10"),
            ([.range: "bytes=8-99"], "89", "bytes 8-9/10"),
            ([.range: "bytes=0-0", .ifRange: "\"1\""], "0", "bytes 0-0/10"),
        ] {
            let part = try await stage.get(fields)
            #expect(part.source == .hit && part.status == .partialContent && part.text == text)
            #expect(part.fields[.contentRange] == range && part.fields[.contentLength] == "\(text.count)")
        }
        for fields: Fields in [
            [.range: "bytes=0-0", .ifRange: "\"2\""], [.range: "bytes=0-0", .ifRange: "W/\"1\""],
            [.range: "bytes=0-0, 2-3"], [.range: "lines=1-2"], [.range: "bytes=3-1"],
        ] {
            let whole = try await stage.get(fields)
            #expect(whole.source == .hit && whole.status == .ok && whole.text == "0123456789", "\(fields)")
        }
        #expect(stage.origin.count == 1)
    }

    @Test func `a part of a stale whole is cut after a 304, which is asked for beside the range`() async throws {
        let stage = CacheStage(Origin(Self.serve("0123456789", "\"1\"")))
        _ = try await stage.get()
        stage.clock.advance(by: .seconds(61))
        let part = try await stage.get([.range: "bytes=2-4"])
        #expect(part.source == .revalidated && part.status == .partialContent && part.text == "234")
        #expect(stage.origin.requests.last?.fields[.ifNoneMatch] == "\"1\"")
        #expect(stage.origin.requests.last?.fields[.range] == "bytes=2-4")
        #expect(try await stage.get().source == .hit)
    }

    @Test(arguments: [HTTPCache.Response.Source.hit, .revalidated, .stale(.serverFailed(.serviceUnavailable))])
    func `the limit of a request counts what it gets, and not what is stored`(
        _ source: HTTPCache.Response.Source
    ) async throws {
        let stage = CacheStage(Origin(Self.serve("0123456789", "\"1\""))) { $0.policy.staleIfError = .seconds(600) }
        _ = try await stage.get()
        if source != .hit { stage.clock.advance(by: .seconds(61)) }
        if case .stale = source { stage.origin.answer { _, _ in reply(status: 503) } }
        var request = TransportRequest(url: CacheStage.url, fields: [.range: "bytes=2-4"])
        request.bodyLimit = 5
        let part = try await stage.cache.response(for: request)
        #expect(part.source == source && part.text == "234")
    }

    @Test(arguments: [false, true])
    func `a part from the server is passed on and not stored`(_ hasWhole: Bool) async throws {
        let stage = CacheStage(Origin(Self.serve("0123456789", "\"1\"")))
        if hasWhole { _ = try await stage.get() }
        stage.origin.answer(Self.serve("abcdefghij", "\"2\""))
        for _ in 0..<2 {
            let part = try await stage.get([.range: "bytes=2-4", .cacheControl: "no-cache"])
            #expect(part.source == .network && part.status == .partialContent && part.text == "cde")
        }
        let whole = try await stage.get()
        #expect(whole.source == (hasWhole ? .hit : .network) && whole.text == (hasWhole ? "0123456789" : "abcdefghij"))
    }

    @Test func `streams of parts behave the same`() async throws {
        let stage = CacheStage(Origin(Self.serve("0123456789", "\"1\"")))
        func open(_ fields: Fields) async throws -> (Int, String) {
            let stream = try await stage.cache.open(TransportRequest(url: CacheStage.url, fields: fields))
            var text = ""
            for try await piece in stream.body { text += String(decoding: piece, as: UTF8.self) }
            return (stream.status.code, text)
        }
        #expect(try await open([.range: "bytes=1-2"]) == (206, "12"))
        #expect(try await open([:]) == (200, "0123456789"))
        #expect(try await open([.range: "bytes=1-2"]) == (206, "12"))
        stage.clock.advance(by: .seconds(61))
        #expect(try await open([.range: "bytes=3-4"]) == (206, "34"))
        #expect(stage.origin.requests.last?.fields.contains(.ifNoneMatch) == true)
        stage.origin.answer(Self.serve("abcdefghij", "\"2\""))
        #expect(try await open([.range: "bytes=3-4", .cacheControl: "no-cache"]) == (206, "de"))
        #expect(try await open([:]) == (200, "0123456789"))
    }
}
