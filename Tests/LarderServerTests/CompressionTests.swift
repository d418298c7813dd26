import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime
import TestSupport
import Testing

@testable import LarderBackend
@testable import LarderServer

@Suite("Compressed replies", .oneMinute)
struct CompressionTests {
    private static let feed = "/v1/feed?limit=20"
    private static let gzip = ["Accept-Encoding": "gzip"]

    private func inflate(_ bytes: [UInt8], _ format: CompressionFormat = .gzip) throws -> [UInt8] {
        var inflater = Inflater(format)
        var content = [UInt8](repeating: 0, count: 1 << 20)
        var consumed = 0
        let count = try inflater.read(content.count, into: &content, from: bytes.span, consumed: &consumed)
        guard inflater.hasEnded else { throw InflateError.truncated }
        return Array(content[..<count])
    }

    @Test func `a client that accepts a coding gets the same content in fewer bytes, under another tag`() async throws {
        let scene = try Scene()
        let plain = try await scene.ask("GET", Self.feed)
        #expect(
            plain.field("Content-Encoding") == nil && plain.field("Vary") == "Authorization, Origin, Accept-Encoding"
        )
        let plainTag = try #require(plain.field("ETag"))
        for (accepted, coding, format) in [("br, gzip", "gzip", CompressionFormat.gzip), ("deflate", "deflate", .zlib)]
        {
            for _ in 0..<3 {
                let coded = try await scene.ask("GET", Self.feed, ["Accept-Encoding": accepted])
                #expect(coded.field("Content-Encoding") == coding && coded.field("Vary") == plain.field("Vary"))
                #expect(
                    coded.field("Content-Length") == "\(coded.body.count)" && coded.body.count < plain.body.count / 2
                )
                #expect(coded.field("ETag") == "\(plainTag.dropLast())-\(coding)\"")
                #expect(try inflate(coded.body, format) == plain.body)
            }
        }
        for rejected in ["br", "identity", "gzip;q=0", "identity, gzip;q=0.5"] {
            #expect(try await scene.ask("GET", Self.feed, ["Accept-Encoding": rejected]).body == plain.body)
        }
        let head = try await scene.ask("HEAD", Self.feed, Self.gzip)
        #expect(head.field("Content-Encoding") == "gzip" && head.body.isEmpty)
    }

    @Test func `what is small, an image or a part is sent as it is`() async throws {
        let scene = try Scene()
        let small = try await scene.ask("GET", "/v1/profiles/user_1", Self.gzip)
        #expect(small.body.count < 1_024 && small.field("Content-Encoding") == nil)
        #expect(small.field("Vary")?.contains("Accept-Encoding") == false)
    }

    @Test func `a 304 has the tag that the client sent, and a tag of a coding it does not accept is unknown`()
        async throws
    {
        let scene = try Scene()
        let plain = try #require(try await scene.ask("GET", Self.feed).field("ETag"))
        let coded = try #require(try await scene.ask("GET", Self.feed, Self.gzip).field("ETag"))
        for tag in [plain, coded, "\"x\", \(coded)"] {
            for _ in 0..<3 {
                let reply = try await scene.ask("GET", Self.feed, ["Accept-Encoding": "gzip", "If-None-Match": tag])
                #expect(reply.status == 304 && reply.field("ETag") == (tag == plain ? plain : coded))
                #expect(
                    reply.field("Vary")?.contains("Accept-Encoding") == true && reply.field("Content-Encoding") == nil
                )
            }
        }
        #expect(try await scene.ask("GET", Self.feed, ["If-None-Match": plain]).status == 304)
        #expect(try await scene.ask("GET", Self.feed, ["If-None-Match": coded]).status == 200)
        let other = try await scene.ask("GET", Self.feed, ["If-None-Match": coded, "Accept-Encoding": "deflate"])
        #expect(other.status == 200 && other.field("Content-Encoding") == "deflate")
        #expect(try await scene.ask("POST", "/v1/posts", #"{"text":"hi"}"#).status == 201)
        let changed = try await scene.ask("GET", Self.feed, ["Accept-Encoding": "gzip", "If-None-Match": coded])
        #expect(changed.status == 200 && changed.field("ETag") != coded)
    }

    @Test func `an edit may be based on the tag of any coding, and not on that of other content`() async throws {
        let scene = try Scene()
        let tag = try #require(try await scene.ask("GET", "/v1/me").field("ETag"))
        let wrong = ["If-Match": "\"wrong-gzip\""]
        #expect(try await scene.ask("PATCH", "/v1/me", as: "ana", #"{"bio":"a"}"#, wrong).status == 412)
        let coded = ["If-Match": "\(tag.dropLast())-gzip\""]
        #expect(try await scene.ask("PATCH", "/v1/me", as: "ana", #"{"bio":"a"}"#, coded).status == 200)
        #expect(try await scene.ask("PATCH", "/v1/me", as: "ana", #"{"bio":"b"}"#, coded).status == 412)
    }

    @Test func `nothing is compressed without zlib`() throws {
        let request = try Request(.get, Self.feed, [("Host", "h"), ("Accept-Encoding", "gzip")])
        #expect(Negotiation.coding(request) == .gzip)
        #expect(Negotiation.coding(request, zlib: Zlib.load("libz.so.0.none")) == nil)
    }

    private func representation(_ body: [UInt8]) -> Representation {
        Representation(body: body, cacheControl: CachePolicy.feed)
    }

    private func reply(of representation: Representation, in coding: String) throws -> Reply {
        let request = try Request(.get, Self.feed, [("Host", "h"), ("Accept-Encoding", coding)])
        return representation.reply(to: request, now: WallTime(seconds: 0))
    }

    @Test func `a representation is compressed, and not when that is of no use`() throws {
        let text = representation([UInt8](repeating: 0x20, count: 5_000))
        for coding in ["gzip", "deflate", "gzip"] {
            let coded = try reply(of: text, in: coding)
            #expect(coded.head["Content-Encoding"] == coding && coded.bytesSavedByCoding == 5_000 - coded.body.count)
            #expect(text.byteCount > 5_000 + coded.body.count)
        }
        #expect(try reply(of: text, in: "identity").body.count == 5_000)
        var random = SeededGenerator(seed: 4)
        let noise = representation((0..<5_000).map { _ in UInt8(truncatingIfNeeded: random.next()) })
        #expect(try reply(of: noise, in: "gzip").head["Content-Encoding"] == nil)
        let small = representation([UInt8](repeating: 0x20, count: 1_023))
        #expect(try reply(of: small, in: "gzip").head["Content-Encoding"] == nil && !small.isNegotiated)
    }

    @Test func `the response cache is bounded, and has replies of one state`() {
        let one = representation([UInt8](repeating: 0x20, count: 4_000))
        let cache = ResponseCache(bytesMaximum: one.byteCount * 4 + 100)
        func version(_ viewer: Int64, of stamp: UInt64 = 0) -> ResponseCache.Version {
            ResponseCache.Version(target: Self.feed, credentials: "\(viewer)", stamp: stamp)
        }
        for viewer in Int64(0)..<4 { cache.store(one, for: version(viewer)) }
        #expect((Int64(0)..<4).allSatisfy { cache.find(version($0)) != nil })
        cache.store(one, for: version(4))
        #expect(cache.find(version(4)) != nil && cache.find(version(0)) == nil)
        #expect(cache.find(version(4, of: 1)) == nil)
        cache.store(one, for: version(5, of: 1))
        cache.store(one, for: version(6))
        #expect(cache.find(version(5, of: 1)) != nil && cache.find(version(4)) == nil && cache.find(version(6)) == nil)
    }

    @Test func `faults cut and corrupt the compressed bytes, and faults about text are seen in text`() async throws {
        let stage = try Stage()
        let clean = try await stage.ask("GET", Self.feed, fields: Self.gzip)
        let content = try inflate(clean.body)
        let feed = FaultMatch("GET", "/v1/feed")
        try stage.world.set(Fault(id: "f", .corrupt(bytes: 3), when: feed))
        let corrupt = try await stage.ask("GET", Self.feed, fields: Self.gzip)
        #expect(corrupt.field("Content-Encoding") == "gzip" && corrupt.body.count == clean.body.count)
        #expect(throws: InflateError.self) { try inflate(corrupt.body) }

        try stage.world.set(Fault(id: "f", .truncate(.byte(200)), when: feed))
        let short = try stage.send("GET", Self.feed, fields: Self.gzip)
        _ = try await short.read(until: "\r\n\r\n")
        let bytes = await short.readToEnd().bytes
        #expect(bytes.count == 200 && bytes == Array(clean.body.prefix(200)))
        #expect(throws: InflateError.truncated) { try inflate(bytes) }

        try stage.world.set(Fault(id: "f", .malformedJSON, when: feed))
        let text = try await stage.ask("GET", Self.feed, fields: Self.gzip)
        #expect(text.field("Content-Encoding") == nil && text.body.count == content.count && (try? text.json) == nil)
    }

    @Test func `a 304 to a condition without a tag has the tag that the 200 would have`() async throws {
        let scene = try Scene()
        let coded = try #require(try await scene.ask("GET", Self.feed, Self.gzip).field("ETag"))
        let reply = try await scene.ask("GET", Self.feed, ["Accept-Encoding": "gzip", "If-None-Match": "*"])
        #expect(reply.status == 304 && reply.field("ETag") == coded)
    }

    @Test func `the journal counts the bytes that compression saved`() async throws {
        let scene = try Scene()
        let plain = try await scene.ask("GET", Self.feed)
        var saved = 0
        for _ in 0..<4 {
            saved += plain.body.count - (try await scene.ask("GET", Self.feed, Self.gzip)).body.count
        }
        _ = try await scene.ask("HEAD", Self.feed, Self.gzip)
        let entries = await scene.backend.main.journal()
        #expect(entries.map(\.bytesSavedByCoding).reduce(0, +) == saved && saved > 4_000)
        #expect(entries.first?.bytesSavedByCoding == 0 && entries.last?.bytesSavedByCoding == 0)
    }
}
