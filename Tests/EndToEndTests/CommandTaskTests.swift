import LarderCoding
import LarderServer
import TestSupport
import Testing

/// The built command against a server in this process. Serialized, because each test runs several processes.
@Suite("larder tasks, end to end", .oneMinute, .serialized)
struct CommandTaskTests {
    private let scene = CommandScene()

    private func ids(_ status: String, _ options: String..., on url: String) async throws -> [String] {
        let run = try await scene.run(["tasks", "--status", status, "--json"] + options, on: url)
        #expect(run.code == 0, "\(run)")
        return try (run.json["items"]?.array ?? []).compactMap { $0["id"]?.string }
    }

    @Test func `a task moves from open to done, online and offline`() async throws {
        let backend = try MockBackend.startSmall()
        let open = try await ids("open", on: backend.url)
        let done = try await ids("done", on: backend.url)
        #expect(open.count > 2 && !done.isEmpty)
        let online = try await scene.run("tasks", "done", open[0], on: backend.url)
        #expect(online.code == 0 && online.output.contains("status done: sent"), "\(online)")
        #expect(try await ids("open", "--offline", on: backend.url) == Array(open.dropFirst()))
        #expect(try await ids("done", "--offline", on: backend.url).contains(open[0]))
        let offline = try await scene.run("tasks", "done", open[1], "--offline", on: backend.url)
        #expect(offline.code == 0 && offline.output.contains("queued (--offline)"), "\(offline)")
        #expect(try await ids("open", "--offline", on: backend.url) == Array(open.dropFirst(2)))
        #expect(try await ids("done", "--offline", on: backend.url).contains(open[1]))
        let sync = try await scene.run("sync", on: backend.url)
        #expect(sync.code == 0 && sync.errors.contains("sent queued operation: PATCH /v1/tasks/\(open[1])"), "\(sync)")
        let reply = backend.main.perform(ScriptedAction("GET", "/v1/tasks/\(open[1])", as: "ana"))
        #expect(try JSONParser.parse(reply.body)["status"] == .string("done"))
        #expect(try await ids("open", "--refresh", on: backend.url) == Array(open.dropFirst(2)))
        #expect(await backend.activity() == [])
        await backend.stop()
    }

    @Test func `a limit above what one page has is noted`() async throws {
        var size = WorldSize()
        size.tasks = 300
        let backend = try MockBackend.start(.generated(size, picturesFrom: nil))
        let all = try await scene.run("tasks", "--limit", "120", on: backend.url)
        #expect(all.code == 0 && all.errors.contains("the first 100 tasks are shown; the server has more"), "\(all)")
        let some = try await scene.run("tasks", "--limit", "100", on: backend.url)
        #expect(some.code == 0 && !some.errors.contains("the server has more"), "\(some)")
        await backend.stop()
    }

    @Test func `tasks are added, assigned and deleted`() async throws {
        let backend = try MockBackend.startSmall()
        _ = try await ids("open", on: backend.url)
        let added = try await scene.run(
            "tasks",
            "add",
            "Fix the gate",
            "--due",
            "2020-01-01",
            "--assignee",
            "person2",
            "--offline",
            on: backend.url
        )
        #expect(added.code == 1 && added.errors.contains("person2"), "\(added)")
        let local = try await scene.run(
            "tasks",
            "add",
            "Fix the gate",
            "--due",
            "2020-01-01",
            "--offline",
            on: backend.url
        )
        #expect(local.code == 0, "\(local)")
        let list = try await scene.run("tasks", "--status", "open", "--offline", on: backend.url)
        #expect(list.lines.first?.contains("Fix the gate") == true && list.output.contains("not sent yet"), "\(list)")
        #expect(try await scene.run("sync", on: backend.url).code == 0)
        let id = try #require(try await ids("open", on: backend.url).first)
        #expect(id.hasPrefix("task_"))
        #expect(try await scene.run("tasks", "assign", id, "person2", on: backend.url).code == 0)
        #expect(try await ids("open", "--assignee", "person2", on: backend.url).contains(id))
        #expect(try await scene.run("tasks", "delete", id, on: backend.url).code == 0)
        #expect(try await !ids("open", on: backend.url).contains(id))
        let gone = try await scene.run("tasks", "done", id, on: backend.url)
        #expect(gone.code == 1 && gone.errors.contains("is not stored"), "\(gone)")
        let invalid = try await scene.run("tasks", "done", "x7", on: backend.url)
        #expect(invalid.code == 2 && invalid.errors.contains("is not a task ID"), "\(invalid)")
        #expect(await backend.activity() == [])
        await backend.stop()
    }
}
