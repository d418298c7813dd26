import LarderCoding
import LarderServer
import TestSupport
import Testing

@Suite("Secrets stay where they are", .oneMinute)
struct SecretsTests {
    @Test(arguments: ["access_token", "access%5Ftoken", "%61ccess_token"])
    func `a token in a query is shown nowhere, however its name is spelled`(name: String) async throws {
        let stage = try Stage()
        try stage.world.set(Gate(id: "g", when: FaultMatch("GET", "/v1/feed")))
        let client = try stage.send("GET", "/v1/feed?\(name)=dev-ana&limit=1", as: nil)
        while stage.world.held.isEmpty, !Task.isCancelled { await Task.yield() }
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
        await stage.backend.stop()
    }

    @Test func `a password in a body is shown nowhere, also where the body breaks off`() async throws {
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
        await stage.backend.stop()
    }
}
