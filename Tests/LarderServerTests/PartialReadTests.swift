import LarderCoding
import TestSupport
import Testing

@testable import LarderBackend
@testable import LarderServer

@Suite("Indexes and batch reads", .oneMinute)
struct PartialReadTests {
    @Test(arguments: ["/v1/feed", "/v1/posts", "/v1/tasks"])
    func `an index has the items, versions and cursors of the page, and a validator of its own`(path: String)
        async throws
    {
        let scene = try Scene()
        var query = "?limit=7"
        for _ in 0..<2 {
            let whole = try await scene.ask("GET", path + query)
            let index = try await scene.ask("GET", path + query + "&fields=id,version")
            let expected = try whole.json["items"]?.array?.map { [$0["id"], $0["version"]] }
            #expect(try index.json["items"]?.array?.map { [$0["id"], $0["version"]] } == expected)
            #expect(expected?.count == 7)
            #expect(try index.json["nextCursor"] == whole.json["nextCursor"])
            #expect(try index.json["previousCursor"] == whole.json["previousCursor"])
            #expect(index.body.count * 2 < whole.body.count)
            let tag = try #require(index.field("ETag"))
            #expect(tag != whole.field("ETag"))
            let again = try await scene.ask(
                "GET",
                path + query + "&fields=id%2Cversion",
                as: "ana",
                nil,
                ["If-None-Match": tag]
            )
            #expect(again.status == 304)
            query = "?limit=7&after=\(try whole.json["nextCursor"]?.string ?? "")"
        }
        for bad in ["fields=id", "fields=version,id", "fields="] {
            #expect(try await scene.ask("GET", "\(path)?\(bad)").status == 400)
        }
    }

    @Test(arguments: [("/v1/posts", "post_"), ("/v1/tasks", "task_")])
    func `a batch has the requested items in order, names the missing ones, and is validated`(
        path: String,
        prefix: String
    ) async throws {
        let scene = try Scene()
        let ids = [900, 3, 901, 5, 3].map { "\(prefix)\($0)" }
        let batch = try await scene.ask("GET", "\(path)?ids=\(ids.joined(separator: ","))")
        let items = try batch.json["items"]?.array ?? []
        #expect(
            items == [
                try await scene.ask("GET", "\(path)/\(prefix)3").json,
                try await scene.ask("GET", "\(path)/\(prefix)5").json,
            ]
        )
        #expect(try batch.json["missingIds"] == .array([.string("\(prefix)900"), .string("\(prefix)901")]))
        let tag = try #require(batch.field("ETag"))
        let target = "\(path)?ids=\(ids.joined(separator: "%2C"))"
        #expect(try await scene.ask("GET", target, as: "ana", nil, ["If-None-Match": tag]).status == 304)
        let delete = try await scene.ask("DELETE", "\(path)/\(prefix)3", as: try await author(items[0], scene))
        #expect(delete.status == 204)
        let changed = try await scene.ask("GET", target, as: "ana", nil, ["If-None-Match": tag])
        #expect(changed.status == 200)
        #expect(try changed.json["missingIds"]?.array?.count == 3)
        #expect(try await scene.ask("GET", "\(path)?ids=\(prefix)900").json["items"] == .array([]))
        let many = (1...101).map { "\(prefix)\($0)" }.joined(separator: ",")
        for bad in ["ids=", "ids=user_1", "ids=\(prefix)1,", "ids=\(many)", "ids=\(prefix)1&limit=5"] {
            let reply = try await scene.ask("GET", "\(path)?\(bad)")
            #expect(reply.status == 400, "\(bad)")
        }
    }

    private func author(_ item: JSONValue, _ scene: Scene) async throws -> String {
        let id = item["authorId"]?.string ?? item["creatorId"]?.string ?? ""
        return try await scene.ask("GET", "/v1/profiles/\(id)").json["handle"]?.string ?? ""
    }
}
