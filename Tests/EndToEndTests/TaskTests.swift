import Foundation
import LarderDemo
import LarderModels
import LarderResources
import LarderServer
import LarderTesting
import LarderTime
import Synchronization
import TestSupport
import Testing

@testable import Larder

@Suite("Tasks, end to end", .oneMinute)
struct TaskTests {
    private let scene: ClientScene
    private let network = Switch()
    private let open = TaskFilter(statuses: [.open])
    private let done = TaskFilter(statuses: [.done])

    init() throws { scene = try ClientScene() }

    private func client(_ handle: String = "ana", device: String = "phone", live: [LiveSync.Kind] = []) async throws
        -> LarderClient
    {
        let network = network
        return try await scene.client(handle, device: device, live: live, isOnline: { network.isOn })
    }

    private func ids(_ client: LarderClient, _ filter: TaskFilter) -> [String] {
        client.cache.stored(client.tasks.list(filter))?.value?.items.map(\.id) ?? []
    }

    /// The tasks as the server lists them.
    private func served(_ query: String) throws -> [WorkItem] {
        let reply = scene.world.perform(ScriptedAction("GET", "/v1/tasks?limit=100&\(query)", as: "person2"))
        return try JSONDecoder().decode(Page<WorkItem>.self, from: Data(reply.body)).items
    }

    private func filled(_ client: LarderClient) async throws {
        // Begins to follow the change feed.
        try await client.sync.catchUp()
        for filter in [open, done] { _ = try await client.cache.value(client.tasks.list(filter)) }
    }

    @Test func `a task that is done offline moves at once, survives a restart, and is sent once`() async throws {
        var client = try await client()
        try await filled(client)
        let task = try #require(client.cache.stored(client.tasks.list(open))?.value?.items.first)
        network.set(false)
        try client.tasks.edit(task.id) { $0.status = .done }
        #expect(!ids(client, open).contains(task.id) && ids(client, done).contains(task.id))
        client.close()
        client = try await self.client()
        #expect(!ids(client, open).contains(task.id) && ids(client, done).contains(task.id))
        var once = Fault.Occurrence()
        once.count = 1
        try scene.world.set(Fault(.loseReply(.reset), when: FaultMatch("PATCH", "/v1/tasks/*"), occurrence: once))
        network.set(true)
        client.cache.networkReturned()
        try await client.cache.outbox.drained()
        let now = try #require(try served("status=done").first { $0.id == task.id })
        #expect(now.version == task.version + 1 && now.due == task.due && now.assigneeID == task.assigneeID)
        #expect(try ids(client, done) == served("status=done").map(\.id))
        #expect(try ids(client, open) == served("status=open").map(\.id))
        await scene.expectGoodConduct()
        client.close()
    }

    @Test func `a task that is created and edited offline exists once, with the edits`() async throws {
        var client = try await client()
        try await filled(client)
        network.set(false)
        let added = try client.tasks.add("Fix the gate", due: "2020-01-01").task
        #expect(ids(client, open).first == added.id)
        try client.tasks.edit(added.id) { ($0.title, $0.due) = ("Fix the back gate", "2020-01-02") }
        client.close()
        client = try await self.client()
        let shown = client.cache.stored(client.tasks.list(open))?.value?.items.first
        #expect(shown?.title == "Fix the back gate" && shown?.isPending == true)
        network.set(true)
        client.cache.networkReturned()
        try await client.cache.outbox.drained()
        let there = try served("status=open").filter { $0.title == "Fix the back gate" }
        #expect(there.count == 1 && there.first?.due == "2020-01-02")
        #expect(try ids(client, open) == served("status=open").map(\.id))
        await scene.expectGoodConduct()
        client.close()
    }

    @Test func `an edit behind a creation that is on its way reaches the task under its server ID`() async throws {
        let client = try await client()
        try await filled(client)
        try scene.world.set(Gate(id: "creation", when: FaultMatch("POST", "/v1/tasks"), count: 1))
        let added = try client.tasks.add("Fix the gate", due: "2020-01-01").task
        #expect(await scene.world.wait(for: .held(1), limit: .seconds(3_600)))
        try client.tasks.edit(added.id) { $0.status = .done }
        #expect(ids(client, done).first == added.id)
        // The server has the task, but the reply is held; the change feed delivers it first.
        #expect(try await client.sync.catchUp() > 0)
        let names = [open, done].flatMap { client.cache.stored(client.tasks.list($0))?.value?.items ?? [] }.map(\.title)
        #expect(names.filter { $0 == "Fix the gate" }.count == 1)
        #expect(scene.world.releaseAll(of: "creation") == 1)
        try await client.cache.outbox.drained()
        #expect(try served("status=done").filter { $0.title == "Fix the gate" }.count == 1)
        #expect(try ids(client, done) == served("status=done").map(\.id))
        await scene.expectGoodConduct()
        client.close()
    }

    @Test func `an edit of a deleted task is rejected and rolled back`() async throws {
        let client = try await client()
        try await filled(client)
        let task = try #require(client.cache.stored(client.tasks.list(open))?.value?.items.first)
        network.set(false)
        try client.tasks.edit(task.id) { $0.status = .done }
        scene.world.perform(ScriptedAction("DELETE", "/v1/tasks/\(task.id)", as: "person2"))
        network.set(true)
        client.cache.networkReturned()
        let statuses = SequenceRecorder(client.cache.outbox.statuses)
        await statuses.wait { _ in client.cache.outbox.entries.contains { $0.state == .rejected } }
        #expect(!ids(client, done).contains(task.id))
        try await client.sync.catchUp()
        #expect(!ids(client, open).contains(task.id) && !ids(client, done).contains(task.id))
        client.close()
    }

    @Test(arguments: [LiveSync.Kind.webSocket, .eventStream])
    func `a task that somebody else changes moves without a read`(_ kind: LiveSync.Kind) async throws {
        let client = try await client(live: [kind])
        let states = SequenceRecorder(client.live.states)
        await states.wait { $0.last == .live(kind) }
        let (opens, dones) = (
            SequenceRecorder(client.cache.snapshots(client.tasks.list(open))),
            SequenceRecorder(client.cache.snapshots(client.tasks.list(done)))
        )
        await opens.wait { $0.last?.freshness == .fresh }
        await dones.wait { $0.last?.freshness == .fresh }
        let task = try #require(opens.elements.last?.value?.items.first)
        var act = ScriptedAction("PATCH", "/v1/tasks/\(task.id)", as: "person2", body: #"{"status":"done"}"#)
        act.headers = ["If-Match": "*", "Content-Type": "application/merge-patch+json"]
        #expect(scene.world.perform(act).status == 200)
        await opens.wait { $0.last?.value?.items.contains { $0.id == task.id } == false }
        await dones.wait { $0.last?.value?.items.contains { $0.id == task.id } == true }
        #expect(await scene.count("GET", "/v1/tasks") == 2)
        await scene.expectGoodConduct()
        client.close()
    }

    @Test func `the cache converges with the server`() async throws {
        let client = try await client()
        try await filled(client)
        for (index, task) in try served("sort=created").enumerated() where index % 3 == 0 {
            _ = try await client.cache.value(client.tasks.task(task.id))
            try client.tasks.edit(task.id) { ($0.status, $0.assigneeID, $0.due) = (.done, "user_1", nil) }
        }
        if let last = ids(client, done).last { try client.tasks.delete(last) }
        client.cache.networkReturned()
        try await client.cache.outbox.drained()
        try await client.sync.catchUp()
        #expect(try ids(client, done) == served("status=done").map(\.id))
        #expect(try ids(client, open) == served("status=open").map(\.id))
        client.close()
    }
}

/// A switch that closures share.
private final class Switch: Sendable {
    private let state = Mutex(true)

    var isOn: Bool { state.withLock { $0 } }

    func set(_ isOn: Bool) { state.withLock { $0 = isOn } }
}
