import Foundation
import Larder
import LarderCoding
import LarderEngine
import LarderServer
import LarderTesting
import Synchronization
import Testing

@Suite("The command, end to end", .timeLimit(.minutes(1)), .serialized)
struct CommandTests {
    private let scene = CommandScene()

    // MARK: Looking

    @Test func `the feed comes from the network, then from disk, and says so`() async throws {
        let backend = try MockBackend.startSmall()
        let first = try await scene.run("feed", "--limit", "3", on: backend.url)
        #expect(first.code == 0 && first.output.contains("fresh · from network"), "\(first)")
        #expect(first.output.split(separator: "\n").count == 7, "\(first)")
        let second = try await scene.run("feed", "--limit", "3", on: backend.url)
        #expect(second.code == 0 && second.output.contains("fresh · from disk"), "\(second)")
        await backend.stop()
        let offline = try await scene.run("feed", "--limit", "3", "--offline", on: backend.url)
        #expect(offline.code == 0 && offline.output.contains("from disk"), "\(offline)")
        let lines = { (run: CommandScene.Run) in run.output.split(separator: "\n").prefix(6).map { $0.prefix(8) } }
        #expect(lines(first) == lines(second) && lines(second) == lines(offline))
        // No colours and no steering where no terminal is.
        #expect(!first.output.contains("\u{1b}"))
    }

    @Test func `a server that is gone leaves what is stored, and its absence is said`() async throws {
        let backend = try MockBackend.startSmall()
        let nothing = try await scene.run("feed", "--offline", on: backend.url)
        #expect(nothing.code == 1 && nothing.errors.contains("without --offline"), "\(nothing)")
        #expect(try await scene.run("feed", on: backend.url).code == 0)
        await backend.stop()
        let run = try await scene.run("feed", "--policy", "cacheAndLoad", "--json", on: backend.url)
        #expect(run.code == 0, "\(run)")
        #expect(try run.json["badge"]?["failure"]?.string == "offline", "\(run)")
        #expect(try run.json["items"]?.array?.isEmpty == false)
        let stranger = try await scene.run("feed", on: backend.url, user: "person2")
        #expect(
            stranger.code == 1 && stranger.errors.split(separator: "\n").last?.contains("doctor") == true,
            "\(stranger)"
        )
    }

    @Test func `a profile is found by handle and edited with the server's word`() async throws {
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
        await backend.stop()
    }

    // MARK: Likes

    @Test func `a like made while the server is stopped arrives when it runs again`() async throws {
        let database = scene.directory + "/world.sqlite"
        try FileManager.default.createDirectory(atPath: scene.directory, withIntermediateDirectories: true)
        var configuration = MockBackend.Configuration()
        configuration.databasePath = database
        let first = try MockBackend.startSmall(configuration)
        let url = first.url
        let post = try #require(try await scene.run("feed", "--json", on: url).json["items"]?[0])
        let id = try #require(post["id"]?.string)
        let wasLiked = post["likedByMe"]?.bool == true
        let count = try #require(post["likeCount"]?.integer)
        configuration.server.port = first.port
        await first.stop()

        let tap = try await scene.run(wasLiked ? "unlike" : "like", id, on: url)
        #expect(tap.code == 0 && tap.output.contains("kept here"), "\(tap)")
        let shown = try await scene.run("feed", "--offline", on: url)
        #expect(shown.output.contains("not sent yet") && shown.output.contains("1 change pending"), "\(shown)")

        let second = try MockBackend.startSmall(configuration)
        let next = try await scene.run("profile", on: url)
        #expect(next.code == 0 && next.errors.contains("sent what was kept here"), "\(next)")
        let seen = try await scene.run("feed", "--refresh", "--json", on: url)
        let after = try #require(try seen.json["items"]?.array?.first { $0["id"]?.string == id }, "\(seen)")
        #expect(after["likedByMe"]?.bool == !wasLiked, "\(seen)")
        #expect(after["likeCount"]?.integer == count + (wasLiked ? -1 : 1))
        #expect(try await scene.run("outbox", "--json", on: url).json["items"]?.array?.isEmpty == true)
        await second.stop()
    }

    @Test func `a tap and its opposite made offline leave nothing to send`() async throws {
        let backend = try MockBackend.startSmall()
        let post = try #require(try await scene.run("feed", "--json", on: backend.url).json["items"]?[0])
        let id = try #require(post["id"]?.string)
        let taps = post["likedByMe"]?.bool == true ? ["unlike", "like"] : ["like", "unlike"]
        #expect(try await scene.run(taps[0], id, "--offline", on: backend.url).output.contains("--offline"))
        let entries = try await scene.run("outbox", "--offline", "--json", on: backend.url)
        #expect(try entries.json["pending"]?.integer == 1, "\(entries)")
        let second = try await scene.run(taps[1], id, "--offline", on: backend.url)
        #expect(second.output.contains("nothing is left to send"), "\(second)")
        #expect(try await scene.run("outbox", "--offline", "--json", on: backend.url).json["pending"]?.integer == 0)
        await backend.stop()
    }

    @Test func `a like that is refused is told, kept for a decision, and dropped`() async throws {
        let backend = try MockBackend.startSmall()
        let run = try await scene.run("like", "post_99999", on: backend.url)
        #expect(run.code == 1 && run.errors.contains("larder outbox drop 1"), "\(run)")
        let list = try await scene.run("outbox", "--json", on: backend.url)
        #expect(try list.json["refused"]?.integer == 1, "\(list)")
        #expect(try await scene.run("outbox", "drop", "1", on: backend.url).output.contains("dropped: like post_99999"))
        let gone = try await scene.run("outbox", "drop", "1", on: backend.url)
        #expect(gone.code == 1 && gone.errors.contains("no operation 1"), "\(gone)")
        await backend.stop()
    }

    @Test func `a malformed operation takes no other of its batch with it`() async throws {
        let backend = try MockBackend.startSmall()
        let items = try await scene.run("feed", "--json", on: backend.url).json["items"]?.array
        let good = try #require(items?.first { $0["likedByMe"]?.bool == false }?["id"]?.string)
        let isOpen = Atomic(false)
        var configuration = LarderClient.Configuration()
        configuration.followsLive = false
        configuration.cache.mayUseNetwork = { isOpen.load(ordering: .relaxed) }
        let client = try await LarderClient(
            server: backend.url,
            account: "ana",
            directory: scene.directory,
            configuration
        )
        try await client.signIn(handle: "ana", password: "larder")
        try client.likes.set(true, good)
        try client.likes.set(true, "../x")
        isOpen.store(true, ordering: .relaxed)
        client.cache.networkReturned()
        try await client.cache.outbox.drained()
        let left = client.cache.outbox.entries.map(\.scope)
        #expect(left == ["like/../x"])
        client.close()
        await backend.stop()
    }

    // MARK: Money

    private func accounts(_ url: String, of user: String = "ana") async throws -> [JSONValue] {
        let run = try await scene.run("accounts", "--json", on: url, user: user)
        return try #require(try run.json["items"]?.array, "\(run)")
    }

    private func balance(_ account: JSONValue) -> Int64 { account["balance"]?["minorUnits"]?.integer ?? .min }

    @Test func `money moves exactly, and a lost reply moves it once`() async throws {
        let backend = try MockBackend.startSmall()
        let before = try await accounts(backend.url).filter { $0["status"]?.string == "open" }
        var pair: (from: JSONValue, to: JSONValue, owner: String)?
        for owner in (2...9).map({ "person\($0)" }) where pair == nil {
            let theirs = try await accounts(backend.url, of: owner).filter { $0["status"]?.string == "open" }
            for from in before where balance(from) > 100 {
                let to = theirs.first { $0["balance"]?["currency"] == from["balance"]?["currency"] }
                if let to { pair = (from, to, owner) }
            }
        }
        let (from, to, owner) = try #require(pair)
        let (source, target) = (try #require(from["id"]?.string), try #require(to["id"]?.string))

        let plain = try await scene.run("transfer", source, target, "0.07", on: backend.url)
        #expect(plain.code == 0 && plain.output.contains("0.07 "), "\(plain)")
        var occurrence = Fault.Occurrence()
        occurrence.count = 1
        try backend.main.set(
            Fault(.loseReply(.reset), when: FaultMatch("POST", "/v1/transfers"), occurrence: occurrence)
        )
        let lost = try await scene.run("transfer", source, target, "0.01", "--wait", "20", on: backend.url)
        #expect(lost.code == 0 && lost.output.contains("was moved, once"), "\(lost)")
        let after = try await accounts(backend.url)
        #expect(after.first { $0["id"] == from["id"] }.map(balance) == balance(from) - 8)
        let theirs = try await accounts(backend.url, of: owner)
        #expect(theirs.first { $0["id"] == to["id"] }.map(balance) == balance(to) + 8)

        let much = try await scene.run("transfer", source, target, "92233720368547758.07", on: backend.url)
        #expect(much.code == 1 && much.errors.contains("larder accounts"), "\(much)")
        let nonsense = try await scene.run("transfer", source, target, "1,5", on: backend.url)
        #expect(nonsense.code == 2 && nonsense.errors.contains("12.50"), "\(nonsense)")
        let offline = try await scene.run("transfer", source, target, "1", "--offline", on: backend.url)
        #expect(offline.code == 1 && offline.errors.contains("Nothing was sent"), "\(offline)")
        #expect(try await scene.run("accounts", "--offline", on: backend.url).code == 1)
        #expect(try backend.ledgerFaults().isEmpty)
        await backend.stop()
    }

    // MARK: Chat

    @Test func `what is written offline arrives once, in order`() async throws {
        let backend = try MockBackend.startSmall()
        let list = try await scene.run("chat", "--json", on: backend.url)
        let conversation = try #require(try list.json["items"]?[0]?["id"]?.string, "\(list)")
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
        await backend.stop()
    }

    // MARK: Following

    @Test func `a live feed tells of a like elsewhere, and ends by Ctrl-C in order`() async throws {
        let backend = try MockBackend.startSmall()
        let post = try #require(
            try await scene.run("feed", "--json", on: backend.url, user: "person2").json["items"]?[0]
        )
        let id = try #require(post["id"]?.string)
        let view = try scene.start(["feed", "--live"], on: backend.url)
        await view.wait(for: "live by WebSocket")
        let tap = post["likedByMe"]?.bool == true ? "unlike" : "like"
        #expect(try await scene.run(tap, id, on: backend.url, user: "person2").code == 0)
        await view.wait(for: "~ \(id) ♥")
        view.interrupt()
        await view.wait { $0.isOver }
        #expect(view.run.code == 0, "\(view.run)")
        await backend.stop()
    }

    @Test func `sync applies what has changed elsewhere`() async throws {
        let backend = try MockBackend.startSmall()
        #expect(try await scene.run("feed", on: backend.url).code == 0)
        #expect(try await scene.run("sync", on: backend.url).output.contains("from now on"))
        let feed = try await scene.run("feed", "--json", on: backend.url, user: "person2")
        let post = try #require(try feed.json["items"]?[0])
        let tap = post["likedByMe"]?.bool == true ? "unlike" : "like"
        #expect(try await scene.run(tap, try #require(post["id"]?.string), on: backend.url, user: "person2").code == 0)
        let run = try await scene.run("sync", "--json", on: backend.url)
        #expect(try run.json["applied"]?.integer == 1, "\(run)")
        await backend.stop()
    }

    // MARK: Keeping

    @Test func `the cache is counted, exported without secrets, trimmed and cleared`() async throws {
        let backend = try MockBackend.startSmall()
        #expect(try await scene.run("feed", on: backend.url).code == 0)
        let stats = try await scene.run("cache", "stats", "--json", on: backend.url)
        #expect(try stats.json["data"]?["counts"]?["post"]?.integer == 50, "\(stats)")
        let path = scene.directory + "/export.json"
        #expect(try await scene.run("cache", "export", path, on: backend.url).code == 0)
        let text = try String(contentsOfFile: path, encoding: .utf8)
        #expect(text.contains("\"post_") && !text.contains("\"access\"") && !text.contains("\"refresh"))
        let trimmed = try await scene.run("cache", "trim", "10K", "--json", on: backend.url)
        #expect(try trimmed.json["data"]?["bytes"]?.integer ?? .max <= 10_240, "\(trimmed)")
        let cleared = try await scene.run("cache", "clear", "--json", on: backend.url)
        #expect(try cleared.json["data"]?["items"]?.integer == 0, "\(cleared)")
        #expect(try await scene.run("feed", "--offline", on: backend.url).code == 1)
        await backend.stop()
    }

    @Test func `pictures come from the network, then from disk, and one is drawn`() async throws {
        let fixtures = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../Fixtures").standardized.path
        var numbers = WorldNumbers()
        numbers.people = 5
        numbers.posts = 20
        let backend = try MockBackend.start(.generated(numbers, picturesFrom: fixtures))
        let first = try await scene.run("images", "--json", on: backend.url)
        let count = try #require(try first.json["pictures"]?.integer, "\(first)")
        #expect(try count > 0 && first.json["fromNetwork"]?.integer == count, "\(first)")
        #expect(try first.json["shown"] == first.json["shownFromMemory"] && first.json["failed"]?.integer == 0)
        let feed = try await scene.run("feed", "--limit", "50", "--json", on: backend.url)
        let post = try #require(try feed.json["items"]?.array?.first { $0["image"] != nil && $0["image"] != .null })
        await backend.stop()
        let again = try await scene.run("images", "--offline", "--json", on: backend.url)
        #expect(try again.json["fromDisk"]?.integer == count && again.json["fromNetwork"]?.integer == 0, "\(again)")
        let id = try #require(post["id"]?.string)
        let drawn = try await scene.run(
            "images",
            "--draw",
            id,
            "--width",
            "320",
            "--colour",
            "always",
            "--offline",
            on: backend.url
        )
        #expect(drawn.code == 0 && drawn.output.contains("▀") && drawn.output.contains("from disk"), "\(drawn.errors)")
    }

    @Test func `the doctor tells what is well and what waits`() async throws {
        let backend = try MockBackend.startSmall()
        #expect(try await scene.run("feed", on: backend.url).code == 0)
        let well = try await scene.run("doctor", "--json", on: backend.url)
        for name in ["server", "account", "data", "pictures", "outbox", "network", "memory"] {
            #expect(try well.json[name]?["text"]?.string?.isEmpty == false, "\(name): \(well)")
        }
        #expect(try well.json["server"]?["isWell"]?.bool == true && well.json["data"]?["isWell"]?.bool == true)
        await backend.stop()
        let ill = try await scene.run("doctor", on: backend.url)
        #expect(ill.code == 0 && ill.output.contains("! server"), "\(ill)")
    }

    @Test func `who logs in is remembered, and logging out leaves nothing`() async throws {
        let backend = try MockBackend.startSmall()
        let wrong = try await scene.run("login", "--password", "wrong", on: backend.url)
        #expect(wrong.code == 1 && wrong.errors.split(separator: "\n").count == 1, "\(wrong)")
        #expect(try await scene.run("login", on: backend.url).output.contains("is signed in"))
        #expect(try await scene.run("feed", on: backend.url).code == 0)
        let id = try await scene.run("feed", "--json", on: backend.url).json["items"]?[0]?["id"]?.string
        #expect(try await scene.run("chat", "conv_1", "--send", "x", "--offline", on: backend.url).code <= 1)
        #expect(try await scene.run("like", try #require(id), "--offline", on: backend.url).code == 0)
        let kept = try await scene.run("logout", "--offline", on: backend.url)
        #expect(kept.code == 1 && kept.errors.contains("--force"), "\(kept)")
        #expect(try await scene.run("logout", "--force", on: backend.url).code == 0)
        #expect(try await scene.run("feed", "--offline", on: backend.url).code == 1)
        await backend.stop()
    }

    @Test func `a wrong word ends with one line and exit code 2`() async throws {
        let run = try await scene.run("fed", on: "http://127.0.0.1:9")
        #expect(run.code == 2 && run.output.isEmpty && run.errors.split(separator: "\n").count == 1, "\(run)")
        #expect(try await scene.run("help", on: "http://127.0.0.1:9").output.contains("USAGE"))
    }
}
