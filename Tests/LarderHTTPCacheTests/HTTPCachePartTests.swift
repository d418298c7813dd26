import LarderHTTP
import LarderTime
import LarderTransport
import TestSupport
import Testing

@testable import LarderHTTPCache

/// Partial responses, RFC 9111 §3.3 and §3.4.
@Suite("HTTP cache: parts", .oneMinute)
struct HTTPCachePartTests {
    /// What a server answers that has ten bytes under a tag; without a tag it has no validator.
    private static func serve(_ tag: String?, _ content: String = "0123456789", _ more: Fields = Fields())
        -> Origin.Handler
    {
        { request, _ throws(TransportError) in
            var fields: Fields = [.cacheControl: "max-age=60"]
            if let tag { fields.add(.etag, tag) }
            for field in more { fields.add(field.name, field.value) }
            let tags = request.fields.combined(.ifNoneMatch)?.split(separator: ", ").map(String.init) ?? []
            if let tag, tags.contains(tag) { return reply(fields, "", status: 304) }
            guard let range = request.fields[.range].flatMap({ ByteRange.parse($0) })?.first,
                request.fields[.ifRange].map({ $0 == tag }) ?? true
            else { return reply(fields, content) }
            guard let bytes = range.resolved(against: content.utf8.count) else {
                return reply([.contentRange: "bytes */\(content.utf8.count)"], "", status: 416)
            }
            fields.add(.contentRange, "bytes \(bytes.lowerBound)-\(bytes.upperBound - 1)/\(content.utf8.count)")
            return reply(fields, String(content.dropFirst(bytes.lowerBound).prefix(bytes.count)), status: 206)
        }
    }

    private func get(_ stage: CacheStage, _ fields: Fields, streams: Bool) async throws -> (Int, String) {
        let request = TransportRequest(url: CacheStage.url, fields: fields)
        let response = streams ? try await stage.cache.open(request).whole() : try await stage.cache.send(request)
        return (response.status.code, String(decoding: response.body, as: UTF8.self))
    }

    @Test(arguments: [412, 416], [false, true])
    func `a reply to the condition or range of one request is not stored`(code: Int, streams: Bool) async throws {
        let stage = CacheStage(
            Origin { request, _ throws(TransportError) in
                let isPlain = !request.fields.contains(.range) && !request.fields.contains(.ifMatch)
                return reply([.cacheControl: "max-age=60"], isPlain ? "whole" : "", status: isPlain ? 200 : code)
            }
        )
        let fields: Fields = code == 416 ? [.range: "bytes=900-"] : [.ifMatch: "\"9\""]
        #expect(try await get(stage, fields, streams: streams).0 == code)
        #expect(try await get(stage, [:], streams: streams) == (200, "whole"))
    }

    @Test(arguments: ["\"1\"", "W/\"1\"", nil], [false, true])
    func `a fresh part answers ranges within it, and no others`(tag: String?, streams: Bool) async throws {
        let stage = CacheStage(Origin(Self.serve(tag)))
        #expect(try await get(stage, [.range: "bytes=4-9"], streams: streams) == (206, "456789"))
        for (range, text) in [("bytes=4-9", "456789"), ("bytes=5-6", "56"), ("bytes=-2", "89"), ("bytes=8-", "89")] {
            let part = try await stage.get([.range: range])
            #expect(part.source == .hit && part.status == .partialContent && part.text == text, "\(range)")
            #expect(
                part.fields[.contentRange]?.hasSuffix("/10") == true && part.fields[.contentLength] == "\(text.count)"
            )
        }
        #expect(stage.origin.count == 1)
        #expect(try await stage.get([.range: "bytes=3-5"]).source == .network)
        #expect(try await stage.get(method: .head).source == .network)
    }

    @Test(arguments: [false, true])
    func `parts under one strong tag that overlap or adjoin become one, and the whole at last`(
        streams: Bool
    ) async throws {
        let stage = CacheStage(Origin(Self.serve("\"1\"")))
        #expect(try await get(stage, [.range: "bytes=4-6"], streams: streams) == (206, "456"))
        #expect(try await get(stage, [.range: "bytes=6-9"], streams: streams) == (206, "6789"))
        #expect(try await stage.get([.range: "bytes=4-9"]).source == .hit)
        #expect(try await get(stage, [.range: "bytes=0-3"], streams: streams) == (206, "0123"))
        let whole = try await stage.get()
        #expect(whole.source == .hit && whole.status == .ok && whole.text == "0123456789")
        #expect(!whole.fields.contains(.contentRange) && whole.fields[.contentLength] == "10")
        #expect(stage.origin.count == 3)
    }

    @Test(arguments: [("W/\"1\"", "W/\"1\""), ("\"1\"", "\"2\""), (nil, nil)] as [(String?, String?)])
    func `parts without one strong tag are not combined: the newest is kept`(first: String?, second: String?)
        async throws
    {
        let stage = CacheStage(Origin(Self.serve(first)))
        _ = try await stage.get([.range: "bytes=0-4"])
        stage.origin.answer(Self.serve(second, "abcdefghij"))
        #expect(try await stage.get([.range: "bytes=5-9"]).text == "fghij")
        #expect(try await stage.get([.range: "bytes=5-9"]).source == .hit)
        #expect(try await stage.get([.range: "bytes=0-4"]).text == "abcde")
    }

    @Test(arguments: [false, true])
    func `a request for the whole asks for the rest of a stored beginning`(streams: Bool) async throws {
        let stage = CacheStage(Origin(Self.serve("\"1\"")))
        _ = try await stage.get([.range: "bytes=0-4"])
        #expect(try await get(stage, Fields(), streams: streams) == (200, "0123456789"))
        let asked = try #require(stage.origin.requests.last?.fields)
        #expect(asked[.range] == "bytes=5-" && asked[.ifRange] == "\"1\"" && !asked.contains(.ifNoneMatch))
        #expect(try await stage.get().source == .hit)
        #expect(stage.origin.count == 2)
    }

    @Test(arguments: [false, true])
    func `a beginning of another version is not completed`(streams: Bool) async throws {
        let stage = CacheStage(Origin(Self.serve("\"1\"")))
        _ = try await stage.get([.range: "bytes=0-4"])
        stage.origin.answer(Self.serve("\"2\"", "abc"))
        #expect(try await get(stage, Fields(), streams: streams) == (200, "abc"))
        // A server that ignores If-Range, and one whose content is shorter now.
        for (status, fields) in [
            (206, [.etag: "\"2\"", .contentRange: "bytes 5-9/10"]), (416, [.contentRange: "bytes */3"]),
        ] as [(Int, Fields)] {
            let other = CacheStage(Origin(Self.serve("\"1\"")))
            _ = try await other.get([.range: "bytes=0-4"])
            other.origin.answer { request, number throws(TransportError) in
                request.fields.contains(.range)
                    ? reply(fields, "fghij", status: status)
                    : try Self.serve("\"2\"", "abcdefghij")(request, number)
            }
            #expect(try await get(other, Fields(), streams: streams) == (200, "abcdefghij"))
            #expect(other.origin.count == 3)
        }
    }

    @Test func `without a strong tag, or from its middle, a part is not completed`() async throws {
        for (tag, range) in [("W/\"1\"", "bytes=0-4"), (nil, "bytes=0-4"), ("\"1\"", "bytes=1-4")]
            as [(String?, String)]
        {
            let stage = CacheStage(Origin(Self.serve(tag)))
            _ = try await stage.get([.range: range])
            #expect(try await stage.get().text == "0123456789")
            let asked = try #require(stage.origin.requests.last?.fields)
            #expect(!asked.contains(.range) && !asked.contains(.ifNoneMatch))
        }
    }

    @Test func `a stale part is validated and serves its range after the 304`() async throws {
        let stage = CacheStage(Origin(Self.serve("\"1\"")))
        _ = try await stage.get([.range: "bytes=4-9"])
        stage.clock.advance(by: .seconds(61))
        let part = try await stage.get([.range: "bytes=5-6"])
        #expect(part.source == .revalidated && part.status == .partialContent && part.text == "56")
        #expect(stage.origin.requests.last?.fields[.ifNoneMatch] == "\"1\"")
        #expect(try await stage.get([.range: "bytes=4-9"]).source == .hit)
    }

    @Test func `a combined response has the fields of the newest part (§3.4)`() async throws {
        let stage = CacheStage(Origin(Self.serve("\"1\"", "0123456789", [.custom("X-A"): "1", .custom("X-B"): "1"])))
        _ = try await stage.get([.range: "bytes=0-4"])
        stage.origin.answer(Self.serve("\"1\"", "0123456789", [.custom("X-A"): "2"]))
        _ = try await stage.get([.range: "bytes=5-9"])
        let whole = try await stage.get()
        #expect(whole.source == .hit && whole.fields[.custom("X-A")] == "2" && whole.fields[.custom("X-B")] == "1")
    }

    @Test(
        arguments: [
            ([.contentRange: "bytes 0-4/*"], "01234"), ([.contentRange: "bytes 0-4/10"], "0123"),
            ([.contentRange: "bytes 0-4/4"], "01234"), ([.contentRange: "lines 0-4/10"], "01234"),
            ([.contentType: "multipart/byteranges; boundary=x"], "--x--"), ([:], "01234"),
            ([.contentRange: "bytes 0-4/10", .contentEncoding: "gzip"], "01234"),
            ([.contentRange: "bytes 0-4/10", .cacheControl: "no-store"], "01234"),
        ] as [(Fields, String)]
    )
    func `a part is not stored if its place is not known or storing is forbidden`(fields: Fields, body: String)
        async throws
    {
        let stage = CacheStage(
            Origin { _, _ throws(TransportError) in
                var all: Fields = [.etag: "\"1\"", .cacheControl: "max-age=60"]
                for field in fields {
                    if field.name == .cacheControl { all.remove(.cacheControl) }
                    all.add(field.name, field.value)
                }
                return reply(all, body, status: 206)
            }
        )
        for _ in 0..<2 { #expect(try await stage.get([.range: "bytes=0-4"]).source == .network) }
        #expect(stage.cache.statistics.stores == 0)
    }

    @Test func `a part stands in without a network for its own range only`() async throws {
        let stage = CacheStage(Origin(Self.serve("\"1\"")))
        _ = try await stage.get([.range: "bytes=0-4"])
        stage.clock.advance(by: .seconds(61))
        stage.origin.answer { _, _ throws(TransportError) in throw TransportError(.unreachable, "down") }
        #expect(try await stage.get([.range: "bytes=1-2"]).text == "12")
        await #expect(throws: TransportError.self) { try await stage.get() }
        await #expect(throws: TransportError.self) { try await stage.get([.range: "bytes=5-6"]) }
    }

    @Test func `a part comes back from its bytes as it was, an impossible one does not`() throws {
        func entry(_ count: Int, _ part: HTTPCacheEntry.Part?) -> HTTPCacheEntry {
            HTTPCacheEntry(
                bodyID: "1",
                bodyCount: count,
                status: .ok,
                fields: [.etag: "\"1\""],
                selectors: [],
                requestedAt: WallTime(seconds: 1),
                receivedAt: WallTime(seconds: 2),
                part: part
            )
        }
        for offset in [0, 5] {
            let sound = entry(5, HTTPCacheEntry.Part(offset: offset, total: 10))
            #expect(HTTPCacheEntry.decode(HTTPCacheEntry.encode([sound])) == [sound])
        }
        for (count, offset, total) in [(5, 6, 10), (5, -1, 10), (5, 0, 4), (-1, 0, 10), (5, .max, .max)] {
            let impossible = entry(count, HTTPCacheEntry.Part(offset: offset, total: total))
            #expect(HTTPCacheEntry.decode(HTTPCacheEntry.encode([impossible])) == nil)
        }
    }

    @Test func `whatever ranges are asked for, the bytes are those of one version`() async throws {
        let seed: UInt64 = 0x5EED_0049
        var random = SeededGenerator(seed: seed)
        let stage = CacheStage(Origin())
        var content = ""
        for round in 0..<2_000 {
            if round % 50 == 0 {
                let letter = Character(Unicode.Scalar(UInt8(97 + round / 50 % 26)))
                content = String((0..<random.uniform(in: 1..<40)).map { $0 % 2 == 0 ? letter : "." })
                let strength = random.uniform(in: 0..<4) == 0 ? "W/" : ""
                stage.origin.answer(Self.serve("\(strength)\"\(round)\"", content))
                stage.clock.advance(by: .seconds(61))
            }
            let first = random.uniform(in: 0..<content.utf8.count)
            let last = random.uniform(in: first..<content.utf8.count)
            let range = ["bytes=\(first)-\(last)", "bytes=\(first)-", "bytes=-\(last + 1)", nil][
                random.uniform(in: 0..<4)
            ]
            let response = try await stage.get(range.map { [.range: $0] } ?? Fields())
            let bytes = range.flatMap { ByteRange.parse($0) }?.first?.resolved(against: content.utf8.count)
            let wanted = bytes.map { String(content.dropFirst($0.lowerBound).prefix($0.count)) } ?? content
            #expect(response.text == wanted, "seed \(seed), round \(round): \(range ?? "all"), \(response.explanation)")
            #expect(response.status.code == (bytes == nil ? 200 : 206))
        }
        #expect(stage.cache.statistics.hits > 500, "\(stage.cache.statistics)")
    }
}
