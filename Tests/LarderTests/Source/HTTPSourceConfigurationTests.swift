import Foundation
import Larder
import LarderTesting
import SDKTestSupport
import TestSupport
import Testing

@Suite("HTTPSource: configuration", .oneMinute)
struct HTTPSourceConfigurationTests {
    private struct Article: Codable, Sendable, Equatable {
        var publishedAt: Date
        var headLine: String
    }

    private let scene = CacheScene()
    private static let json: Fields = [.contentType: "application/json"]

    private func source(_ configuration: HTTPSource.Configuration, _ transport: ScriptedTransport) -> HTTPSource {
        HTTPSource("http://server", transport: transport, configuration: configuration)
    }

    @Test func `decoder, encoder, fields and content types are settings`() async throws {
        var configuration = HTTPSource.Configuration()
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        decoder.dateDecodingStrategy = .iso8601
        configuration.decoder = decoder
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        encoder.dateEncodingStrategy = .iso8601
        encoder.outputFormatting = .sortedKeys
        configuration.encoder = encoder
        configuration.contentType = "application/vnd.news+json"
        configuration.fields = [.accept: "application/vnd.news+json", .userAgent: "reader"]
        configuration.acceptsContentType = { ["application/vnd.news+json", "text/plain"].contains($0) }
        let text = "{\"head_line\":\"a\",\"published_at\":\"1970-01-01T00:00:00Z\"}"
        let transport = ScriptedTransport(script: [
            .text(text, fields: [.contentType: "text/plain; charset=utf-8"]),
            .text(text, fields: [.contentType: "application/vnd.news+json"]), .text(text, fields: Self.json),
        ])
        let source = source(configuration, transport)
        let article = Article(publishedAt: Date(timeIntervalSince1970: 0), headLine: "a")
        let fetched: Fetched<Article> = try await source.fetch("/a", context: FetchContext())
        #expect(fetched.value == article)
        #expect(try await source.send(.put, "/a", article, [.accept: "*/*"], as: Article.self).value == article)
        let requests = transport.requests
        #expect(
            requests[0].fields[.accept] == "application/vnd.news+json" && requests[0].fields[.userAgent] == "reader"
        )
        #expect(requests[1].fields.values(of: .accept) == ["*/*"] && requests[1].fields[.userAgent] == "reader")
        #expect(requests[1].fields[.contentType] == "application/vnd.news+json")
        #expect(String(decoding: requests[1].body, as: UTF8.self) == text)
        let error = await #expect(throws: LarderError.self) {
            let _: Fetched<Article> = try await source.fetch("/a", context: FetchContext())
        }
        #expect(error?.code == .unexpectedReply && error?.description.contains("'application/json'") == true)
    }

    @Test func `an API decides what says that a resource is gone`() async throws {
        var configuration = HTTPSource.Configuration()
        configuration.isGone = { reply, isAccepted in isAccepted && reply.status.code == 403 }
        let transport = ScriptedTransport(script: [
            .text("{}", status: .forbidden, fields: Self.json), .text("{}", status: .notFound, fields: Self.json),
            .text("no", status: .forbidden, fields: [.contentType: "text/plain"]),
        ])
        let source = source(configuration, transport)
        let fetched: Fetched<Article> = try await source.fetch("/a", context: FetchContext())
        #expect(fetched.isGone)
        for status in [404, 403] {
            let error = await #expect(throws: LarderError.self) {
                let _: Fetched<Article> = try await source.fetch("/a", context: FetchContext())
            }
            #expect(error?.code == .rejected && error?.status == status)
        }
    }

    @Test func `an error document of an API becomes an error, and keeps status and Retry-After`() async throws {
        struct Document: Decodable { var code: String; var message: String }
        var configuration = HTTPSource.Configuration()
        configuration.mapError = { error, reply in
            guard let document = try? JSONDecoder().decode(Document.self, from: Data(reply.body)) else { return error }
            return LarderError(.rejected, document.message, problem: document.code)
        }
        var fields = Self.json
        fields.set(.retryAfter, "30")
        let transport = ScriptedTransport(script: [
            .text("{\"code\":\"overload\",\"message\":\"Too many\"}", status: .serviceUnavailable, fields: fields)
        ])
        let source = source(configuration, transport)
        let error = await #expect(throws: LarderError.self) {
            let _: Fetched<Article> = try await source.fetch("/a", context: FetchContext())
        }
        #expect(error?.description == "Too many" && error?.problem == "overload")
        #expect(error?.status == 503 && error?.retryAfter == .seconds(30))
    }

    @Test func `a wait that the content of a reply asks for is an hour at most`() async throws {
        var configuration = HTTPSource.Configuration()
        configuration.retryAfter = { _ in .seconds(120_000) }
        let transport = ScriptedTransport(script: [.text("{}", status: .serviceUnavailable, fields: Self.json)])
        let source = source(configuration, transport)
        let error = await #expect(throws: LarderError.self) { try await source.send(.delete, "/a") }
        #expect(error?.retryAfter == .seconds(3_600))
    }

    @Test func `the fields of a reply can become a part of the value`() async throws {
        let cache = try scene.cache()
        var fields = Self.json
        fields.add("X-Total-Count", "42")
        fields.set(.etag, "\"1\"")
        let transport = ScriptedTransport(script: [
            .text("[1]", fields: fields), .text("", status: .notModified, fields: [.etag: "\"1\""]),
        ])
        let source = source(HTTPSource.Configuration(), transport)
        let total = Resource<Int>("total") { context in
            try await source.fetch("/items", context: context, as: [Int].self) { reply in
                reply.fields["X-Total-Count"].flatMap { Int($0) } ?? reply.value.count
            }
        }
        #expect(try await cache.value(total) == 42)
        #expect(try await cache.refresh(total).value == 42)
        #expect(transport.requests.last?.fields[.ifNoneMatch] == "\"1\"")
    }

    @Test func `a content coding that was not asked for is named in the error`() async throws {
        let transport = ScriptedTransport(script: [
            ScriptedTransport.Reply(
                fields: [.contentType: "application/json", .contentEncoding: "gzip"],
                [.bytes([0x1F, 0x8B, 8, 0])]
            )
        ])
        let source = source(HTTPSource.Configuration(), transport)
        let error = await #expect(throws: LarderError.self) {
            let _: Fetched<Article> = try await source.fetch("/a", context: FetchContext())
        }
        #expect(error?.code == .unexpectedReply && error?.description.contains("content coding 'gzip'") == true)
    }
}
