import LarderCoding
import LarderHTTP
import LarderTime
import TestSupport
import Testing

@testable import LarderBackend
@testable import LarderServer

/// The requirements of HTTP for every resource, checked on the API.
@Suite("Protocol", .oneMinute)
struct ProtocolTests {
    /// Located from the path of this file, independent of the working directory.
    private static let pictures = #filePath.replacing("Tests/LarderServerTests/ProtocolTests.swift", with: "Fixtures")

    private func sceneWithPictures() async throws -> (MockBackend, RawClient, image: String) {
        var numbers = WorldSize()
        (numbers.people, numbers.posts, numbers.conversations, numbers.messages, numbers.transfers) = (4, 20, 0, 0, 0)
        var configuration = MockBackend.Configuration()
        configuration.seed = 1
        configuration.use(ManualClock(WallTime(seconds: 1_790_000_000)))
        let backend = try MockBackend.start(.generated(numbers, picturesFrom: Self.pictures), configuration)
        let client = try RawClient(port: backend.port)
        try client.send("GET /v1/profiles/user_1 HTTP/1.1\r\nHost: h\r\n\r\n")
        let avatar = try #require(try await client.reply().json["avatar"]?["id"]?.string)
        return (backend, client, avatar)
    }

    private func get(_ client: RawClient, _ target: String, _ fields: String...) async throws -> RawReply {
        try client.send("GET \(target) HTTP/1.1\r\nHost: h\r\n\(fields.map { $0 + "\r\n" }.joined())\r\n")
        return try await client.reply()
    }

    @Test
    func `a range is answered with 206, an unusable one with 200, and an unsatisfiable one with 416`()
        async throws
    {
        let (backend, client, image) = try await sceneWithPictures()
        let target = "/v1/images/\(image)?width=64"
        let whole = try await get(client, target)
        let count = whole.body.count
        let tag = try #require(whole.field("ETag"))
        let parts: [(String, Range<Int>)] = [
            ("bytes=0-0", 0..<1), ("bytes=5-9", 5..<10), ("bytes=5-", 5..<count), ("bytes=-5", (count - 5)..<count),
            ("bytes=0-99999999999999999999999", 0..<count), ("bytes=-\(count + 5)", 0..<count), ("BYTES= 0-1", 0..<2),
            ("bytes=\(count - 1)-\(count + 50)", (count - 1)..<count), ("bytes=,0-1,", 0..<2),
        ]
        for (range, bytes) in parts {
            let part = try await get(client, target, "Range: \(range)", "If-Range: \(tag)")
            #expect(part.status == 206 && part.body == Array(whole.body[bytes]), "\(range)")
            #expect(part.field("Content-Range") == "bytes \(bytes.lowerBound)-\(bytes.upperBound - 1)/\(count)")
            #expect(part.field("ETag") == tag)
        }
        for range in ["bytes=0-1,4-5", "bytes=5-2", "bytes=a-b", "items=0-1", "bytes=", "bytes 0-1", "bytes=0 - 1"] {
            let reply = try await get(client, target, "Range: \(range)")
            #expect(reply.status == 200 && reply.body == whole.body, "\(range)")
        }
        for condition in ["W/\(tag)", "\"other\"", "Sat, 21 Nov 2026 14:00:00 GMT"] {
            let reply = try await get(client, target, "Range: bytes=0-1", "If-Range: \(condition)")
            #expect(reply.status == 200 && reply.body == whole.body, "\(condition)")
        }
        for range in ["bytes=-0", "bytes=\(count)-", "bytes=99999999999999999999999-"] {
            let reply = try await get(client, target, "Range: \(range)")
            #expect(reply.status == 416 && reply.problem == "range-not-satisfiable", "\(range)")
            #expect(reply.field("Content-Range") == "bytes */\(count)")
        }
        #expect(try await get(client, target, "Range: bytes=0-1", "If-None-Match: \(tag)").status == 304)
        #expect(try await get(client, target, "Range: bytes=0-1", "If-Match: \"other\"").status == 412)
        await backend.stop()
    }

    @Test func `HEAD has the status and fields of GET`() async throws {
        let scene = try Scene()
        let targets = [
            "/v1/feed?limit=3", "/v1/feed/pages?page=2", "/v1/posts/post_5", "/v1/profiles", "/v1/profiles/user_1",
            "/v1/me",
            "/v1/accounts", "/v1/conversations", "/v1/changes?limit=2", "/v1/transfers?idempotencyKey=a", "/v1/nothing",
            "/openapi.json", "/problems", "/problems/not-found", "/", "/healthz", "/v1/live", "/v1/feed?limit=0",
            "/_larder", "/_larder/worlds", "/_larder/clock", "/_larder/faults", "/_larder/conduct", "/_larder/held",
            "/_larder/actors", "/_larder/dialect", "/_larder/journeys", "/_larder/oracles/ledger",
        ]
        func lines(_ method: String, _ target: String) async throws -> [Substring] {
            // The control plane accepts loopback host names only.
            try scene.client.send(
                "\(method) \(target) HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer dev-ana\r\n\r\n"
            )
            return try await scene.client.reply(isHead: method == "HEAD").head.split(separator: "\r\n")
        }
        for target in targets {
            let whole = try await lines("GET", target)
            #expect(try await lines("HEAD", target) == whole, "\(target)")
        }
    }

    @Test func `conditions of a read are evaluated in the order of RFC 9110`() async throws {
        let scene = try Scene()
        let first = try await scene.ask("GET", "/v1/profiles/user_1")
        let tag = try #require(first.field("ETag"))
        let date = try #require(first.field("Last-Modified"))
        let old = "Thu, 01 Jan 1970 00:00:00 GMT"
        let table: [([String: String], Int)] = [
            (["If-None-Match": tag], 304), (["If-None-Match": "W/\(tag)"], 304), (["If-None-Match": "*"], 304),
            (["If-None-Match": "\"a\", W/\"b\",, \(tag)"], 304), (["If-None-Match": "\"a\""], 200),
            (["If-None-Match": "*, \"a\""], 200), (["If-None-Match": tag.replacing("\"", with: "")], 200),
            (["If-None-Match": "\"a\"", "If-Modified-Since": date], 200), (["If-Modified-Since": date], 304),
            (["If-Modified-Since": old], 200), (["If-Modified-Since": "yesterday"], 200),
            (["If-Match": tag], 200), (["If-Match": "*"], 200), (["If-Match": "\"a\", \(tag)"], 200),
            (["If-Match": "W/\(tag)"], 412), (["If-Match": "\"a\""], 412),
            (["If-Match": "\"a\"", "If-None-Match": tag], 412), (["If-Match": tag, "If-None-Match": tag], 304),
            (["If-Unmodified-Since": date], 200), (["If-Unmodified-Since": old], 412),
            (["If-Match": tag, "If-Unmodified-Since": old], 200), (["If-Unmodified-Since": "yesterday"], 200),
            (["If-Unmodified-Since": old, "If-None-Match": tag], 412),
        ]
        for (fields, status) in table {
            for method in ["GET", "HEAD"] {
                let reply = try await scene.ask(method, "/v1/profiles/user_1", nil, fields)
                #expect(reply.status == status, "\(method) \(fields)")
                guard status == 304 else { continue }
                for name in ["ETag", "Cache-Control", "Vary", "Last-Modified"] {
                    #expect(reply.field(name) == first.field(name), "\(name) of \(fields)")
                }
                #expect(reply.field("Date") != nil && reply.field("Content-Length") == nil)
            }
        }
        // A missing resource is 404 under any condition.
        for field in ["If-None-Match", "If-Match"] {
            #expect(try await scene.ask("GET", "/v1/posts/post_999", nil, [field: "*"]).status == 404)
        }
    }

    @Test func `conditions of a write prevent lost updates`() async throws {
        let scene = try Scene()
        let created = try await scene.ask("POST", "/v1/posts", #"{"text":"a"}"#)
        let place = try #require(created.field("Location"))
        let tag = try #require(created.field("ETag"))
        let edit = #"{"text":"b"}"#
        let rejected: [([String: String], Int)] = [
            ([:], 428), (["If-Match": "\"a\""], 412), (["If-Match": "W/\(tag)"], 412), (["If-Match": ""], 412),
            (["If-Match": tag, "If-None-Match": tag], 412), (["If-None-Match": "*", "If-Match": "*"], 412),
        ]
        for (fields, status) in rejected {
            let reply = try await scene.ask("PATCH", place, edit, fields)
            #expect(reply.status == status, "\(fields)")
            guard status == 412 else { continue }
            #expect(try reply.field("ETag") == tag && reply.json["currentVersion"] == .integer(1))
            #expect(try await scene.ask("DELETE", place, nil, fields).status == 412, "\(fields)")
        }
        let edited = try await scene.ask("PATCH", place, edit, ["If-Match": "\"a\", \(tag)"])
        #expect(edited.status == 200)
        #expect(try await scene.ask("DELETE", place, nil, ["If-Match": tag]).status == 412)
        #expect(try await scene.ask("DELETE", place, nil, ["If-Match": edited.field("ETag") ?? ""]).status == 204)
    }

    @Test func `If-Unmodified-Since is accepted only if the date identifies the version`() async throws {
        let scene = try Scene()
        let place = try #require(try await scene.ask("POST", "/v1/posts", #"{"text":"a"}"#).field("Location"))
        let (old, edit) = ("Thu, 01 Jan 1970 00:00:00 GMT", #"{"text":"b"}"#)
        // The second of the change has not ended, and its date was never sent.
        for date in [old, HTTPDate.format(scene.clock.now)] {
            #expect(try await scene.ask("PATCH", place, edit, ["If-Unmodified-Since": date]).status == 412)
            #expect(try await scene.ask("DELETE", place, nil, ["If-Unmodified-Since": date]).status == 412)
        }
        #expect(try await scene.ask("PATCH", place, edit, ["If-Unmodified-Since": "yesterday"]).status == 428)
        scene.clock.advance(by: .seconds(1))
        let date = try #require(try await scene.ask("GET", place).field("Last-Modified"))
        #expect(try await scene.ask("PATCH", place, edit, ["If-Unmodified-Since": old]).status == 412)
        #expect(try await scene.ask("PATCH", place, edit, ["If-Unmodified-Since": date]).status == 200)
    }

    @Test func `a missing required body is answered with 411`() async throws {
        let scene = try Scene()
        let fields = "Host: h\r\nAuthorization: Bearer dev-ana\r\nContent-Type: application/json\r\n"
        for (length, status) in [("", 411), ("Content-Length: 0\r\n", 400)] {
            try scene.client.send("POST /v1/posts HTTP/1.1\r\n\(fields)\(length)\r\n")
            #expect(try await scene.client.reply().status == status)
        }
        #expect(try await scene.ask("PUT", "/v1/posts/post_1/like").status == 200)
    }

    @Test(arguments: [
        ("POST /v1/posts", "Content-Type: text/plain\r\n", "Accept", "application/json"),
        ("POST /v1/posts", "", "Accept", "application/json"),
        ("PATCH /v1/me", "Content-Type: text/plain\r\n", "Accept", "application/json, application/merge-patch+json"),
        (
            "PATCH /v1/me", "Content-Type: text/plain\r\n", "Accept-Patch",
            "application/json, application/merge-patch+json"
        ),
        (
            "POST /v1/posts", "Content-Type: application/json\r\nContent-Encoding: gzip\r\n", "Accept-Encoding",
            "identity"
        ),
    ])
    func `an unsupported body is answered with the accepted media types`(
        line: String,
        fields: String,
        name: String,
        value: String
    ) async throws {
        let scene = try Scene()
        try scene.client.send(
            "\(line) HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer dev-ana\r\n\(fields)Content-Length: 2\r\n\r\n{}"
        )
        let reply = try await scene.client.reply()
        #expect(reply.status == 415 && reply.problem == "unsupported-media-type")
        #expect(reply.field(name) == value)
    }

    @Test func `a plain request to a WebSocket path gets 426 with the protocol`() async throws {
        let scene = try Scene()
        for fields in [[:], ["Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "8"]] {
            let reply = try await scene.ask("GET", "/v1/live", nil, fields)
            #expect(reply.status == 426 && reply.problem == "upgrade-required")
            #expect(reply.field("Upgrade") == "websocket" && reply.field("Connection") == "upgrade")
            #expect(reply.field("Sec-WebSocket-Version") == "13")
        }
    }

    @Test func `OPTIONS lists the methods of a resource and of the server`() async throws {
        let scene = try Scene()
        let table = [
            ("PUT", "/v1/feed", "GET, HEAD, OPTIONS"), ("GET", "/v1/likes", "OPTIONS, POST"),
            ("GET", "/v1/posts/post_1/like", "DELETE, OPTIONS, PUT"), ("TRACE", "/openapi.json", "GET, HEAD, OPTIONS"),
            ("BREW", "/v1/posts/post_1", "DELETE, GET, HEAD, OPTIONS, PATCH"),
            ("PATCH", "/_larder/journal", "GET, HEAD, DELETE"), ("PUT", "/_larder/reset", "POST"),
            ("DELETE", "/_larder/clock", "GET, HEAD, PUT"),
            ("POST", "/_larder/worlds/main", "GET, HEAD, DELETE"),
        ]
        for (method, target, allowed) in table {
            let fields = target.hasPrefix("/_") ? "Host: localhost" : "Host: h"
            try scene.client.send("\(method) \(target) HTTP/1.1\r\n\(fields)\r\n\r\n")
            let reply = try await scene.client.reply()
            #expect(reply.status == 405 && reply.field("Allow") == allowed, "\(method) \(target): \(reply.head)")
        }
        let all = try await scene.ask("OPTIONS", "*")
        #expect(all.status == 204 && all.field("Allow") == "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT")
    }

    @Test func `documents are revalidated, and only browsers get HTML`() async throws {
        let scene = try Scene()
        for target in ["/openapi.json", "/problems", "/", "/problems/not-found"] {
            let tag = try #require(try await scene.ask("GET", target).field("ETag"), "\(target)")
            #expect(try await scene.ask("GET", target, nil, ["If-None-Match": tag]).status == 304)
        }
        for (accept, mediaType) in [
            ("text/html,application/xhtml+xml,*/*;q=0.8", "text/html; charset=utf-8"), ("*/*", "application/json"),
            ("application/json", "application/json"),
        ] {
            let reply = try await scene.ask("GET", "/problems/not-found", nil, ["Accept": accept])
            #expect(reply.field("Content-Type") == mediaType)
        }
    }

    @Test(arguments: [
        "/v1/feed", "/v1/accounts", "/v1/changes", "/v1/changes?since=now&wait=30", "/v1/transfers?idempotencyKey=a",
        "/v1/transfers/xfer_1", "/v1/live/events",
    ])
    func `a client that accepts neither JSON nor events gets 406`(target: String) async throws {
        let scene = try Scene()
        for accept in ["text/html", "application/json;q=0, text/event-stream;q=0", "*/*;q=0"] {
            #expect(try await scene.ask("GET", target, nil, ["Accept": accept]).problem == "not-acceptable")
        }
    }

    @Test func `a developer token is valid after a sign-out`() async throws {
        let scene = try Scene()
        #expect(try await scene.ask("DELETE", "/v1/sessions/current").status == 204)
        #expect(try await scene.ask("GET", "/v1/me").status == 200)
    }

    @Test func `a stop answers waiting long polls, including those that begin during the stop`() async throws {
        let scene = try Scene()
        let token = try #require(try await scene.ask("GET", "/v1/changes?since=now").json["nextToken"]?.string)
        let fields = "HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer dev-ana\r\n"
        // First, so that its beginning is read before the complete request of the other.
        let late = try RawClient(port: scene.backend.port)
        try late.send("GET /v1/changes?since=\(token)&wait=30 \(fields)X-Half")
        let waiting = try RawClient(port: scene.backend.port)
        try waiting.send("GET /v1/changes?since=\(token)&wait=30 \(fields)\r\n")
        await reached { scene.backend.plane.worlds.main.live.readerCount > 0 }
        async let stopped: Void = scene.backend.stop(grace: .seconds(60))
        for (client, rest) in [(waiting, ""), (late, ": done\r\n\r\n")] {
            try client.send(rest)
            let reply = try await client.reply()
            #expect(try reply.status == 200 && reply.json["nextToken"] == .string(token))
            #expect(await client.isClosedByPeer())
        }
        await stopped
    }
}
