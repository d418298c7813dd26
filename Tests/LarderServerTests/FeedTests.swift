import LarderCoding
import LarderTime
import TestSupport
import Testing

@testable import LarderBackend
@testable import LarderServer

@Suite("Feed and posts", .oneMinute)
struct FeedTests {
    private func ids(_ page: JSONValue) -> [String] { (page["items"]?.array ?? []).compactMap { $0["id"]?.string } }

    @Test func `cursor paging returns every remaining post once while others are added and deleted`() async throws {
        let scene = try Scene()
        var seen: [String] = []
        var cursor: String?
        var step = 0
        repeat {
            let page = try await scene.ask("GET", "/v1/feed?limit=7" + (cursor.map { "&after=\($0)" } ?? "")).json
            seen += ids(page)
            cursor = page["nextCursor"]?.string
            // A post is added, and the cursor's own post is deleted.
            _ = try await scene.ask("POST", "/v1/posts", #"{"text":"new \#(step)"}"#)
            if step == 2, let last = seen.last {
                let author = try await scene.ask("GET", "/v1/posts/\(last)").json["authorId"]?.string ?? ""
                let handle = try await scene.ask("GET", "/v1/profiles/\(author)").json["handle"]?.string ?? ""
                #expect(try await scene.ask("DELETE", "/v1/posts/\(last)", as: handle).status == 204)
            }
            step += 1
        } while cursor != nil
        #expect(seen.count == 60)
        #expect(Set(seen).count == 60)
    }

    @Test func `offset paging repeats a post after an insertion`() async throws {
        let scene = try Scene()
        let first = ids(try await scene.ask("GET", "/v1/feed/pages?page=1&limit=10").json)
        _ = try await scene.ask("POST", "/v1/posts", #"{"text":"shift"}"#)
        let second = ids(try await scene.ask("GET", "/v1/feed/pages?page=2&limit=10").json)
        #expect(Set(first).intersection(second).count == 1)
    }

    @Test func `backward paging reaches the beginning, also through an empty page`() async throws {
        let scene = try Scene()
        let last = try await scene.ask("GET", "/v1/feed?limit=100").json
        let end = Cursor(.feed, row: 1).text
        let empty = try await scene.ask("GET", "/v1/feed?after=\(end)").json
        #expect(ids(empty) == [] && empty["nextCursor"] == .null)
        var cursor = empty["previousCursor"]?.string
        var seen: [String] = []
        while let before = cursor {
            let page = try await scene.ask("GET", "/v1/feed?limit=9&before=\(before)").json
            seen = ids(page) + seen
            cursor = page["previousCursor"]?.string
        }
        #expect(seen == ids(last))
    }

    @Test func `an ETag changes exactly when the bytes change, and differs between readers`() async throws {
        let scene = try Scene()
        let anonymous = try await scene.ask("GET", "/v1/posts/post_5", as: nil)
        let mine = try await scene.ask("GET", "/v1/posts/post_5")
        let again = try await scene.ask("GET", "/v1/posts/post_5")
        #expect(mine.field("ETag") == again.field("ETag") && mine.body == again.body)
        #expect((anonymous.body == mine.body) == (anonymous.field("ETag") == mine.field("ETag")))
        let liked = try mine.json["likedByMe"] == .bool(true)
        #expect(try await scene.ask(liked ? "DELETE" : "PUT", "/v1/posts/post_5/like").status == 200)
        let changed = try await scene.ask("GET", "/v1/posts/post_5")
        #expect(changed.field("ETag") != mine.field("ETag"))
        #expect(try changed.json["version"]?.integer == (try mine.json["version"]?.integer ?? 0) + 1)
    }

    @Test func `a repeated read is a 304 until the commit that changes it`() async throws {
        let scene = try Scene()
        let tag = try #require(try await scene.ask("GET", "/v1/feed?limit=5").field("ETag"))
        let unchanged = try await scene.ask("GET", "/v1/feed?limit=5", ["If-None-Match": "\"x\", \(tag)"])
        #expect(unchanged.status == 304 && unchanged.body.isEmpty)
        #expect(
            unchanged.field("ETag") == tag && unchanged.field("Cache-Control") != nil && unchanged.field("Vary") != nil
        )
        for _ in 0..<50 {
            let created = try await scene.ask("POST", "/v1/posts", #"{"text":"hi"}"#).json["id"]
            #expect(try await scene.ask("GET", "/v1/feed?limit=5").json["items"]?[0]?["id"] == created)
        }
        #expect(try await scene.ask("GET", "/v1/feed?limit=5", ["If-None-Match": tag]).status == 200)
    }

    @Test func `Last-Modified is omitted until its second has ended`() async throws {
        let scene = try Scene()
        let post = try #require(try await scene.ask("POST", "/v1/posts", #"{"text":"hi"}"#).field("Location"))
        #expect(try await scene.ask("GET", post).field("Last-Modified") == nil)
        scene.clock.advance(by: .seconds(1))
        let date = try #require(try await scene.ask("GET", post).field("Last-Modified"))
        #expect(try await scene.ask("GET", post, ["If-Modified-Since": date]).status == 304)
    }

    @Test func `an edit requires its base version and fails if a newer one exists`() async throws {
        let scene = try Scene()
        let post = try #require(try await scene.ask("POST", "/v1/posts", #"{"text":"hi"}"#).field("Location"))
        let tag = try #require(try await scene.ask("GET", post).field("ETag"))
        #expect(try await scene.ask("PATCH", post, #"{"text":"a"}"#).problem == "precondition-required")
        #expect(try await scene.ask("PATCH", post, #"{"text":"a"}"#, ["If-Match": tag]).status == 200)
        let lost = try await scene.ask("PATCH", post, #"{"text":"b"}"#, ["If-Match": tag])
        #expect(lost.status == 412)
        #expect(try lost.json["currentVersion"] == .integer(2))
        #expect(try await scene.ask("GET", post).json["text"] == .string("a"))
        #expect(
            try await scene.ask("PATCH", post, as: "person2", #"{"text":"c"}"#, ["If-Match": "*"]).problem
                == "forbidden"
        )
    }

    @Test func `a batch of likes has a result for each item and is idempotent`() async throws {
        let scene = try Scene()
        let body =
            #"{"items":[{"postId":"post_1","liked":true},{"postId":"post_999","liked":true},{"postId":"post_2","liked":false}]}"#
        let first = try await scene.ask("POST", "/v1/likes", body)
        #expect(try first.json["results"]?.array?.compactMap { $0["status"]?.integer } == [200, 404, 200])
        #expect(try await scene.ask("POST", "/v1/likes", body).body == first.body)
    }

    @Test func `a late first attempt of a like after the opposite one replays its result and changes nothing`()
        async throws
    {
        let scene = try Scene()
        func item(_ isLiked: Bool, _ key: String, of post: Int = 1) -> String {
            #"{"items":[{"postId":"post_\#(post)","liked":\#(isLiked),"idempotencyKey":"\#(key)"}]}"#
        }
        func isLiked() async throws -> JSONValue? { try await scene.ask("GET", "/v1/posts/post_1").json["likedByMe"] }
        _ = try await scene.ask("PUT", "/v1/posts/post_1/like")
        _ = try await scene.ask("DELETE", "/v1/posts/post_1/like")
        let first = try await scene.ask("POST", "/v1/likes", item(true, "a"))
        #expect(try await isLiked() == .bool(true))
        _ = try await scene.ask("POST", "/v1/likes", item(false, "b"))
        // The state has changed since, and a retry has the first result.
        #expect(try await scene.ask("POST", "/v1/likes", item(true, "a")).body == first.body)
        #expect(try await isLiked() == .bool(false))
        // Keys belong to a user, and a key belongs to one item.
        #expect(try await scene.ask("POST", "/v1/likes", as: "person2", item(true, "a")).body != first.body)
        let reused = try await scene.ask("POST", "/v1/likes", item(true, "b")).json["results"]?.array?.first
        #expect(reused?["status"] == .integer(422))
        #expect(reused?["problem"]?["type"] == .string("/problems/idempotency-key-reused"))
        #expect(try await isLiked() == .bool(false))
        // A result of one item does not affect the others, and a missing post is a result too.
        let missing = try await scene.ask("POST", "/v1/likes", item(true, "c", of: 999))
        #expect(try missing.json["results"]?.array?.first?["status"] == .integer(404))
        #expect(try await scene.ask("POST", "/v1/likes", item(true, "c", of: 999)).body == missing.body)
        #expect(try await scene.ask("POST", "/v1/likes", item(true, "\\n")).problem == "validation-failed")
    }

    @Test func `setting and clearing one like accept an idempotency key`() async throws {
        let scene = try Scene()
        let path = "/v1/posts/post_1/like"
        let first = try await scene.ask("PUT", path, ["Idempotency-Key": "a"])
        _ = try await scene.ask("DELETE", path, ["Idempotency-Key": "b"])
        let late = try await scene.ask("PUT", path, ["Idempotency-Key": "a"])
        #expect(late.body == first.body && late.field("Idempotent-Replayed") == "true")
        #expect(try await scene.ask("GET", "/v1/posts/post_1").json["likedByMe"] == .bool(false))
    }

    @Test func `a like of a missing post is a result, which its key replays`() async throws {
        let scene = try Scene()
        let path = "/v1/posts/post_999/like"
        let first = try await scene.ask("PUT", path, ["Idempotency-Key": "a"])
        #expect(first.status == 404 && first.problem == "not-found")
        let again = try await scene.ask("PUT", path, ["Idempotency-Key": "a"])
        #expect(again.body == first.body && again.field("Idempotent-Replayed") == "true")
    }

    @Test func `all errors of a body are reported together`() async throws {
        let scene = try Scene()
        let reply = try await scene.ask("POST", "/v1/posts", #"{"text":"","image":{"id":"img_none"},"colour":1}"#)
        #expect(reply.status == 422)
        let pointers = try reply.json["errors"]?.array?.compactMap { $0["pointer"]?.string }
        #expect(pointers == ["/text", "/image/id", "/colour"])
    }

    @Test(arguments: ["/v1/posts/post_7", "/v1/feed?limit=3"])
    func `the authors of posts are included once each`(_ target: String) async throws {
        let scene = try Scene()
        let plain = try await scene.ask("GET", target).json
        let separator = target.contains("?") ? "&" : "?"
        let page = try await scene.ask("GET", target + separator + "include=profiles").json
        let posts = page["items"]?.array ?? [page]
        let authors = Set(posts.compactMap { $0["authorId"]?.string })
        let profiles = page["profiles"]?.array?.compactMap { $0["id"]?.string } ?? []
        #expect(!authors.isEmpty && Set(profiles) == authors && profiles.count == authors.count)
        #expect(plain["profiles"] == nil && plain.object?.members.count == (page.object?.members.count ?? 0) - 1)
    }

    @Test(arguments: [
        ("GET", "/nowhere", 404, "not-found"), ("PUT", "/v1/feed", 405, "method-not-allowed"),
        ("GET", "/v1/feed?limit=0", 400, "invalid-parameter"), ("GET", "/v1/feed?limit=1e3", 400, "invalid-parameter"),
        ("GET", "/v1/feed?after=xyz", 400, "invalid-cursor"), ("GET", "/v1/feed?x=%zz", 400, "invalid-parameter"),
        ("GET", "/v1/posts/post_0", 404, "not-found"), ("GET", "/v1/posts/user_1", 404, "not-found"),
        ("GET", "/v1/changes?types=likes", 400, "invalid-parameter"), ("GET", "/v1/live", 426, "upgrade-required"),
    ])
    func `each error has its problem type`(method: String, target: String, status: Int, problem: String) async throws {
        let scene = try Scene()
        let reply = try await scene.ask(method, target)
        #expect(reply.status == status)
        #expect(reply.problem == problem)
        #expect(reply.field("Content-Type") == "application/problem+json")
        if status == 405 { #expect(reply.field("Allow") == "GET, HEAD, OPTIONS") }
    }
}

extension Scene {
    /// A request without a body.
    func ask(_ method: String, _ target: String, _ fields: [String: String]) async throws -> RawReply {
        try await ask(method, target, as: "ana", nil, fields)
    }

    /// A request of Ana's with a body.
    func ask(_ method: String, _ target: String, _ body: String, _ fields: [String: String] = [:]) async throws
        -> RawReply
    {
        try await ask(method, target, as: "ana", body, fields)
    }
}
