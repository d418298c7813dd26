import Foundation
import Larder
import LarderCoding
import LarderEngine
import LarderServer
import LarderTesting
import TestSupport
import Testing

@testable import LarderDemo

/// The built command against a server in this process. Serialized, because each test runs several processes.
@Suite("Command, end to end", .oneMinute, .serialized)
struct CommandTests {
    private let scene = CommandScene()

    // MARK: Reading

    @Test func `the feed comes from the network, then from disk, also without a server`() async throws {
        let backend = try MockBackend.startSmall()
        let first = try await scene.run("feed", "--limit", "3", on: backend.url)
        #expect(first.code == 0 && first.output.contains("fresh · from network"), "\(first)")
        #expect(first.lines.count == 7, "\(first)")
        // No escape sequences without a terminal.
        #expect(!first.output.contains("\u{1b}"))
        let second = try await scene.run("feed", "--limit", "3", on: backend.url)
        #expect(second.code == 0 && second.output.contains("fresh · from disk"), "\(second)")
        #expect(await backend.main.journal(JournalFilter("GET", "/v1/feed")).count == 1)
        #expect(await backend.activity() == [])
        await backend.stop()
        let offline = try await scene.run("feed", "--limit", "3", "--offline", on: backend.url)
        #expect(offline.code == 0 && offline.output.contains("from disk"), "\(offline)")
        let posts = { (run: CommandScene.Run) in run.lines.prefix(6).map { $0.prefix(8) } }
        #expect(posts(first) == posts(second) && posts(second) == posts(offline))
    }

    @Test func `stored data is shown without a server, and the failure is one line`() async throws {
        let backend = try MockBackend.startSmall()
        let nothing = try await scene.run("feed", "--offline", on: backend.url)
        #expect(nothing.code == 1 && nothing.errors.contains("without --offline"), "\(nothing)")
        #expect(try await scene.run("feed", on: backend.url).code == 0)
        #expect(await backend.activity() == [])
        await backend.stop()
        let run = try await scene.run("feed", "--policy", "cacheAndLoad", "--json", on: backend.url)
        #expect(run.code == 0, "\(run)")
        #expect(try run.json["badge"]?["failure"]?.string == "offline", "\(run)")
        #expect(try run.json["items"]?.array?.isEmpty == false)
        for words in [["feed"], ["profile"], ["accounts"], ["chat"], ["images"], ["sync"], ["login"]] {
            let stranger = try await scene.run(words, on: backend.url, user: "person2")
            #expect(stranger.code == 1 && stranger.output.isEmpty, "\(words): \(stranger)")
            #expect(stranger.errorLines.last?.contains(backend.url) == true, "\(words): \(stranger)")
        }
    }

    private func page(_ post: String, cursor: String) -> CannedReply {
        var reply = CannedReply(status: 200)
        reply.headers = ["Content-Type": "application/json"]
        reply.body = "{\"items\":[\(post)],\"nextCursor\":\(cursor),\"previousCursor\":null}"
        return reply
    }

    @Test(arguments: ["never", "always"]) func `a time of the server cannot control the terminal`(_ color: String)
        async throws
    {
        let backend = try MockBackend.startSmall()
        let post = #"""
            {"id":"post_1","authorId":"user_1","text":"a\u001b[31mb","image":null,"createdAt":"\u001b]0;x\u0007","editedAt":null,
            "likeCount":0,"likedByMe":true,"version":1,"updatedAt":"2026-01-01T00:00:00Z"}
            """#
        try backend.main.set(Fault(.respond(page(post, cursor: "null")), when: FaultMatch("GET", "/v1/feed")))
        let run = try await scene.run("feed", "--colour", color, on: backend.url)
        #expect(run.code == 0 && run.output.contains("·]0;x·"), "\(run)")
        #expect(!run.output.contains("\u{1b}]") && !run.output.contains("\u{7}"), "\(run)")
        #expect(run.output.contains("\u{1b}[31m♥ 0\u{1b}[0m") == (color == "always"), "\(run)")
        #expect(run.output.contains("a·[31mb"), "\(run)")
        await backend.stop()
    }

    @Test func `pages without a new post end a read`() async throws {
        let backend = try MockBackend.startSmall()
        let post = """
            {"id":"post_1","authorId":"user_1","text":"a","image":null,"createdAt":"2026-01-01T00:00:00Z","editedAt":null,
            "likeCount":0,"likedByMe":true,"version":1,"updatedAt":"2026-01-01T00:00:00Z"}
            """
        try backend.main.set(Fault(.respond(page(post, cursor: "\"next\"")), when: FaultMatch("GET", "/v1/feed")))
        let run = try await scene.run("feed", "--limit", "5", "--json", on: backend.url)
        #expect(try run.code == 0 && run.json["items"]?.array?.count == 1, "\(run)")
        #expect(await backend.main.journal(JournalFilter("GET", "/v1/feed")).count == 3)
        await backend.stop()
    }

    @Test func `a profile is found by handle, and an edit requires the server`() async throws {
        let backend = try MockBackend.startSmall()
        let other = try await scene.run("profile", "person2", "--json", on: backend.url)
        #expect(try other.json["item"]?["handle"]?.string == "person2", "\(other)")
        let edit = try await scene.run("profile", "--edit", "displayName=Ana B.", "--json", on: backend.url)
        #expect(try edit.json["item"]?["displayName"]?.string == "Ana B.", "\(edit)")
        let seen = try await scene.run("profile", "ana", "--json", on: backend.url, user: "person2")
        #expect(try seen.json["item"]?["displayName"]?.string == "Ana B.", "\(seen)")
        let missing = try await scene.run("profile", "nobody", on: backend.url)
        #expect(missing.code == 1 && missing.errors.contains("nobody"), "\(missing)")
        let offline = try await scene.run("profile", "--edit", "bio=x", "--offline", on: backend.url)
        #expect(offline.code == 1 && offline.errors.contains("Nothing was changed"), "\(offline)")
        #expect(await backend.activity() == [])
        await backend.stop()
    }

    @Test func `a search shows people and posts with all words, and again without a server`() async throws {
        let backend = try MockBackend.startSmall()
        let posts = try await scene.run("feed", "--limit", "50", "--json", on: backend.url)
        let post = try #require(try posts.json["items"]?.array?.first { $0["text"]?.string?.contains(" ") == true })
        let words = try #require(post["text"]?.string).split(separator: " ").prefix(2).joined(separator: " ")
        let found = try await scene.run("search", words, "--json", on: backend.url)
        #expect(try found.json["posts"]?.array?.contains { $0["id"] == post["id"] } == true, "\(found)")
        let person = try await scene.run("search", "person2", on: backend.url)
        #expect(person.code == 0 && person.lines.first?.contains("@person2") == true, "\(person)")
        let nothing = try await scene.run("search", "nosuchword", on: backend.url)
        #expect(nothing.code == 0 && nothing.lines.first == "Nothing has all words of 'nosuchword'.", "\(nothing)")
        #expect(await backend.activity() == [])
        await backend.stop()
        let offline = try await scene.run("search", words, "--offline", "--json", on: backend.url)
        #expect(try offline.json["posts"] == found.json["posts"], "\(offline)")
    }

    @Test func `one post is shown with its likes, which are fresh for a shorter time than its text`() async throws {
        let backend = try MockBackend.startSmall()
        let feed = try await scene.run("feed", "--limit", "1", "--json", on: backend.url)
        let id = try #require(try feed.json["items"]?[0]?["id"]?.string, "\(feed)")
        let post = try await scene.run("feed", id, "--json", on: backend.url)
        #expect(try post.json["item"] == feed.json["items"]?[0], "\(post)")
        let lifetimes = try [feed, post].map { run in
            let badge = try run.json["badge"]
            let times = ["validatedAt", "expiresAt"].compactMap { badge?[$0]?.string.flatMap { WallTime(rfc3339: $0) } }
            return try #require(times.count == 2 ? times[1] - times[0] : nil, "\(run)")
        }
        #expect(lifetimes == [.seconds(60), .seconds(10)])
        let text = try await scene.run("feed", id, "--offline", on: backend.url)
        #expect(text.code == 0 && text.lines.first?.hasPrefix(id) == true, "\(text)")
        #expect(try await scene.run("feed", "post_9999", on: backend.url).code == 1)
        await backend.stop()
    }

    @Test func `a trace has the events of the SDK without private texts`() async throws {
        let backend = try MockBackend.startSmall()
        try backend.main.set(Fault(.respond(CannedReply(status: 403)), when: FaultMatch("GET", "/v1/feed")))
        let run = try await scene.run("feed", "--trace", on: backend.url)
        #expect(run.code == 1 && run.errors.contains("larder: debug tierMiss tier=disk feature=feed\n"), "\(run)")
        #expect(run.errors.contains("larder: info request feature=feed status=403 "), "\(run)")
        #expect(run.errors.contains("larder: notice note name=failed feed detail=<private>\n"), "\(run)")
        // The end of the run is recorded last.
        #expect(run.errorLines.dropLast().last == "larder: notice note name=ended detail=<private>", "\(run)")
        await backend.stop()
    }

    // MARK: Likes

    private func firstPost(_ backend: MockBackend, isLiked: Bool, user: String = "ana") async throws -> JSONValue {
        let feed = try await scene.run("feed", "--limit", "50", "--json", on: backend.url, user: user)
        return try #require(
            try feed.json["items"]?.array?.first { $0["likedByMe"]?.bool == isLiked },
            "\(feed)"
        )
    }

    @Test func `a like made without a server is sent once when the server is back`() async throws {
        var configuration = MockBackend.Configuration()
        configuration.databasePath = scene.directory + "/world.sqlite"
        try FileManager.default.createDirectory(atPath: scene.directory, withIntermediateDirectories: true)
        let first = try MockBackend.startSmall(configuration)
        let url = first.url
        let post = try await firstPost(first, isLiked: false)
        let id = try #require(post["id"]?.string)
        let count = try #require(post["likeCount"]?.integer)
        configuration.server.port = first.port
        await first.stop()

        let tap = try await scene.run("like", id, on: url)
        #expect(tap.code == 0 && tap.output.contains("♥ \(count + 1)") && tap.output.contains("queued"), "\(tap)")
        let shown = try await scene.run("feed", "--limit", "50", "--offline", on: url)
        #expect(shown.output.contains("not sent yet") && shown.output.contains("1 change pending"), "\(shown)")
        let waiting = try await scene.run("outbox", "--offline", on: url)
        #expect(waiting.output.contains("like \(id)"), "\(waiting)")

        let second = try MockBackend.startSmall(configuration)
        let next = try await scene.run("profile", on: url)
        #expect(next.code == 0 && next.errors.contains("sent queued operation: like \(id)"), "\(next)")
        let seen = try await scene.run("feed", "--refresh", "--limit", "50", "--json", on: url)
        let after = try #require(try seen.json["items"]?.array?.first { $0["id"]?.string == id }, "\(seen)")
        #expect(after["likedByMe"]?.bool == true && after["likeCount"]?.integer == count + 1, "\(seen)")
        #expect(try await scene.run("outbox", "--json", on: url).json["items"]?.array?.isEmpty == true)
        let requests = await second.main.journal(JournalFilter("POST", "/v1/likes"))
        #expect(requests.count == 1, "\(requests)")
        await second.stop()
    }

    @Test func `a like and an unlike made offline are sent as one request that unlikes`() async throws {
        let backend = try MockBackend.startSmall()
        let id = try #require(try await firstPost(backend, isLiked: false)["id"]?.string)
        #expect(try await scene.run("like", id, "--offline", on: backend.url).output.contains("--offline"))
        let entries = try await scene.run("outbox", "--offline", "--json", on: backend.url)
        #expect(try entries.json["pending"]?.integer == 1, "\(entries)")
        let second = try await scene.run("unlike", id, "--offline", on: backend.url)
        #expect(second.output.contains("--offline"), "\(second)")
        #expect(try await scene.run("outbox", "--offline", "--json", on: backend.url).json["pending"]?.integer == 1)
        #expect(try await scene.run("outbox", "send", on: backend.url).code == 0)
        #expect(await backend.main.journal(JournalFilter("POST", "/v1/likes")).count == 1)
        let after = try await firstPost(backend, isLiked: false)
        #expect(after["id"]?.string == id && after["likedByMe"]?.bool == false, "\(after)")
        #expect(await backend.activity() == [])
        await backend.stop()
    }

    @Test func `a rejected like is reported, retried and dropped`() async throws {
        let backend = try MockBackend.startSmall()
        let id = try #require(try await firstPost(backend, isLiked: false)["id"]?.string)
        try backend.main.set(
            Fault(.respond(CannedReply(status: 422)), when: FaultMatch("POST", "/v1/likes"))
        )
        let run = try await scene.run("like", id, on: backend.url)
        #expect(run.code == 1 && run.errors.contains("larder outbox drop 1"), "\(run)")
        let again = try await scene.run("outbox", "retry", "1", on: backend.url)
        #expect(again.code == 0 && again.output.contains("rejected"), "\(again)")
        let list = try await scene.run("outbox", "--json", on: backend.url)
        #expect(try list.json["rejected"]?.integer == 1 && list.json["items"]?.array?.count == 1, "\(list)")
        backend.main.removeFaults()
        let third = try await scene.run("outbox", "retry", "1", on: backend.url)
        #expect(third.code == 0 && third.output.contains("The outbox is empty"), "\(third)")
        let rejected = try await scene.run("like", "post_99999", on: backend.url)
        #expect(rejected.code == 1 && rejected.errors.contains("post_99999"), "\(rejected)")
        let later = try await scene.run("outbox", on: backend.url)
        #expect(later.output.contains("Not found"), "\(later)")
        let kept = try await scene.run("logout", on: backend.url)
        #expect(kept.code == 1 && kept.errors.contains("1 rejected change would be lost"), "\(kept)")
        let left = try await scene.run("outbox", "--json", on: backend.url)
        let number = try #require(try left.json["items"]?[0]?["id"]?.integer, "\(left)")
        let drop = try await scene.run("outbox", "drop", "\(number)", on: backend.url)
        #expect(drop.code == 0 && drop.output.contains("dropped: like post_99999"), "\(drop)")
        let gone = try await scene.run("outbox", "drop", "\(number)", on: backend.url)
        #expect(gone.code == 1 && gone.errors.contains("no operation \(number)"), "\(gone)")
        #expect(await backend.activity() == [])
        await backend.stop()
    }

    // MARK: Money

    @Test func `transfers are exact, and invalid ones are rejected before a request`() async throws {
        let backend = try MockBackend.startSmall()
        let (from, to, owner) = try scene.pair(in: backend.main)
        let (source, target) = (try #require(from["id"]?.string), try #require(to["id"]?.string))
        let plain = try await scene.run("transfer", source, target, "0.07", on: backend.url)
        #expect(plain.code == 0 && plain.output.contains("0.07 "), "\(plain)")
        #expect(
            try await scene.accounts(on: backend.url).first { $0["id"] == from["id"] }.map(scene.balance)
                == scene.balance(from) - 7
        )
        let theirs = try scene.accounts(in: backend.main, of: owner)
        #expect(theirs.first { $0["id"] == to["id"] }.map(scene.balance) == scene.balance(to) + 7)

        let much = try await scene.run("transfer", source, target, "1000000", on: backend.url)
        #expect(much.code == 1 && much.errors.contains("larder accounts"), "\(much)")
        let nonsense = try await scene.run("transfer", source, target, "1,5", on: backend.url)
        #expect(nonsense.code == 2 && nonsense.errors.contains("12.50"), "\(nonsense)")
        let offline = try await scene.run("transfer", source, target, "1", "--offline", on: backend.url)
        #expect(offline.code == 1 && offline.errors.contains("Nothing was sent"), "\(offline)")
        let balances = try await scene.run("accounts", "--offline", on: backend.url)
        #expect(balances.code == 0 && balances.output.contains(source), "\(balances)")
        #expect(try backend.main.ledgerFaults().isEmpty)
        #expect(await backend.activity() == [])
        await backend.stop()
    }

    @Test func `the balance of one account is confirmed by the server or not shown, and the list shows the last known`()
        async throws
    {
        let backend = try MockBackend.startSmall()
        let (from, to, _) = try scene.pair(in: backend.main)
        let (source, target) = (try #require(from["id"]?.string), try #require(to["id"]?.string))
        let known = try await scene.run("accounts", source, "--limit", "3", "--json", on: backend.url)
        #expect(try known.json["item"]?["id"] == from["id"], "\(known)")
        #expect(try known.json["badge"]?["freshness"]?.string == "fresh", "\(known)")
        #expect(try known.json["transactions"]?["items"]?.array?.count == 3, "\(known)")
        // The transfer makes the stored balance invalid.
        #expect(try await scene.run("transfer", source, target, "0.01", "--json", on: backend.url).code == 0)
        await backend.stop()
        let list = try await scene.run("accounts", on: backend.url)
        #expect(list.code == 0 && list.output.contains("stale") && list.output.contains(source), "\(list)")
        let one = try await scene.run("accounts", source, on: backend.url)
        #expect(one.code == 1 && one.output.isEmpty, "\(one)")
        #expect(one.errors.contains("The balance of \(source) cannot be confirmed: "), "\(one)")
    }

    @Test func `a transfer with a lost reply is resolved once by the next command`() async throws {
        let backend = try MockBackend.startSmall()
        let (from, to, owner) = try scene.pair(in: backend.main)
        let (source, target) = (try #require(from["id"]?.string), try #require(to["id"]?.string))
        // Every attempt is carried out, but its reply is lost.
        try backend.main.set(Fault(.loseReply(.reset), when: FaultMatch("POST", "/v1/transfers")))
        let lost = try await scene.run("transfer", source, target, "0.01", on: backend.url)
        #expect(lost.code == 1 && lost.errors.contains("Unresolved"), "\(lost)")
        #expect(!lost.output.contains("✓"), "\(lost)")
        backend.main.removeFaults()
        let waiting = try await scene.run("outbox", "--json", on: backend.url)
        #expect(try waiting.json["inDoubt"]?.integer == 1, "\(waiting)")
        let next = try await scene.run("profile", on: backend.url)
        #expect(next.code == 0 && next.errors.contains("sent queued operation: transfer 0.01"), "\(next)")
        #expect(try await scene.run("outbox", on: backend.url).output.contains("The outbox is empty"))
        let requests = await backend.main.journal(JournalFilter("POST", "/v1/transfers"))
        let keys = requests.compactMap { $0.requestField("Idempotency-Key") }
        #expect(requests.count >= 2 && keys.count == requests.count && Set(keys).count == 1, "\(requests)")
        #expect(
            try await scene.accounts(on: backend.url).first { $0["id"] == from["id"] }.map(scene.balance)
                == scene.balance(from) - 1
        )
        let theirs = try scene.accounts(in: backend.main, of: owner)
        #expect(theirs.first { $0["id"] == to["id"] }.map(scene.balance) == scene.balance(to) + 1)
        #expect(try backend.main.ledgerFaults().isEmpty)
        #expect(await backend.activity() == [])
        await backend.stop()
    }

    // MARK: Chat

    @Test func `messages sent offline arrive once and in order`() async throws {
        let backend = try MockBackend.startSmall()
        let list = try await scene.run("chat", "--json", on: backend.url)
        let conversation = try #require(try list.json["items"]?[0]?["id"]?.string, "\(list)")
        // Of two conversations.
        let few = try await scene.run("chat", "--limit", "1", "--json", on: backend.url, user: "person2")
        #expect(try few.json["items"]?.array?.count == 1, "\(few)")
        #expect(try await scene.run("chat", conversation, on: backend.url).code == 0)
        for text in ["first", "second"] {
            let run = try await scene.run("chat", conversation, "--send", text, "--offline", on: backend.url)
            #expect(run.code == 0 && run.output.contains("(not sent yet)"), "\(run)")
        }
        let third = try await scene.run("chat", conversation, "--send", "third", "--json", on: backend.url)
        #expect(third.code == 0, "\(third)")
        let seen = try await scene.run("chat", conversation, "--refresh", "--limit", "4", "--json", on: backend.url)
        let texts = try seen.json["items"]?.array?.compactMap { $0["text"]?.string }
        #expect(texts?.prefix(3) == ["third", "second", "first"] && texts?.last != "first", "\(seen)")
        let sent = await backend.main.journal(JournalFilter("POST", "/v1/conversations/*/messages"))
        #expect(sent.count == 3, "\(sent)")
        #expect(await backend.activity() == [])
        await backend.stop()
    }

    // MARK: Following

    @Test func `a live feed prints a like by another user, and Ctrl-C ends it`() async throws {
        let backend = try MockBackend.startSmall()
        let id = try #require(try await firstPost(backend, isLiked: false, user: "person2")["id"]?.string)
        let view = try scene.start(["feed", "--live", "--limit", "50"], on: backend.url)
        await view.printed("live by WebSocket")
        #expect(try await scene.run("like", id, on: backend.url, user: "person2").code == 0)
        await view.printed("~ \(id) ♥")
        view.send(SIGINT)
        await view.ended()
        #expect(view.run.code == 0 && view.run.output.contains("~ \(id) ♥"), "\(view.run)")
        #expect(await backend.activity() == [])
        await backend.stop()
    }

    @Test func `a live feed prints a deletion by another user`() async throws {
        let backend = try MockBackend.startSmall()
        let view = try scene.start(["feed", "--live", "--limit", "50"], on: backend.url)
        await view.printed("live by WebSocket")
        let reply = backend.main.perform(
            ScriptedAction("POST", "/v1/posts", as: "person2", body: #"{"text":"soon gone"}"#)
        )
        let id = try #require(try JSONParser.parse(Array(reply.body))["id"]?.string, "\(reply)")
        await view.printed("+ \(id)")
        #expect(backend.main.perform(ScriptedAction("DELETE", "/v1/posts/\(id)", as: "person2")).status == 204)
        await view.printed("- \(id)\n")
        view.send(SIGINT)
        await view.ended()
        #expect(await backend.activity() == [])
        await backend.stop()
    }

    @Test func `sync applies changes of other users`() async throws {
        let backend = try MockBackend.startSmall()
        #expect(try await scene.run("feed", on: backend.url).code == 0)
        #expect(try await scene.run("sync", on: backend.url).output.contains("following changes"))
        let id = try #require(try await firstPost(backend, isLiked: false, user: "person2")["id"]?.string)
        #expect(try await scene.run("like", id, on: backend.url, user: "person2").code == 0)
        let run = try await scene.run("sync", "--json", on: backend.url)
        #expect(try run.json["applied"]?.integer == 1, "\(run)")
        let nothing = try await scene.run("sync", "--json", on: backend.url)
        #expect(try nothing.json["applied"]?.integer == 0, "\(nothing)")
        #expect(await backend.activity() == [])
        await backend.stop()
    }
}
