import LarderCoding
import LarderSQLite
import LarderTime
import TestSupport
import Testing

@testable import LarderBackend
@testable import LarderServer

@Suite("Tasks", .oneMinute)
struct TaskTests {
    private func items(_ reply: RawReply) throws -> [JSONValue] { try reply.json["items"]?.array ?? [] }

    private func ids(_ reply: RawReply) throws -> [String] { try items(reply).compactMap { $0["id"]?.string } }

    private func add(_ scene: Scene, _ body: String) async throws -> String {
        let reply = try await scene.ask("POST", "/v1/tasks", body)
        #expect(reply.status == 201)
        return try #require(try reply.json["id"]?.string)
    }

    @Test func `the list is filtered by status, assignee and due date`() async throws {
        let scene = try Scene()
        let all = try items(try await scene.ask("GET", "/v1/tasks?limit=100"))
        #expect(all.count == 30)
        func filtered(_ query: String) async throws -> [JSONValue] {
            try items(try await scene.ask("GET", "/v1/tasks?limit=100&" + query))
        }
        for status in ["open", "started", "done"] {
            let expected = all.filter { $0["status"] == .string(status) }
            #expect(try await filtered("status=\(status)") == expected && !expected.isEmpty)
        }
        #expect(
            try await filtered("status=open,done") == all.filter { $0["status"] != .string("started") }
        )
        #expect(try await filtered("assignee=none") == all.filter { $0["assigneeId"] == .null })
        let mine = all.filter { $0["assigneeId"] == .string("user_1") }
        #expect(try await filtered("assignee=user_1") == mine)
        #expect(try await filtered("assignee=me") == mine)
        #expect(try await filtered("due=none") == all.filter { $0["due"] == .null })
        let dates = all.compactMap { $0["due"]?.string }
        let middle = try #require(dates.sorted().dropFirst(dates.count / 2).first)
        #expect(try await filtered("due=\(middle)") == all.filter { $0["due"]?.string == middle })
        #expect(try await filtered("due=..\(middle)") == all.filter { ($0["due"]?.string ?? "~") <= middle })
        #expect(try await filtered("due=\(middle)..") == all.filter { ($0["due"]?.string ?? "") >= middle })
        #expect(
            try await filtered("due=\(middle)..\(middle)&status=open")
                == all.filter { $0["due"]?.string == middle && $0["status"] == .string("open") }
        )
    }

    @Test(arguments: ["due", "-due", "created", "-created"], ["after", "before"])
    func `cursors of both ends can be used in either direction, again and again`(
        sort: String,
        direction: String
    ) async throws {
        let scene = try Scene()
        let walk = direction == "after" ? "nextCursor" : "previousCursor"
        let last = try items(try await scene.ask("GET", "/v1/tasks?limit=100&sort=\(sort)")).count - 1
        // A page of one task at the end of the list.
        var reply = try await scene.ask("GET", "/v1/tasks?limit=1&sort=\(sort)")
        for _ in 0..<last {
            let next = try #require(try reply.json["nextCursor"]?.string)
            reply = try await scene.ask("GET", "/v1/tasks?limit=1&sort=\(sort)&after=\(next)")
        }
        let other = walk == "nextCursor" ? "previousCursor" : "nextCursor"
        for _ in 0..<4 {
            guard let cursor = try (reply.json[other] ?? reply.json[walk])?.string else { break }
            reply = try await scene.ask("GET", "/v1/tasks?limit=1&sort=\(sort)&\(direction)=\(cursor)")
            #expect(reply.status == 200)
        }
    }

    @Test(arguments: ["due", "-due", "created", "-created"])
    func `pages in both directions give every task once, in the order`(sort: String) async throws {
        let scene = try Scene()
        let all = try items(try await scene.ask("GET", "/v1/tasks?limit=100&sort=\(sort)"))
        func key(_ task: JSONValue) -> (String, Int) {
            (sort.hasSuffix("due") ? task["due"]?.string ?? "~" : "", Int(task["id"]?.string?.dropFirst(5) ?? "") ?? 0)
        }
        let sorted = all.sorted { sort.hasPrefix("-") ? key($0) > key($1) : key($0) < key($1) }
        #expect(all == sorted && all.count == 30)
        var seen: [JSONValue] = []
        var cursor: String?
        var last: String?
        repeat {
            let target = "/v1/tasks?limit=7&sort=\(sort)" + (cursor.map { "&after=\($0)" } ?? "")
            let page = try await scene.ask("GET", target)
            seen += try items(page)
            #expect(try (page.json["previousCursor"] == .null) == (cursor == nil))
            last = try page.json["previousCursor"]?.string
            cursor = try page.json["nextCursor"]?.string
        } while cursor != nil
        #expect(seen == all)
        var reversed: [JSONValue] = []
        while let before = last {
            let page = try await scene.ask("GET", "/v1/tasks?limit=7&sort=\(sort)&before=\(before)")
            reversed = try items(page) + reversed
            #expect(try page.json["nextCursor"] != .null)
            last = try page.json["previousCursor"]?.string
        }
        #expect(reversed == Array(all.prefix(28)))
    }

    @Test func `the cursor of one filter or order is invalid in another`() async throws {
        let scene = try Scene()
        let cursor = try #require(try await scene.ask("GET", "/v1/tasks?limit=3").json["nextCursor"]?.string)
        #expect(try await scene.ask("GET", "/v1/tasks?limit=5&after=\(cursor)").status == 200)
        for query in ["status=open&", "assignee=me&", "due=none&", "sort=-due&"] {
            #expect(try await scene.ask("GET", "/v1/tasks?\(query)after=\(cursor)").problem == "invalid-cursor")
        }
        #expect(try await scene.ask("GET", "/v1/feed?after=\(cursor)").problem == "invalid-cursor")
    }

    @Test func `a page behind the end leads back`() async throws {
        let scene = try Scene()
        let page = try await scene.ask("GET", "/v1/tasks?limit=29")
        let cursor = try #require(try page.json["nextCursor"]?.string)
        let last = try await scene.ask("GET", "/v1/tasks?limit=29&after=\(cursor)")
        #expect(try await scene.ask("DELETE", "/v1/tasks/\(try #require(try ids(last).first))").status == 204)
        let empty = try await scene.ask("GET", "/v1/tasks?limit=29&after=\(cursor)")
        #expect(try ids(empty) == [] && empty.json["nextCursor"] == .null)
        let back = try #require(try empty.json["previousCursor"]?.string)
        #expect(try ids(try await scene.ask("GET", "/v1/tasks?limit=29&before=\(back)")) == ids(page))
    }

    @Test(
        arguments: [
            ("status=opened", "status"), ("status=", "status"), ("assignee=ana", "assignee"),
            ("due=tomorrow", "due"), ("due=2026-13-01", "due"), ("due=..", "due"),
            ("due=2026-07-02..2026-07-01", "due"), ("sort=title", "sort"), ("limit=0", "limit"),
        ]
    )
    func `an invalid parameter is named`(query: String, name: String) async throws {
        let scene = try Scene()
        let reply = try await scene.ask("GET", "/v1/tasks?\(query)")
        #expect(reply.status == 400 && reply.problem == "invalid-parameter")
        #expect(try reply.json["errors"]?[0]?["pointer"]?.string == name)
    }

    @Test func `an edited task moves between the lists`() async throws {
        let scene = try Scene()
        let id = try await add(scene, #"{"title":"Fix the door","due":"2020-01-01","assigneeId":"user_2"}"#)
        #expect(try ids(try await scene.ask("GET", "/v1/tasks?status=open&limit=1")) == [id])
        let tag = try #require(try await scene.ask("GET", "/v1/tasks/\(id)").field("ETag"))
        let done = try await scene.ask("PATCH", "/v1/tasks/\(id)", #"{"status":"done"}"#, ["If-Match": tag])
        #expect(done.status == 200)
        #expect(try done.json["assigneeId"] == .string("user_2") && done.json["due"] == .string("2020-01-01"))
        #expect(try done.json["version"] == .integer(2))
        #expect(try await !ids(scene.ask("GET", "/v1/tasks?status=open&limit=100")).contains(id))
        #expect(try ids(try await scene.ask("GET", "/v1/tasks?status=done&limit=1")) == [id])
        // Null removes a member, and an absent member stays (RFC 7396).
        let cleared = try await scene.ask(
            "PATCH",
            "/v1/tasks/\(id)",
            #"{"assigneeId":null,"due":null}"#,
            ["If-Match": "*"]
        )
        #expect(try cleared.json["due"] == .null && cleared.json["assigneeId"] == .null)
        #expect(try cleared.json["status"] == .string("done") && cleared.json["title"] == .string("Fix the door"))
    }

    @Test func `an edit requires its base version, and names the invalid members`() async throws {
        let scene = try Scene()
        let id = try await add(scene, #"{"title":"x"}"#)
        let path = "/v1/tasks/\(id)"
        let tag = try #require(try await scene.ask("GET", path).field("ETag"))
        #expect(try await scene.ask("PATCH", path, #"{"status":"done"}"#).problem == "precondition-required")
        #expect(
            try await scene.ask("PATCH", path, as: "person2", #"{"status":"done"}"#, ["If-Match": tag]).status == 200
        )
        let lost = try await scene.ask("PATCH", path, #"{"status":"started"}"#, ["If-Match": tag])
        #expect(try lost.status == 412 && lost.json["currentVersion"] == .integer(2))
        let invalid = try await scene.ask(
            "PATCH",
            path,
            #"{"status":"finished","assigneeId":"ana","due":"2026-02-30","title":"","colour":1}"#,
            ["If-Match": "*"]
        )
        #expect(invalid.problem == "validation-failed")
        let pointers = try (invalid.json["errors"]?.array ?? []).compactMap { $0["pointer"]?.string }
        #expect(Set(pointers) == ["/status", "/assigneeId", "/due", "/title", "/colour"])
        let nobody = try await scene.ask("PATCH", path, #"{"assigneeId":"user_99"}"#, ["If-Match": "*"])
        #expect(try nobody.json["errors"]?[0]?["pointer"]?.string == "/assigneeId")
        #expect(try await scene.ask("GET", path).json["version"] == .integer(2))
    }

    @Test func `a repeated creation finds the task of the first one`() async throws {
        let scene = try Scene()
        let body = #"{"title":"x","clientId":"c-1"}"#
        let first = try await scene.ask("POST", "/v1/tasks", body)
        let second = try await scene.ask("POST", "/v1/tasks", body)
        #expect(first.status == 201 && second.status == 200 && first.body == second.body)
        #expect(try await scene.ask("POST", "/v1/tasks", as: "person2", body).status == 201)
        let key = ["Idempotency-Key": "k-1"]
        let keyed = try await scene.ask("POST", "/v1/tasks", #"{"title":"y"}"#, key)
        let replay = try await scene.ask("POST", "/v1/tasks", #"{"title":"y"}"#, key)
        #expect(replay.status == 201 && replay.body == keyed.body && replay.field("Idempotent-Replayed") == "true")
        #expect(try ids(try await scene.ask("GET", "/v1/tasks?limit=100")).count == 33)
        // A repeated edit does not undo a later one.
        let path = try #require(keyed.field("Location"))
        let edit = ["Idempotency-Key": "k-2", "If-Match": "*"]
        #expect(try await scene.ask("PATCH", path, #"{"status":"done"}"#, edit).status == 200)
        let other = try await scene.ask("PATCH", path, as: "person2", #"{"status":"open"}"#, ["If-Match": "*"])
        #expect(try other.json["version"] == .integer(3))
        let again = try await scene.ask("PATCH", path, #"{"status":"done"}"#, edit)
        #expect(try again.status == 200 && again.json["version"] == .integer(2))
        #expect(try await scene.ask("GET", path).json["status"] == .string("open"))
    }

    @Test func `a read is a 304 until a task changes`() async throws {
        let scene = try Scene()
        let tag = try #require(try await scene.ask("GET", "/v1/tasks?status=open").field("ETag"))
        _ = try await scene.ask("POST", "/v1/posts", #"{"text":"hi"}"#)
        #expect(try await scene.ask("GET", "/v1/tasks?status=open", ["If-None-Match": tag]).status == 304)
        _ = try await add(scene, #"{"title":"x","due":"2020-01-01"}"#)
        #expect(try await scene.ask("GET", "/v1/tasks?status=open", ["If-None-Match": tag]).status == 200)
    }

    @Test func `the change feed has tasks for those who are signed in, with tombstones and a type filter`() async throws
    {
        let scene = try Scene()
        func changes(_ query: String, as person: String?) async throws -> [JSONValue] {
            try items(try await scene.ask("GET", "/v1/changes?limit=500&" + query, as: person))
        }
        #expect(try await changes("types=task", as: "person3").count == 30)
        #expect(try await changes("types=task", as: nil).isEmpty)
        let token = try #require(
            try await scene.ask("GET", "/v1/changes?types=task&since=now").json["nextToken"]?.string
        )
        let id = try await add(scene, #"{"title":"x"}"#)
        let kept = try await add(scene, #"{"title":"y"}"#)
        #expect(try await scene.ask("DELETE", "/v1/tasks/\(id)").status == 204)
        #expect(try await scene.ask("GET", "/v1/tasks/\(id)").status == 404)
        let seen = try await changes("since=\(token)", as: "ana")
        #expect(seen.map { $0["id"]?.string } == [kept, id] && seen.map { $0["op"]?.string } == ["upsert", "delete"])
        #expect(seen[0]["entity"]?["title"] == .string("y") && seen[1]["version"] == .integer(2))
    }

    @Test func `only those who are signed in may see tasks`() async throws {
        let scene = try Scene()
        #expect(try await scene.ask("GET", "/v1/tasks", as: nil).status == 401)
        #expect(try await scene.ask("GET", "/v1/tasks/task_1", as: nil).status == 401)
        #expect(try await scene.ask("GET", "/v1/tasks/task_0").status == 404)
    }

    @Test(arguments: ["status=open,done", "status=started", "assignee=user_1&status=open,started", "assignee=none"])
    func `pages of a filtered list have each task once, in both orders`(filter: String) async throws {
        let scene = try Scene()
        for order in ["due", "-due", "created"] {
            let all = try ids(try await scene.ask("GET", "/v1/tasks?limit=100&sort=\(order)&\(filter)"))
            var (seen, cursor): ([String], String?) = ([], nil)
            repeat {
                let after = cursor.map { "&after=\($0)" } ?? ""
                let page = try await scene.ask("GET", "/v1/tasks?limit=3&sort=\(order)&\(filter)\(after)")
                seen += try ids(page)
                cursor = try page.json["nextCursor"]?.string
            } while cursor != nil && seen.count <= all.count
            #expect(seen == all && !all.isEmpty, "\(order)")
        }
    }
}
