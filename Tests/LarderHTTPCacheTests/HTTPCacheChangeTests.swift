import LarderHTTP
import LarderHTTPCache
import LarderTime
import LarderTransport
import TestSupport
import Testing

@Suite("HTTP cache: changes, removal, failures", .oneMinute)
struct HTTPCacheChangeTests {
    private let fresh: Fields = [.cacheControl: "max-age=60", .etag: "\"1\""]

    // MARK: Changes

    @Test(arguments: [
        ("/b", true), ("http://ORIGIN.test:80/b#part", true), ("//origin.test/b", true), ("b", true),
        ("./x/../b", true),
        ("http://other.test/b", false), ("https://origin.test/b", false), ("http://origin.test:81/b", false),
        ("mailto:b", false),
        ("/B", false),
    ])
    func `a change invalidates what Location and Content-Location name, of the same origin only`(
        reference: String,
        isInvalidated: Bool
    ) async throws {
        for name in [FieldName.location, .contentLocation] {
            let stage = CacheStage(Origin(reply(fresh)))
            let other = "http://origin.test/b"
            let foreign = ["http://other.test/b", "https://origin.test/b", "http://origin.test:81/b"]
            for url in [other] + foreign { _ = try await stage.get(url: url) }
            stage.origin.answer { _, _ in reply([name: reference], status: 201) }
            _ = try await stage.get(method: .post)
            stage.origin.answer { [fresh] _, _ in reply(fresh, "", status: 304) }
            #expect(try await stage.get(url: other).source == (isInvalidated ? .revalidated : .hit))
            for url in foreign { #expect(try await stage.get(url: url).source == .hit) }
        }
    }

    @Test func `a change by another spelling of a URL invalidates, and the spellings share a response`() async throws {
        let stage = CacheStage(Origin(reply(fresh)))
        let (typed, encoded) = ("http://origin.test/caf\u{E9}", "http://origin.test/caf%C3%A9")
        _ = try await stage.get(url: typed)
        #expect(try await stage.get(url: encoded).source == .hit)
        _ = try await stage.get(url: encoded, method: .post)
        stage.origin.answer { [fresh] _, _ in reply(fresh, "", status: 304) }
        #expect(try await stage.get(url: typed).source == .revalidated)
        await stage.cache.invalidate(url: typed)
        #expect(try await stage.get(url: encoded).source == .revalidated)
    }

    @Test func `a change whose outcome is not known invalidates, one that never left does not`() async throws {
        for (code, isInvalidated) in [
            (ErrorCode<TransportError>.interrupted, true), (.timedOut, true), (.cancelled, true), (.unreachable, false),
            (.untrusted, false), (.proxyRejected, false),
        ] {
            let stage = CacheStage(Origin(reply(fresh)))
            _ = try await stage.get()
            stage.origin.answer { _, _ throws(TransportError) in throw TransportError(code, "no") }
            await #expect(throws: TransportError.self) { try await stage.get(method: .post) }
            stage.origin.answer { [fresh] _, _ in reply(fresh, "", status: 304) }
            #expect(try await stage.get().source == (isInvalidated ? .revalidated : .hit), "\(code.rawValue)")
        }
    }

    @Test func `a read that was under way during a change is not stored, and nobody joins it afterwards`() async throws
    {
        let stage = CacheStage(
            Origin { request, number throws(TransportError) in
                reply([.cacheControl: "max-age=60"], "answer \(number)")
            }
        )
        stage.origin.hold()
        let read = Task { try await stage.get() }
        await stage.origin.waitForRequests(1)
        let change = Task { try await stage.get(method: .post) }
        await stage.origin.waitForRequests(2)
        stage.origin.release(at: 1)
        _ = try await change.value
        let after = Task { try await stage.get() }
        await stage.origin.waitForRequests(3)
        stage.origin.release(at: 1)
        #expect(try await after.value.text == "answer 2")
        stage.origin.release()
        #expect(try await read.value.text == "answer 0")
        #expect(try await stage.get().text == "answer 2")
    }

    // MARK: Removal

    @Test func `removal applies to matching responses, stored and in flight`() async throws {
        let stage = CacheStage(Origin(reply(fresh)))
        let urls = ["http://origin.test/v1/feed", "http://origin.test/v1/feed?a=1", "http://origin.test/v2"]
        for url in urls { _ = try await stage.get(url: url) }
        await stage.cache.remove(url: "HTTP://Origin.test:80/v1/feed#x")
        #expect(try await stage.get(url: urls[1]).source == .hit)
        #expect(try await stage.get(url: urls[0]).source == .network)

        stage.origin.hold()
        let read = Task { try await stage.get(url: "http://origin.test/new") }
        await stage.origin.waitForRequests(stage.origin.count + 1)
        await stage.cache.removeAll()
        stage.origin.release()
        _ = try await read.value
        for url in urls + ["http://origin.test/new"] { #expect(try await stage.get(url: url).source == .network) }
    }

    // MARK: 304

    @Test func `a 304 that matches nothing stored is asked again without conditions`() async throws {
        let stage = CacheStage(Origin(reply([.cacheControl: "max-age=1", .etag: "\"1\""])))
        _ = try await stage.get()
        stage.clock.advance(by: .seconds(2))
        stage.origin.answer { request, _ in
            request.fields.contains(.ifNoneMatch) ? reply([.etag: "\"9\""], "", status: 304) : reply(Fields(), "new")
        }
        let response = try await stage.get()
        #expect(response.status == .ok && response.text == "new" && response.source == .network)
        #expect(stage.origin.requests.map { $0.fields[.ifNoneMatch] } == [nil, "\"1\"", nil])
    }

    @Test func `a 304 for a caller's own condition is the caller's, and renews what it names`() async throws {
        let stage = CacheStage(Origin(reply([.cacheControl: "max-age=1", .etag: "\"1\""])))
        _ = try await stage.get()
        stage.clock.advance(by: .seconds(2))
        stage.origin.answer { _, _ in reply([.etag: "\"1\"", .cacheControl: "max-age=60"], "", status: 304) }
        let own = try await stage.get([.ifNoneMatch: "\"1\", \"7\""])
        #expect(own.status == .notModified && own.body.isEmpty)
        #expect(stage.origin.requests.last?.fields[.ifNoneMatch] == "\"1\", \"7\"")
        #expect(try await stage.get().source == .hit)
    }

    @Test(arguments: [false, true], ["\"9\"", "W/\"9\", \"8\"", "*", "9"])
    func `a caller's own tags are sent as they are, also where another response is stored, and the 304 is the caller's`(
        streams: Bool,
        tags: String
    ) async throws {
        let stage = CacheStage(Origin(reply([.cacheControl: "max-age=1", .etag: "\"1\""])))
        _ = try await stage.get()
        stage.clock.advance(by: .seconds(2))
        stage.origin.answer { _, _ in reply([.etag: "\"9\"", .cacheControl: "max-age=60"], "", status: 304) }
        let request = TransportRequest(url: CacheStage.url, fields: [.ifNoneMatch: tags])
        let own = streams ? try await stage.cache.open(request).whole() : try await stage.cache.send(request)
        #expect(own.status == .notModified && own.body.isEmpty && own.fields[.etag] == "\"9\"")
        #expect(stage.origin.requests.last?.fields.values(of: .ifNoneMatch) == [tags])
        // What is stored is another response, and is not confirmed by that.
        stage.origin.answer { _, _ in reply([.cacheControl: "max-age=60"], "new") }
        #expect(try await stage.get().text == "new")
        #expect(stage.origin.requests.last?.fields[.ifNoneMatch] == "\"1\"")
    }

    @Test func `a 304 that came unasked is given on`() async throws {
        let stage = CacheStage(Origin(reply(Fields(), "", status: 304)))
        #expect(try await stage.get().status == .notModified)
        #expect(stage.origin.count == 1)
    }

    @Test func `both validators are sent, of another account's variants none`() async throws {
        let modified = "Sun, 06 Nov 1994 08:49:37 GMT"
        let stage = CacheStage(Origin(reply([.cacheControl: "no-cache", .etag: "\"1\"", .lastModified: modified])))
        _ = try await stage.get([.authorization: "a"])
        _ = try await stage.get([.authorization: "a"])
        #expect(stage.origin.requests[1].fields[.ifNoneMatch] == "\"1\"")
        #expect(stage.origin.requests[1].fields[.ifModifiedSince] == modified)
        _ = try await stage.get([.authorization: "b"])
        #expect(!stage.origin.requests[2].fields.contains(.ifNoneMatch))
        #expect(!stage.origin.requests[2].fields.contains(.ifModifiedSince))
    }

    @Test func `validators of variants that a request does not select are not sent, and a 304 renews none of them`()
        async throws
    {
        let name = FieldName.custom("X-Test")
        let stage = CacheStage(
            Origin { request, _ throws(TransportError) in
                let tag = "\"\(request.fields[name] ?? "")\""
                return reply([.cacheControl: "max-age=60", .vary: "X-Test", .etag: tag])
            }
        )
        _ = try await stage.get([name: "1"])
        _ = try await stage.get([name: "2"])
        #expect(!stage.origin.requests[1].fields.contains(.ifNoneMatch))
        stage.origin.answer { _, _ in reply([.cacheControl: "max-age=600", .etag: "\"1\""], "", status: 304) }
        #expect(try await stage.get([name: "3", .ifNoneMatch: "\"1\""]).status == .notModified)
        stage.origin.answer { _, _ in reply([.cacheControl: "max-age=60", .vary: "X-Test"], "third") }
        #expect(try await stage.get([name: "3"]).text == "third")
        stage.clock.advance(by: .seconds(61))
        #expect(try await stage.get([name: "1"]).source == .network)
        #expect(stage.origin.requests.last?.fields[.ifNoneMatch] == "\"1\"")
    }

    // MARK: Failures

    @Test func `the reason for a stale response is stale-if-error for as long as that lasts`() async throws {
        let stage = CacheStage(Origin(reply([.cacheControl: "max-age=1, stale-if-error=60"])))
        _ = try await stage.get()
        stage.clock.advance(by: .seconds(30))
        stage.origin.answer { _, _ throws(TransportError) in throw TransportError(.timedOut, "slow") }
        let response = try await stage.get()
        #expect(response.source == .stale(.transportFailed(.timedOut)) && response.text == "content")
        #expect(response.explanation.contains("RFC 5861") && response.fields[.age] == "30")
        // Whoever insists on the server hears of the failure.
        await #expect(throws: TransportError.self) { try await stage.get([.cacheControl: "no-cache"]) }
        stage.clock.advance(by: .seconds(60))
        #expect(try await stage.get().explanation.contains("RFC 9111 §4.2.4"))
    }

    @Test func `offline a stored response is served at any age unless the server forbids it`() async throws {
        let isOffline = Flag()
        let stage = CacheStage(Origin(reply([.cacheControl: "max-age=1"]))) { $0.isOffline = { isOffline.value } }
        let strict = "http://origin.test/strict"
        let never = "http://origin.test/no-cache"
        _ = try await stage.get()
        stage.origin.answer { _, _ in reply([.cacheControl: "max-age=1, must-revalidate"]) }
        _ = try await stage.get(url: strict)
        stage.origin.answer { _, _ in reply([.cacheControl: "no-cache"]) }
        _ = try await stage.get(url: never)
        let asked = stage.origin.count
        isOffline.set(true)
        stage.clock.advance(by: .seconds(1_000_000))
        for fields in [Fields(), [.cacheControl: "no-cache"], [.cacheControl: "max-age=0"]] {
            #expect(try await stage.get(fields).source == .stale(.offline))
        }
        for url in [strict, never, "http://origin.test/unknown"] {
            await #expect { try await stage.get(url: url) } throws: { ($0 as? TransportError)?.code == .unreachable }
        }
        #expect(stage.origin.count == asked)
        isOffline.set(false)
        #expect(try await stage.get().source == .network)
    }

    @Test(arguments: [-3_600, -315_360_000, -1])
    func `a clock that is set back makes nothing fresh, until the next response`(
        jump: Int64
    ) async throws {
        let stage = CacheStage(Origin())
        stage.origin.answer { _, _ in reply([.cacheControl: "max-age=999999999, stale-while-revalidate=999999999"]) }
        _ = try await stage.get()
        stage.clock.set(wall: stage.clock.now + .seconds(jump))
        let uncertain = try await stage.get()
        #expect(uncertain.source == .network, "\(uncertain.explanation)")
        #expect(uncertain.explanation.contains("clock"))
        stage.clock.advance(by: .seconds(5))
        #expect(try await stage.get().source == .hit)
    }

    @Test func `a clock that jumps forward makes responses stale only temporarily`() async throws {
        let stage = CacheStage(Origin())
        let clock = stage.clock
        stage.origin.answer { request, _ in
            let fields: Fields = [.cacheControl: "max-age=60", .etag: "\"1\"", .date: HTTPDate.format(clock.now)]
            return request.fields.contains(.ifNoneMatch) ? reply(fields, "", status: 304) : reply(fields)
        }
        _ = try await stage.get()
        stage.clock.set(wall: stage.clock.now + .seconds(315_360_000))
        #expect(try await stage.get().source == .revalidated)
        #expect(try await stage.get().source == .hit)
    }

    // MARK: Limits

    @Test func `the caller's body limit applies to stored responses too`() async throws {
        let stage = CacheStage(Origin(reply(fresh)))
        _ = try await stage.get()
        let small = TransportRequest(url: CacheStage.url, bodyLimit: 3)
        await #expect { try await stage.cache.send(small) } throws: { ($0 as? TransportError)?.code == .tooLarge }
    }

    @Test func `limits hold, absurd ones too`() async throws {
        let stage = CacheStage(Origin(reply(fresh))) { configuration in
            configuration.policy.bodyBytesMaximum = 6
        }
        _ = try await stage.get()
        #expect(try await stage.get().source == .network)
        for limit in [Int.min, -1, 0] {
            let none = CacheStage(Origin(reply(fresh)), storage: DiskHTTPCacheStorage(inMemory: limit)) {
                $0.onStorageFailure = { Issue.record("\($0)") }
                $0.policy.variantsMaximum = limit
                $0.policy.heuristicFraction = .nan
                $0.policy.heuristicMaximum = .seconds(-1)
            }
            _ = try await none.get()
            #expect(try await none.get().source == .network)
        }
    }

    @Test func `of many variants the oldest leaves`() async throws {
        let stage = CacheStage(Origin(reply([.cacheControl: "max-age=60", .vary: "X-Test"]))) {
            $0.policy.variantsMaximum = 3
        }
        let name = FieldName.custom("X-Test")
        for number in 0..<4 { _ = try await stage.get([name: "\(number)"]) }
        for number in 1..<4 { #expect(try await stage.get([name: "\(number)"]).source == .hit) }
        #expect(try await stage.get([name: "0"]).source == .network)
    }

    @Test(arguments: [
        "", "a", "ftp://origin.test/a", "http://", "http://a b/", "file:///etc",
        "http://origin.test:x/",
    ])
    func `a request with an invalid URL bypasses the cache`(url: String) async throws {
        let stage = CacheStage(Origin(reply(fresh)))
        for _ in 0..<2 { #expect(try await stage.get(url: url).source == .network) }
    }

    @Test func `a URL, a field and a request field of a megabyte do no harm`() async throws {
        let long = String(repeating: "x", count: 1 << 20)
        let stage = CacheStage(Origin(reply(fresh)))
        #expect(try await stage.get(url: "http://origin.test/\(long)").source == .network)
        let name = FieldName.custom("X-Test")
        stage.origin.answer { _, _ in reply([.cacheControl: "max-age=60", name: long]) }
        #expect(try await stage.get().fields[name] == long)
        #expect(try await stage.get().source == .network)
        stage.origin.answer { _, _ in reply([.cacheControl: "max-age=60", .vary: "X-Test"]) }
        let url = "http://origin.test/vary"
        #expect(try await stage.get([name: long], url: url).source == .network)
        #expect(try await stage.get([name: long], url: url).source == .hit)
        #expect(try await stage.get([name: long + "y"], url: url).source == .network)
        #expect(try await stage.get([name: "a\u{0}b\r\nc"], url: url).source == .network)
        #expect(try await stage.get([name: "a\u{0}b\r\nc"], url: url).source == .hit)
    }

    @Test func `a GET with content is always sent`() async throws {
        let stage = CacheStage(Origin(reply(fresh)))
        for _ in 0..<2 { _ = try await stage.cache.send(TransportRequest(url: CacheStage.url, body: [1])) }
        #expect(stage.origin.count == 2)
    }
}
