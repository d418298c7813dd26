import LarderCoding
import TestSupport
import Testing

@testable import LarderBackend
@testable import LarderServer

@Suite("Pages of messages", .oneMinute)
struct MessagePageTests {
    /// A conversation of ana with its messages, newest first.
    private func messages(_ scene: Scene) async throws -> (path: String, ids: [String]) {
        let list = try await scene.ask("GET", "/v1/conversations", as: "ana").json
        let id = try #require(list["items"]?[0]?["id"]?.string)
        let path = "/v1/conversations/\(id)/messages"
        for number in 0..<20 {
            let body = "{\"text\":\"\(number)\",\"clientId\":\"c\(number)\"}"
            #expect(try await scene.ask("POST", path, as: "ana", body).status == 201)
        }
        return (path, try ids(try await scene.ask("GET", path + "?limit=100", as: "ana").json))
    }

    private func ids(_ page: JSONValue) throws -> [String] {
        try #require(page["items"]?.array).compactMap { $0["id"]?.string }
    }

    @Test func `a page around a message has it in the middle, and cursors in both directions`() async throws {
        let scene = try Scene()
        let (path, all) = try await messages(scene)
        for index in all.indices {
            for limit in [1, 2, 5, 50] {
                let target = "\(path)?limit=\(limit)&around=\(all[index])"
                let page = try await scene.ask("GET", target, as: "ana").json
                let shown = try ids(page)
                let newer = min(index, (limit + 1) / 2 - 1)
                #expect(shown == Array(all[(index - newer)...].prefix(limit)), "\(target)")
                // The pages next to it continue it.
                if let cursor = page["previousCursor"]?.string {
                    let before = try await scene.ask("GET", "\(path)?limit=3&before=\(cursor)", as: "ana").json
                    #expect(try ids(before).last == all[index - newer - 1], "\(target)")
                } else {
                    #expect(shown.first == all.first, "\(target)")
                }
                if let cursor = page["nextCursor"]?.string {
                    let after = try await scene.ask("GET", "\(path)?limit=3&after=\(cursor)", as: "ana").json
                    #expect(try ids(after).first == all[index - newer + shown.count], "\(target)")
                } else {
                    #expect(shown.last == all.last, "\(target)")
                }
            }
        }
    }

    @Test func `a page around something else is rejected with the name of the parameter`() async throws {
        let scene = try Scene()
        let (path, all) = try await messages(scene)
        for (query, status) in [
            ("around=post_1", 400), ("around=", 400), ("around=\(all[3])&after=x", 400), ("around=msg_999999", 404),
        ] {
            let reply = try await scene.ask("GET", "\(path)?\(query)", as: "ana")
            #expect(reply.status == status, "\(query): \(reply.status)")
            #expect(reply.field("Content-Type") == "application/problem+json")
        }
        let cursor = try await scene.ask("GET", "\(path)?limit=2", as: "ana").json["nextCursor"]?.string ?? ""
        let both = try await scene.ask("GET", "\(path)?around=\(all[3])&after=\(cursor)", as: "ana")
        #expect(both.status == 400 && both.text.contains("around"))
        // A deleted message is none.
        #expect(try await scene.ask("DELETE", "/v1/messages/\(all[3])", as: "ana").status == 204)
        #expect(try await scene.ask("GET", "\(path)?around=\(all[3])", as: "ana").status == 404)
    }
}
