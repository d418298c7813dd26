import LarderCoding
import LarderHTTP
import LarderSQLite
import TestSupport
import Testing

@testable import LarderBackend
@testable import LarderServer

@Suite("Secrets", .oneMinute)
struct SecretsTests {
    @Test(arguments: ["access_token", "access%5Ftoken", "%61ccess_token"])
    func `a token in a query is masked everywhere, for any spelling of its name`(name: String) async throws {
        let stage = try Stage()
        try stage.world.set(Gate(id: "g", when: FaultMatch("GET", "/v1/feed")))
        let client = try stage.send("GET", "/v1/feed?\(name)=dev-ana&limit=1", as: nil)
        await reached { !stage.world.held.isEmpty }
        #expect(!(try await stage.ask("GET", "/_larder/held", as: nil).text.contains("dev-ana")))
        stage.world.releaseAll()
        #expect(try await client.reply().status == 200)
        #expect(await stage.world.journal().allSatisfy { !$0.target.contains("dev-ana") })
        #expect(await stage.world.journal().first?.target.hasSuffix("=••••&limit=1") == true)
        let report = await stage.world.verify(.exactly(7, JournalFilter("GET", "/v1/feeds")))
        #expect(!report.description.contains("dev-ana") && report.description.contains("••••"))
        for path in ["1", "1/curl", "har"] {
            let shown = try await stage.ask("GET", "/_larder/journal/\(path)", as: nil).text
            #expect(shown.contains("••••") && !shown.contains("dev-ana"), "\(path)")
        }
    }

    @Test func `a password in a body is masked everywhere, also in a truncated body`() async throws {
        let stage = try Stage()
        _ = try await stage.ask("POST", "/v1/sessions", #"{"handle":"ana","password":"hunter-2"}"#, as: nil)
        _ = try await stage.ask("POST", "/v1/sessions", #"{"handle":"ana","password":"hunter-2"#, as: nil)
        _ = try await stage.ask("POST", "/v1/posts", #"{ "text": "as it came" }"#)
        for path in ["1", "1/curl", "2", "2/curl", "har"] {
            let shown = try await stage.ask("GET", "/_larder/journal/\(path)", as: nil).text
            #expect(shown.contains("••••") && !shown.contains("hunter"), "\(path)")
        }
        let curl = try await stage.ask("GET", "/_larder/journal/3/curl", as: nil).text
        #expect(curl.contains(#"--data-binary '{ "text": "as it came" }'"#))
    }

    private func signIn(_ stage: Stage, as handle: String, in world: String = "") async throws -> RawReply {
        try await stage.ask(
            "POST",
            world + "/v1/sessions",
            "{\"handle\":\"\(handle)\",\"password\":\"larder\"}",
            as: nil
        )
    }

    private func bearer(_ reply: RawReply) throws -> [String: String] {
        ["Authorization": "Bearer " + (try #require(try reply.json["accessToken"]?.string, "\(reply.text)"))]
    }

    @Test func `secrets do not repeat when a server with a seed starts again on its database`() async throws {
        let directory = try ScratchDirectory()
        var old: [[String: String]] = []
        for round in 0..<3 {
            let stage = try Stage { $0.databasePath = directory.path + "/world.sqlite" }
            for handle in ["person2", "ana"] {
                let session = try await signIn(stage, as: handle)
                #expect(session.status == 201, "round \(round): \(session.text)")
                let fields = try bearer(session)
                #expect(!old.contains(fields))
                #expect(try await stage.ask("DELETE", "/v1/sessions/current", as: nil, fields: fields).status == 204)
                old.append(fields)
            }
            _ = try await signIn(stage, as: "person3")
            for fields in old { #expect(try await stage.ask("GET", "/v1/me", as: nil, fields: fields).status == 401) }
            await stage.backend.stop()
        }
    }

    @Test func `a world that replaces one with the same name and seed has different secrets`() async throws {
        let stage = try Stage()
        var old: [String: String]?
        for handle in ["ana", "person2", "person3"] {
            let world = try stage.backend.makeWorld(id: "blue", seed: 3)
            let fields = try bearer(try await signIn(stage, as: handle, in: "/w/blue"))
            if let old { #expect(try await stage.ask("GET", "/w/blue/v1/me", as: nil, fields: old).status == 401) }
            old = fields
            try world.destroy()
        }
    }

    @Test func `a fork and a reset world do not repeat earlier secrets`() async throws {
        let stage = try Stage()
        let fork = try stage.world.fork(id: "fork", seed: 7)
        let here = try bearer(try await signIn(stage, as: "ana"))
        let there = try bearer(try await signIn(stage, as: "person2", in: "/w/fork"))
        #expect(here != there)
        #expect(try await stage.ask("GET", "/w/fork/v1/me", as: nil, fields: here).status == 401)
        try fork.reset()
        let again = try bearer(try await signIn(stage, as: "person3", in: "/w/fork"))
        #expect(again != there && again != here)
    }

    @Test func `a second recording of a world does not repeat the secrets of the first`() async throws {
        let stage = try Stage()
        var seen: Set<String> = []
        for _ in 0..<3 {
            #expect(try await stage.ask("POST", "/_larder/recording", #"{"record":true}"#, as: nil).status == 201)
            let session = try await signIn(stage, as: "ana")
            #expect(session.status == 201, "\(session.text)")
            #expect(seen.insert(try bearer(session)["Authorization"] ?? "").inserted)
            #expect(try await stage.ask("DELETE", "/_larder/recording", as: nil).status == 204)
        }
    }

    @Test func `a database problem reveals no statement and no column`() throws {
        let problem = World.problem(
            SQLiteError(
                code: .constraint,
                extendedCode: 2_067,
                message: "UNIQUE constraint failed: sessions.access",
                sql: "INSERT INTO sessions (access) VALUES (?)"
            )
        )
        #expect(problem.status.code == 503)
        let detail = try #require(problem.detail)
        #expect(!detail.contains("INSERT") && !detail.contains("sessions") && detail.contains("2067"), "\(detail)")
    }

    @Test func `the usual names of other servers' secrets are masked`() {
        #expect(Secrets.masked(field: "X-Api-Key", "sk_live") == "••••")
        #expect(Secrets.masked(query: "api_key=a&q=b&client-secret=c") == "api_key=••••&q=b&client-secret=••••")
        #expect(
            Secrets.masked(text: Array(#"{"refresh_token":"a","kind":"b"}"#.utf8))
                == #"{"refresh_token":"••••","kind":"b"}"#
        )
        #expect(
            Secrets.masked(text: Array("grant_type=password&password=a".utf8)) == "grant_type=password&password=••••"
        )
    }
}
