import Foundation
import Larder
import LarderCoding
import LarderSQLite
import LarderServer
import LarderTesting
import TestSupport
import Testing

@testable import LarderDemo

/// The stores, records and outputs of the command. Serialized as `CommandTests` are.
@Suite("Command: stores, end to end", .oneMinute, .serialized)
struct CommandStoreTests {
    private let scene = CommandScene()

    private func mode(_ path: String) throws -> Int? {
        try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
    }

    @Test func `the cache is counted and cleared`() async throws {
        let backend = try MockBackend.startSmall()
        for command in ["feed", "accounts", "tasks"] {
            #expect(try await scene.run(command, on: backend.url).code == 0)
        }
        let cleared = try await scene.run("cache", "clear", "--json", on: backend.url)
        #expect(try cleared.json["cleared"]?.bool == true, "\(cleared)")
        let stored = try await scene.run("doctor", "--json", "--offline", on: backend.url)
        #expect(try stored.json["data"]?["items"]?.integer == 0, "\(stored)")
        #expect(try await scene.run("feed", "--offline", on: backend.url).code == 1)
        // The session is kept.
        #expect(try await scene.run("feed", on: backend.url).code == 0)
        #expect(await backend.main.journal(JournalFilter("POST", "/v1/sessions")).count == 1)
        #expect(await backend.activity() == [])
        await backend.stop()
    }

    @Test func `images come from the network, then from disk, and one is drawn`() async throws {
        var numbers = WorldSize()
        numbers.people = 5
        numbers.posts = 20
        let backend = try MockBackend.start(.generated(numbers, picturesFrom: MockBackend.fixtures))
        let words = ["images", "--width", "64", "--limit", "5"]
        let first = try await scene.run(words + ["--json"], on: backend.url)
        let count = try #require(try first.json["images"]?.integer, "\(first)")
        #expect(try count > 0 && first.json["fromNetwork"]?.integer == count, "\(first)")
        #expect(try first.json["shown"] == first.json["shownFromMemory"] && first.json["failed"]?.integer == 0)
        #expect(await backend.activity() == [])
        await backend.stop()
        let again = try await scene.run(words + ["--offline", "--json"], on: backend.url)
        #expect(try again.json["fromDisk"]?.integer == count && again.json["fromNetwork"]?.integer == 0, "\(again)")
    }

    @Test func `login is remembered, and logout erases everything`() async throws {
        let backend = try MockBackend.startSmall()
        let wrong = try await scene.run("login", "--password", "wrong", on: backend.url)
        #expect(wrong.code == 1 && wrong.errorLines.count == 1, "\(wrong)")
        #expect(try await scene.run("login", on: backend.url).output.contains("is signed in"))
        let feed = try await scene.run("feed", "--json", on: backend.url)
        let id = try #require(try feed.json["items"]?.array?.first { $0["likedByMe"]?.bool == false }?["id"]?.string)
        #expect(try await scene.run("like", id, "--offline", on: backend.url).code == 0)
        let kept = try await scene.run("logout", "--offline", on: backend.url)
        #expect(kept.code == 1 && kept.errors.contains("--force"), "\(kept)")
        #expect(!scene.files(named: "store.").isEmpty && !scene.files(named: "run.").isEmpty)
        #expect(try await scene.run("logout", "--force", on: backend.url).code == 0)
        #expect(scene.files(named: "store.").isEmpty && scene.files(named: "run.").isEmpty)
        #expect(try await scene.run("feed", "--offline", on: backend.url).code == 1)
        #expect(await backend.activity() == [])
        await backend.stop()
    }

    // MARK: Doctor

    @Test func `doctor reports healthy and unhealthy parts`() async throws {
        let backend = try MockBackend.startSmall()
        #expect(try await scene.run("feed", on: backend.url).code == 0)
        let well = try await scene.run("doctor", "--json", on: backend.url)
        let texts = [
            "server": "answers in", "account": "signed in", "data": "match", "images": "match", "outbox": "0 to send",
            "changes": "token",
        ]
        for (name, text) in texts {
            #expect(try well.json[name]?["text"]?.string?.contains(text) == true, "\(name): \(well)")
        }
        // The state of this machine, whatever it is: the finding agrees with its level.
        for (name, best) in [("network", "good"), ("memory", "normal")] {
            let finding = try #require(try well.json[name], "\(well)")
            let level = try #require(finding["level"]?.string, "\(well)")
            #expect(finding["text"]?.string?.hasPrefix("\(level): ") == true, "\(well)")
            #expect(finding["text"]?.string?.contains("no report yet") == false, "\(well)")
            #expect(finding["isHealthy"]?.bool == [best, "unknown"].contains(level), "\(well)")
        }
        for name in ["server", "account", "data", "outbox", "runs"] {
            #expect(try well.json[name]?["isHealthy"]?.bool == true, "\(name): \(well)")
        }
        #expect(await backend.activity() == [])
        await backend.stop()
        let ill = try await scene.run("doctor", on: backend.url)
        #expect(ill.code == 0 && ill.output.contains("! server"), "\(ill)")
    }

    @Test func `doctor finds damage in every type of item, pictures included`() async throws {
        var numbers = WorldSize()
        numbers.people = 5
        numbers.posts = 20
        let backend = try MockBackend.start(.generated(numbers, picturesFrom: MockBackend.fixtures))
        for words in [["feed"], ["accounts"], ["images", "--width", "64", "--limit", "5"]] {
            #expect(try await scene.run(words, on: backend.url).code == 0)
        }
        let well = try await scene.run("doctor", "--json", on: backend.url)
        for name in ["data", "images"] {
            #expect(try well.json[name]?["isHealthy"]?.bool == true, "\(well)")
            #expect(try well.json[name]?["entities"]?.integer ?? 0 > 0, "\(well)")
        }
        let paths = scene.files(named: "store.sqlite").filter {
            $0.hasSuffix("store.sqlite") && !$0.hasSuffix("outbox/store.sqlite")
        }
        #expect(paths.count == 2)
        for path in paths {
            // The checksum of one balance, of one list and of one picture.
            let database = try Database(.file(path))
            for sql in Self.damages { try database.execute(sql) }
        }
        let ill = try await scene.run("doctor", "--json", on: backend.url)
        #expect(try ill.json["data"]?["damaged"]?.integer == 2, "\(ill)")
        #expect(try ill.json["images"]?["damaged"]?.integer == 1, "\(ill)")
        for name in ["data", "images"] { #expect(try ill.json[name]?["isHealthy"]?.bool == false, "\(ill)") }
        // Damaged items are removed, and nothing else is.
        let later = try await scene.run("doctor", "--json", on: backend.url)
        for name in ["data", "images"] { #expect(try later.json[name]?["isHealthy"]?.bool == true, "\(later)") }
        await backend.stop()
    }

    private static let damages: [StaticString] = [
        """
        UPDATE items SET sum = sum + 1
        WHERE row IN (SELECT row FROM items WHERE kind = 0 AND space = 'account' LIMIT 1)
        """,
        """
        UPDATE items SET sum = sum + 1
        WHERE row IN (SELECT row FROM items WHERE kind = 1 AND space = 'accounts' LIMIT 1)
        """,
        """
        UPDATE items SET sum = sum + 1
        WHERE row IN (SELECT row FROM items WHERE kind = 0 AND space = 'http.body' LIMIT 1)
        """,
    ]

    @Test func `doctor adds up the measurements of earlier runs`() async throws {
        let backend = try MockBackend.startSmall()
        for _ in 1...2 { #expect(try await scene.run("feed", on: backend.url).code == 0) }
        let run = try await scene.run("doctor", "--json", on: backend.url)
        let feed = try #require(try run.json["telemetry"]?["features"]?["feed"], "\(run)")
        #expect(feed["reads"]?["disk"]?["hits"]?.integer == 1 && feed["reads"]?["disk"]?["misses"]?.integer == 1)
        #expect(feed["requests"]?["count"]?.integer == 1 && feed["requests"]?["p50"]?.integer ?? 0 > 0, "\(feed)")
        #expect(feed["bytesReceived"]?.integer ?? 0 > 1_000)
        #expect(try run.json["runs"]?["recorded"]?.integer == 2 && run.json["runs"]?["interrupted"]?.integer == 0)
        let text = try await scene.run("doctor", on: backend.url)
        #expect(text.output.contains("2 of 4 first contents (50 %)") && text.output.contains("p50 "), "\(text)")
        #expect(text.output.contains("completed after"), "\(text)")
        // Reading records adds none.
        let again = try await scene.run("doctor", "--json", on: backend.url)
        #expect(
            try again.json["telemetry"] == run.json["telemetry"],
            "\(again)"
        )
        #expect(await backend.activity() == [])
        await backend.stop()
    }

    @Test func `the events of a killed run are kept`() async throws {
        let backend = try MockBackend.startSmall()
        let view = try scene.start(["feed", "--live"], on: backend.url)
        await view.printed("live by WebSocket")
        // A running command is healthy.
        let during = try await scene.run("doctor", "--json", on: backend.url)
        #expect(
            try during.json["runs"]?["isHealthy"]?.bool == true && during.json["runs"]?["interrupted"] == nil,
            "\(during)"
        )
        // A second command at the same time is recorded too.
        #expect(try await scene.run("profile", on: backend.url).code == 0)
        view.send(SIGKILL)
        await view.ended()
        #expect(view.run.code == -SIGKILL)
        let run = try await scene.run("doctor", "--json", on: backend.url)
        let runs = try #require(try run.json["runs"], "\(run)")
        #expect(runs["isHealthy"]?.bool == false && runs["interrupted"]?.integer == 1 && runs["recorded"]?.integer == 2)
        #expect(runs["shown"]?["command"]?.string == "feed --live" && runs["shown"]?["endedAt"] == nil, "\(runs)")
        let events = runs["shown"]?["events"]?.array?.compactMap { $0["event"]?.string } ?? []
        #expect(events.contains { $0.hasPrefix("request feature=") && $0.contains("status=200") }, "\(events)")
        let text = try await scene.run("doctor", on: backend.url)
        #expect(text.output.contains("! runs") && text.output.contains("was interrupted"), "\(text)")
        // The five questions are answered by name, from the records of the killed run too.
        let answers = try #require(try run.json["questions"], "\(run)")
        #expect(answers["first screen"]?.string?.contains("needed no server: ") == true, "\(answers)")
        #expect(answers["image memory"]?.string == "No wanted picture was recorded.")
        #expect(answers["failures by version"]?.string?.contains(": 0 of ") == true, "\(answers)")
        #expect(answers["memory warnings"]?.string == "No memory warning was recorded.")
        let last = "of the interrupted run ('feed --live', version "
        #expect(answers["prefetch before a kill"]?.string?.contains(last) == true, "\(answers)")
        #expect(text.output.contains("first screen\n  "), "\(text)")
        let path = try #require(scene.files(named: "run.").first)
        let report = try await scene.run("doctor", "--recorder", path, on: backend.url)
        #expect(report.code == 0 && report.output.contains("prefetch before a kill"), "\(report)")
        // The file is read without the stores of an account.
        let elsewhere = CommandScene()
        let apart = try await elsewhere.run("doctor", "--recorder", path, on: backend.url)
        #expect(apart.output == report.output && elsewhere.files(named: "").isEmpty, "\(apart)")
        let missing = try await scene.run("doctor", "--recorder", "/nowhere", on: backend.url)
        #expect(missing.code != 0 && missing.errors.contains("/nowhere"), "\(missing)")
        for path in scene.files(named: "run.") { #expect(try mode(path) == 0o600) }
        #expect(await backend.activity() == [])
        await backend.stop()
    }

    @Test func `a damaged record file disables only the recording`() async throws {
        let backend = try MockBackend.startSmall()
        #expect(try await scene.run("feed", on: backend.url).code == 0)
        let path = try #require(scene.files(named: "run.").first)
        try Data("these are other people's notes, and they are longer than a few bytes".utf8)
            .write(to: URL(fileURLWithPath: path))
        let feed = try await scene.run("feed", "--trace", on: backend.url)
        #expect(feed.code == 0 && feed.errors.contains("this run is not recorded"), "\(feed)")
        let doctor = try await scene.run("doctor", on: backend.url)
        #expect(doctor.code == 0 && doctor.output.contains("! runs") && doctor.output.contains(path), "\(doctor)")
        #expect(await backend.activity() == [])
        await backend.stop()
    }

    // MARK: JSON

    @Test func `every command prints JSON with --json`() async throws {
        let backend = try MockBackend.startSmall()
        let url = backend.url
        let feed = try await scene.run("feed", "--json", on: url)
        let id = try #require(try feed.json["items"]?.array?.first { $0["likedByMe"]?.bool == false }?["id"]?.string)
        let chats = try await scene.run("chat", "--json", on: url)
        let chat = try #require(try chats.json["items"]?[0]?["id"]?.string)
        let (from, to, _) = try scene.pair(in: backend.main)
        let transfer = ["transfer", from["id"]?.string ?? "", to["id"]?.string ?? "", "0.01"]
        let commands = [
            ["feed"], ["accounts"], transfer, ["login"], ["profile"], ["profile", "person2"],
            ["profile", "--edit", "bio=JSON"], ["chat", chat], ["chat", chat, "--send", "hello"], ["like", id],
            ["unlike", id, "--offline"], ["outbox"], ["outbox", "send"], ["sync"], ["sync", "--offline"], ["images"],
            ["cache", "clear"], ["doctor"],
            ["logout"],
        ]
        for words in commands {
            let run = try await scene.run(words + ["--json"], on: url)
            #expect(run.code == 0, "\(words): \(run)")
            let documents = try run.jsonLines
            #expect(documents.count == 1 && documents[0].object != nil, "\(words): \(run)")
        }
        let followed = try [("feed", "\"items\""), ("sync", "\"isCaughtUp\"")].map { command, content in
            (try scene.start([command, "--live", "--json"], on: url), content)
        }
        for (process, content) in followed {
            // In any order: the state of the channel and the content come from two tasks.
            await process.printed("live by WebSocket")
            await process.printed(content)
            process.send(SIGINT)
            await process.ended()
            let documents = try process.run.jsonLines
            #expect(process.run.code == 0 && documents.count > 1, "\(process.run)")
            #expect(documents.contains { $0["live"]?.string == "live by WebSocket" }, "\(process.run)")
        }
        let short = try await scene.run("sync", "--live", "--seconds", "1", "--json", on: url)
        #expect(short.code == 0, "\(short)")
        #expect(await backend.activity() == [])
        await backend.stop()
    }

    @Test(arguments: [
        "fed", "feed extra", "feed --limit 0", "feed --live --offline", "like", "like nonsense", "transfer a b",
        "transfer a b 1,5", "chat --send x", "outbox drop x", "outbox send --offline", "cache trim lots",
        "profile --edit name=x", "doctor --telemetry xml", "feed --server ftp://nonsense", "login --offline",
        "images --width 1", "sync --seconds 5", "chat --live", "search --refresh",
        "feed --policy networkOnly --offline",
        "feed --explain --offline",
    ])
    func `an invalid command line prints one line and exits with code 2`(line: String) async throws {
        let run = try await scene.run(line.split(separator: " ").map { String($0) }, on: "http://127.0.0.1:9")
        #expect(run.code == 2 && run.output.isEmpty && run.errorLines.count == 1, "\(line): \(run)")
    }

    @Test func `help needs no server and creates no files`() async throws {
        let run = try await scene.run("help", on: "http://127.0.0.1:9")
        #expect(run.code == 0 && run.output.contains("USAGE") && run.errors.isEmpty)
        #expect(scene.files(named: "").isEmpty)
    }
}
