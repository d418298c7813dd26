import LarderHTTP
import LarderHTTPCache
import LarderTime
import LarderTransport
import TestSupport
import Testing

/// Separation of accounts and renewal of tokens.
@Suite("HTTP cache: accounts", .oneMinute)
struct HTTPCacheSeparationTests {
    @Test func `a response that varies with cookies is not stored by a cache that does not see them`() async throws {
        let varying: Fields = [.cacheControl: "max-age=60", .vary: "Accept, Cookie", .etag: "\"1\""]
        let stage = CacheStage(Origin(reply(varying))) { $0.policy.hidesCookies = true }
        for _ in 0..<2 { #expect(try await stage.get().source == .network) }
        let seeing = CacheStage(Origin(reply(varying)))
        _ = try await seeing.get([.cookie: "a=1"])
        #expect(try await seeing.get([.cookie: "a=1"]).source == .hit)
        #expect(try await seeing.get([.cookie: "a=2"]).source == .network)
    }

    @Test func `a request that may not be stored removes nothing`() async throws {
        let stage = CacheStage(
            Origin { request, _ throws(TransportError) in
                let isKnown = request.fields.contains(.ifNoneMatch)
                let fields: Fields = [.cacheControl: "max-age=60", .etag: "\"1\""]
                return isKnown ? reply(fields, "", status: 304) : reply(fields)
            }
        )
        _ = try await stage.get()
        _ = try await stage.get([.ifNoneMatch: "\"1\"", .cacheControl: "no-store, no-cache"])
        #expect(try await stage.get().source == .hit)
    }

    private static let old: Fields = [.authorization: "Bearer alice.1"]
    private static let renewed: Fields = [.authorization: "Bearer alice.2"]
    private static let other: Fields = [.authorization: "Bearer bob.1"]

    /// The account is the part of the token before the dot.
    private static let account: @Sendable (Fields) -> String = { fields in
        String(fields[.authorization]?.split(separator: ".").first?.dropFirst(7) ?? "")
    }

    private func stage(_ account: (@Sendable (Fields) -> String)?, _ more: Fields = Fields()) -> CacheStage {
        var fields: Fields = [.cacheControl: "max-age=60", .etag: "\"1\""]
        for field in more { fields.add(field.name, field.value) }
        let origin = Origin { [fields] request, _ throws(TransportError) in
            if request.fields.contains(.ifNoneMatch) { return reply(fields, "", status: 304) }
            return reply(fields, request.fields[.authorization] ?? "nobody")
        }
        return CacheStage(origin) { $0.policy.account = account }
    }

    @Test(arguments: [Fields(), [.vary: "Authorization"]])
    func `a renewed token of the same account finds what is stored`(vary: Fields) async throws {
        let stage = stage(Self.account, vary)
        _ = try await stage.get(Self.old)
        #expect(try await stage.get(Self.renewed).source == .hit)
        stage.clock.advance(by: .seconds(61))
        let validated = try await stage.get(Self.renewed)
        #expect(validated.source == .revalidated && validated.text == "Bearer alice.1")
        // The request itself keeps its token.
        #expect(stage.origin.requests.last?.fields[.authorization] == "Bearer alice.2")
        stage.clock.advance(by: .seconds(61))
        stage.origin.answer { _, _ throws(TransportError) in throw TransportError(.unreachable, "down") }
        #expect(try await stage.get([.authorization: "Bearer alice.3"]).text == "Bearer alice.1")
    }

    @Test(arguments: [Fields(), [.vary: "Authorization"]])
    func `nothing of another account is used, not even its tag`(vary: Fields) async throws {
        for account in [Self.account, nil] {
            let stage = stage(account, vary)
            _ = try await stage.get(Self.old)
            for fields in [Self.other, Fields()] {
                #expect(try await stage.get(fields).text == fields[.authorization] ?? "nobody")
                #expect(stage.origin.requests.last?.fields.contains(.ifNoneMatch) == false)
            }
            stage.origin.answer { _, _ throws(TransportError) in throw TransportError(.unreachable, "down") }
            await #expect(throws: TransportError.self) { try await stage.get([.authorization: "Bearer eve.1"]) }
        }
    }

    @Test func `by default a renewed token finds nothing`() async throws {
        let stage = stage(nil)
        _ = try await stage.get(Self.old)
        let response = try await stage.get(Self.renewed)
        #expect(response.source == .network && response.text == "Bearer alice.2")
    }
}
