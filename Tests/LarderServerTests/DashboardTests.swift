import LarderCoding
import TestSupport
import Testing

@testable import LarderBackend
@testable import LarderServer

@Suite("The dashboard", .oneMinute)
struct DashboardTests {
    private func raw(_ stage: Stage, _ target: String, _ head: String, _ method: String = "GET") async throws
        -> RawReply
    {
        let client = try stage.connect()
        try client.send("\(method) \(target) HTTP/1.1\r\n\(head)\r\n\r\n")
        return try await client.reply(isHead: method == "HEAD")
    }

    @Test func `the page is served for the server and each world, beside the control API`() async throws {
        let stage = try Stage()
        let world = try stage.backend.makeWorld(id: "blue")
        for target in ["/_larder/", "/w/\(world.id)/_larder/", "/_larder/?world=blue"] {
            let reply = try await raw(stage, target, "Host: 127.0.0.1")
            #expect(reply.status == 200 && reply.field("Content-Type") == "text/html; charset=utf-8", "\(target)")
            #expect(reply.body == DashboardDocument.shared.bytes)
        }
        let head = try await raw(stage, "/_larder/", "Host: 127.0.0.1", "HEAD")
        #expect(head.status == 200 && head.field("Content-Length") == String(DashboardDocument.shared.bytes.count))
        let post = try await raw(stage, "/_larder/", "Host: 127.0.0.1\r\nContent-Length: 0", "POST")
        #expect(post.status == 405 && post.field("Allow") == "GET, HEAD")
        #expect(try await raw(stage, "/_larder", "Host: 127.0.0.1").json["id"] == .string("main"))
        // A request for the page is in no journal.
        #expect(try await stage.ask("GET", "/_larder/journal").json["written"] == .integer(0))
        #expect(try await stage.ask("GET", "/_larder/worlds/blue/journal").json["written"] == .integer(0))
    }

    @Test func `its policy allows its own style and script, and requests to the server only`() async throws {
        let stage = try Stage()
        let reply = try await raw(stage, "/_larder/", "Host: 127.0.0.1")
        let policy = try #require(reply.field("Content-Security-Policy"))
        for (directive, opening, closing) in [
            ("script-src", "<script type=\"module\">", "</script>"), ("style-src", "<style>", "</style>"),
        ] {
            let pieces = reply.text.split(separator: opening, omittingEmptySubsequences: false)
            #expect(pieces.count == 2, "there is one \(opening)")
            let content = try #require(pieces.last?.split(separator: closing, maxSplits: 1).first)
            let digest = Base64.encode(SHA256.hash(Array(content.utf8)))
            #expect(policy.contains("\(directive) 'sha256-\(digest)';"))
        }
        let directives = Set(policy.split(separator: "; ").map { String($0) })
        #expect(directives.isSuperset(of: ["default-src 'none'", "connect-src 'self'", "frame-ancestors 'none'"]))
        #expect(!policy.contains("unsafe"))
        #expect(reply.field("X-Content-Type-Options") == "nosniff" && reply.field("Cache-Control") == "no-store")
    }

    @Test func `the page loads no outside resource and inserts no data as markup`() {
        let page = String(decoding: DashboardDocument.shared.bytes, as: UTF8.self)
        // The SVG namespace is an identifier that is never requested.
        let text = page.split(separator: "http://www.w3.org/2000/svg").joined()
        for word in [
            "http:", "https:", "//cdn", "src=", "@import", "url(", "import(", "innerHTML", "outerHTML",
            "insertAdjacentHTML",
            "document.write", "eval(", "new Function", "localStorage", "style=\"",
        ] {
            #expect(!text.contains(word), "\(word)")
        }
        func quoted(behind mark: String) -> Set<String> {
            Set(
                page.split(separator: mark).dropFirst().compactMap {
                    $0.split(separator: "\"").first.map { String($0) }
                }
            )
        }
        for address in quoted(behind: "href=\"") {
            #expect(address == "data:," || address.hasPrefix("#part-"), "\(address)")
        }
        let missing = quoted(behind: "find(\"").subtracting(quoted(behind: "id=\""))
        #expect(missing.isEmpty, "a script looks for what the page does not have")
    }

    @Test func `a foreign host name and a foreign frame are rejected, a followed link is not`() async throws {
        let stage = try Stage()
        let port = stage.backend.port
        for head in [
            "Host: evil.example", "Host: 127.0.0.1.evil.example:\(port)",
            "Host: 127.0.0.1\r\nSec-Fetch-Site: cross-site",
            "Host: 127.0.0.1\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: iframe",
            "Host: 127.0.0.1\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\nSec-Fetch-Dest: script",
            "Host: evil.example\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document",
        ] {
            let reply = try await raw(stage, "/_larder/", head)
            #expect(reply.status == 403 && reply.problem == "control-rejected", "\(head)")
        }
        let followed = "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document"
        #expect(try await raw(stage, "/_larder/", "Host: 127.0.0.1:\(port)\r\n\(followed)").status == 200)
        // The link is accepted for the page only, not for the requests of the page.
        #expect(try await raw(stage, "/_larder/worlds", "Host: 127.0.0.1:\(port)\r\n\(followed)").status == 403)
    }

    @Test func `the page needs no token, its requests do, and a disabled control plane has no page`()
        async throws
    {
        let guarded = try Stage { $0.controlToken = "sesame" }
        #expect(try await raw(guarded, "/_larder/", "Host: elsewhere").status == 200)
        for path in ["", "/worlds", "/journal/live", "/conduct", "/faults"] {
            #expect(try await raw(guarded, "/_larder\(path)", "Host: 127.0.0.1").status == 401, "\(path)")
        }
        await guarded.backend.stop()
        let without = try Stage { $0.hasControl = false }
        #expect(try await raw(without, "/_larder/", "Host: 127.0.0.1").status == 404)
    }

    @Test func `its totals count client errors, server errors and replies that did not arrive`()
        async throws
    {
        let stage = try Stage()
        _ = try await stage.ask("GET", "/v1/feed")
        _ = try await stage.ask("GET", "/v1/nothing")
        _ = try await stage.ask("GET", "/v1/accounts", as: nil)
        try stage.world.set(Fault(.respond(CannedReply(status: 503)), when: FaultMatch("GET", "/v1/profiles")))
        try stage.world.set(Fault(.truncate(.byte(3)), when: FaultMatch("GET", "/v1/posts")))
        _ = try await stage.ask("GET", "/v1/profiles")
        _ = try await stage.send("GET", "/v1/posts").readToEnd()
        let report = try await stage.ask("GET", "/_larder/conduct").json
        #expect(report["exchanges"] == .integer(5))
        #expect(report["clientErrors"] == .integer(2))
        #expect(report["serverErrors"] == .integer(1))
        #expect(report["unanswered"] == .integer(1))
        for _ in 0..<3 { _ = try await stage.ask("GET", "/v1/feed") }
        let short = try await stage.ask("GET", "/_larder/conduct?findings=1").json
        #expect(short["counts"]?["downloadedTwice"] == .integer(3))
        let told = (short["findings"]?.array ?? []).filter { $0["rule"] == .string("downloadedTwice") }
        #expect(
            told.map { $0["entries"] } == [.array([.integer(7), .integer(8)])],
            "the newest one, and what was held"
        )
    }
}
