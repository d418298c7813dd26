import LarderHTTP
import LarderHTTPCache
import LarderTime
import LarderTransport
import TestSupport
import Testing

/// The one reply to `POST` that a cache may store: a representation of the request's own URL with a stated lifetime (RFC
/// 9110 §9.3.3).
@Suite("HTTP cache: replies to POST", .oneMinute)
struct HTTPCachePostTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var status = 200
        var reply: Fields
        var request = Fields()
        let isStored: Bool
    }

    private static let own = FieldName.contentLocation
    static let cases = [
        Case(testDescription: "max-age", reply: [.cacheControl: "max-age=60", own: "/a"], isStored: true),
        Case(testDescription: "absolute", reply: [.cacheControl: "max-age=60", own: CacheStage.url], isStored: true),
        Case(
            testDescription: "Expires",
            reply: [.expires: "Sun, 21 Nov 2286 04:46:39 GMT", own: "http://ORIGIN.test:80/a"],
            isStored: true
        ),
        Case(testDescription: "no lifetime", reply: [.etag: "\"1\"", own: "/a"], isStored: false),
        Case(
            testDescription: "a heuristic",
            reply: [.lastModified: HTTPDate.format(.init(seconds: 0)), own: "/a"],
            isStored: false
        ),
        Case(testDescription: "another URL", reply: [.cacheControl: "max-age=60", own: "/b"], isStored: false),
        Case(testDescription: "no URL", reply: [.cacheControl: "max-age=60"], isStored: false),
        Case(testDescription: "no-store", reply: [.cacheControl: "no-store, max-age=60", own: "/a"], isStored: false),
        Case(testDescription: "201", status: 201, reply: [.cacheControl: "max-age=60", own: "/a"], isStored: false),
        Case(
            testDescription: "no-store of the request",
            reply: [.cacheControl: "max-age=60", own: "/a"],
            request: [.cacheControl: "no-store"],
            isStored: false
        ),
    ]

    private func post(_ stage: CacheStage, _ fields: Fields = Fields(), method: LarderHTTP.Method = .post) async throws
        -> HTTPCache.Response
    {
        try await stage.cache.response(
            for: TransportRequest(method: method, url: CacheStage.url, fields: fields, body: [1])
        )
    }

    @Test(arguments: cases)
    func `a reply to POST answers GET if it is its URL's content with a stated lifetime`(row: Case) async throws {
        for isStreamed in [false, true] {
            let stage = CacheStage(Origin(reply(row.reply, "posted", status: row.status), reply([:], "read")))
            if isStreamed {
                let request = TransportRequest(method: .post, url: CacheStage.url, fields: row.request, body: [1])
                _ = try await stage.cache.open(request).whole()
            } else {
                #expect(try await post(stage, row.request).text == "posted")
            }
            let response = try await stage.get()
            #expect(response.source == (row.isStored ? .hit : .network), "\(response.explanation)")
            #expect(response.text == (row.isStored ? "posted" : "read"))
        }
    }

    @Test func `other methods are not stored, and every POST is sent and replaces what is stored`() async throws {
        let fields: Fields = [.cacheControl: "max-age=60", .contentLocation: "/a"]
        let stage = CacheStage(Origin { _, number throws(TransportError) in reply(fields, "answer \(number)") })
        _ = try await post(stage, method: .put)
        #expect(try await stage.get().text == "answer 1")
        #expect(try await post(stage).text == "answer 2")
        #expect(try await post(stage).text == "answer 3")
        #expect(try await stage.get().text == "answer 3")
        #expect(stage.origin.count == 4)
    }

    @Test func `a reply to POST is not stored if another change ended meanwhile`() async throws {
        let fields: Fields = [.cacheControl: "max-age=60", .contentLocation: "/a"]
        let stage = CacheStage(Origin { _, number throws(TransportError) in reply(fields, "answer \(number)") })
        stage.origin.hold()
        let first = Task { try await post(stage) }
        await stage.origin.waitForRequests(1)
        let second = Task { try await post(stage) }
        await stage.origin.waitForRequests(2)
        stage.origin.release(at: 1)
        #expect(try await second.value.text == "answer 1")
        stage.origin.release(at: 0)
        #expect(try await first.value.text == "answer 0")
        stage.origin.release()
        #expect(try await stage.get().text == "answer 2")
    }
}
