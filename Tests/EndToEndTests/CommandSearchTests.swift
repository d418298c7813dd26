import Glibc
import Larder
import LarderCoding
import LarderServer
import LarderTesting
import TestSupport
import Testing

@testable import LarderDemo

/// `larder search` against a server in this process.
@Suite("Command: search", .oneMinute, .serialized)
struct CommandSearchTests {
    private let scene = CommandScene()

    /// A word of many posts, and the posts that have it, newest first.
    private func word(in world: MockWorld) throws -> (word: String, ids: [String]) {
        for word in ["the", "and", "we"] {
            var ids: [String] = []
            var cursor = ""
            repeat {
                let reply = world.perform(
                    ScriptedAction("GET", "/v1/search?q=\(word)&limit=100\(cursor)", as: "ana")
                )
                let page = try JSONParser.parse(Array(reply.body))
                ids += page["items"]?.array?.compactMap { $0["id"]?.string } ?? []
                cursor = page["nextCursor"]?.string.map { "&after=\($0)" } ?? ""
            } while !cursor.isEmpty
            if ids.count > 45 { return (word, ids) }
        }
        Issue.record("No word is in more than two pages.")
        throw CancellationError()
    }

    private func ids(_ run: JSONValue) -> [String] { run["posts"]?.array?.compactMap { $0["id"]?.string } ?? [] }

    @Test func `more than a page is shown with --limit, and again without a server`() async throws {
        let backend = try MockBackend.startSmall()
        let (word, all) = try word(in: backend.main)
        let found = try await scene.run("search", word, "--limit", "45", "--json", on: backend.url)
        #expect(try ids(found.json) == Array(all.prefix(45)), "\(found)")
        let feed = try await scene.run("feed", "--limit", "120", "--json", on: backend.url)
        #expect(try feed.json["items"]?.array?.count == 120, "\(feed)")
        #expect(await backend.activity() == [])
        await backend.stop()
        let offline = try await scene.run("search", word, "--limit", "45", "--offline", "--json", on: backend.url)
        #expect(try ids(offline.json) == Array(all.prefix(45)), "\(offline)")
    }

    @Test func `a page that cannot be loaded is a note, and the others are shown`() async throws {
        let backend = try MockBackend.startSmall()
        let (word, all) = try word(in: backend.main)
        let first = try await scene.run("search", word, "--json", on: backend.url)
        #expect(try ids(first.json) == Array(all.prefix(10)), "\(first)")
        try backend.main.set(Fault(.respond(CannedReply(status: 500)), when: FaultMatch("GET", "/v1/search")))
        let found = try await scene.run("search", word, "--limit", "45", "--json", on: backend.url)
        #expect(try ids(found.json) == Array(all.prefix(20)), "\(found)")
        #expect(found.errors.contains("not all of posts for '\(word)' could be loaded"), "\(found)")
        await backend.stop()
    }

    @Test func `each line of a pipe replaces the search before, whose requests are cancelled`() async throws {
        let backend = try MockBackend.startSmall()
        let (word, all) = try word(in: backend.main)
        let field = try scene.start(["search", "--limit", "25", "--json"], on: backend.url, typing: true)
        // The answers to the first search are held.
        try backend.main.set(Gate(id: "first", when: FaultMatch("GET", "/v1/search"), count: 2))
        field.type("nosuchword\n")
        #expect(await backend.main.wait(for: .held(2), limit: .seconds(3_600)))
        field.type("\(word.prefix(1))\n\(word)\n")
        await field.printed("\"text\":\"\(word)\"")
        // Given up while their answers were held.
        backend.main.removeGate("first")
        var abandoned = JournalFilter("GET", "/v1/search")
        abandoned.outcome = "abandoned"
        #expect(await backend.main.wait(for: .entries(abandoned, count: 2), limit: .seconds(3_600)))
        // The same words again, as at the end of the pipe, without a line break.
        let count = await backend.main.journal(JournalFilter("GET", "/v1/search")).count
        field.type("nothing of this\n \(word.uppercased())")
        field.endTyping()
        await field.ended()
        #expect(field.run.code == 0, "\(field.run)")
        let printed = try field.run.jsonLines
        #expect(printed.map { $0["text"]?.string } == [word, " \(word.uppercased())"], "\(field.run)")
        #expect(printed.allSatisfy { ids($0) == Array(all.prefix(25)) }, "\(field.run)")
        #expect(printed.first?["summary"]?.string?.contains(" 40+ posts, ") == true, "\(field.run)")
        #expect(await backend.main.journal(JournalFilter("GET", "/v1/search")).count == count, "It is fresh.")
        await backend.stop()
    }

    @Test func `typed searches without a server show what is stored`() async throws {
        let backend = try MockBackend.startSmall()
        let person = try await scene.run("search", "person19", on: backend.url)
        #expect(person.code == 0, "\(person)")
        await backend.stop()
        let field = try scene.start(["search", "--offline"], on: backend.url, typing: true)
        field.type("person19\n")
        await field.printed("person19: 1 person, 0 posts, 0 liked\n")
        field.type("person3\n")
        await field.printed("person3: 0 people, 0 posts, 0 liked; not up to date: ")
        field.send(SIGINT)
        await field.ended()
        #expect(field.run.code == 0 && field.run.lines.first?.contains("@person19") == true, "\(field.run)")
    }
}
