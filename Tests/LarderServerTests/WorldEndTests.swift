import FileFaults
import Foundation
import LarderCoding
import LarderEngine
import LarderHTTP
import LarderSQLite
import LarderTime
import TestSupport
import Testing

@testable import LarderBackend
@testable import LarderServer

@Suite("Lifetime of worlds", .oneMinute)
struct WorldEndTests {
    @Test func `a destroyed world is released although actions and scripts were pending`() async throws {
        let stage = try Stage()
        weak var gone: World?
        do {
            let world = try stage.backend.makeWorld(id: "brief")
            gone = world.world
            world.clock.freeze()
            let act = #"{"atSeconds":3600,"act":{"method":"GET","path":"/v1/feed"}}"#
            _ = try world.run(FaultScript(json: Array(#"{"steps":[{"atSeconds":60,"journey":"3g"},\#(act)]}"#.utf8)))
            try world.destroy()
        }
        #expect(gone == nil)
    }

    @Test func `a world is released although a slow channel was cut in it`() async throws {
        let stage = try Stage()
        weak var gone: World?
        do {
            let world = try stage.backend.makeWorld(id: "brief")
            gone = world.world
            world.clock.freeze()
            let events = FaultMatch("GET", "/v1/live/events")
            try world.set(Fault(.drip(bytes: 10, every: .seconds(1)), when: events))
            let stream = try stage.send("GET", "/w/brief/v1/live/events")
            _ = try await stream.read(until: "a\r\n")
            try world.destroy()
            _ = await stream.readToEnd()
        }
        await reached { gone == nil }
    }

    @Test(arguments: ExchangeWait.allCases)
    func `a destroyed world takes its exchanges along`(wait: ExchangeWait) async throws {
        let stage = try Stage()
        let world = try stage.backend.makeWorld(id: "blue")
        world.clock.freeze()
        let client = try await wait.begin(stage, world)
        #expect(try await stage.ask("DELETE", "/_larder/worlds/blue", as: nil).status == 204)
        switch wait {
        case .silence: #expect(await client.readToEnd().bytes.isEmpty)
        case .condition, .conditionByWorldClock:
            let reply = try await client.reply()
            #expect(reply.status == 404 && reply.problem == "unknown-world")
        default: #expect(try await client.reply().status == 200)
        }
    }

    @Test func `a live channel that waited while its world was destroyed ends`() async throws {
        let stage = try Stage()
        let world = try stage.backend.makeWorld(id: "blue")
        world.clock.freeze()
        let hour = Distribution.fixed(.seconds(3_600))
        let events = FaultMatch("GET", "/v1/live/events")
        try world.set(Fault(.latency(connect: nil, firstByte: hour, body: nil), when: events))
        let stream = try stage.send("GET", "/w/blue/v1/live/events")
        await reached { world.clock.untilNextTimer != nil }
        try world.destroy()
        #expect(await stream.readToEnd().ending == .closed)
        #expect(world.world.live.readerCount == 0)
    }

    @Test func `a live channel that waited while its token became invalid ends`() async throws {
        let stage = try Stage()
        try stage.world.takeSnapshot("s")
        #expect(try await stage.ask("POST", "/v1/posts", #"{"text":"gone soon"}"#).status == 201)
        let late = try #require(try await stage.ask("GET", "/v1/changes?since=now").json["nextToken"]?.string)
        try stage.world.set(Gate(id: "g", when: FaultMatch("GET", "/v1/live/events"), stage: .reply))
        let stream = try stage.send("GET", "/v1/live/events?since=\(late)")
        await reached { !stage.world.held.isEmpty }
        try stage.world.restore("s")
        stage.world.releaseAll()
        let bytes = await stream.readToEnd().bytes
        #expect(!String(decoding: bytes, as: UTF8.self).contains("event: hello"))
    }

    @Test func `the stream of a destroyed world's journal ends`() async throws {
        let stage = try Stage()
        let world = try stage.backend.makeWorld(id: "blue")
        let client = try stage.send("GET", "/_larder/worlds/blue/journal/live", as: nil)
        _ = try await client.read(until: "blue\n\n")
        try world.destroy()
        #expect(await client.readToEnd().ending == .closed)
    }

    /// Nothing that needs a long time may hold up the loop, which serves the other worlds.
    @Test(arguments: ["fork", "snapshots", "reset", "ledger"])
    func `a control request that needs long does not hold up requests to other worlds`(kind: String) async throws {
        let stage = try Stage()
        let world = try stage.backend.makeWorld(id: "blue")
        let hold = Hold()
        // A reader keeps the store of the world.
        await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                try? world.world.read { _ in
                    continuation.resume()
                    hold.wait()
                }
            }
        }
        let client =
            switch kind {
            case "fork": try stage.send("POST", "/_larder/worlds", #"{"from":{"fork":"blue"}}"#, as: nil)
            case "snapshots": try stage.send("POST", "/_larder/worlds/blue/snapshots", #"{"name":"s"}"#, as: nil)
            case "reset": try stage.send("POST", "/_larder/worlds/blue/reset", as: nil)
            default: try stage.send("GET", "/_larder/worlds/blue/oracles/ledger", as: nil)
            }
        for _ in 0..<3 { #expect(try await stage.ask("GET", "/v1/feed").status == 200) }
        #expect(!client.hasNews)
        hold.open()
        #expect(try await client.reply().status < 300)
    }

    @Test func `a repeatable reply is invalid after its world was destroyed`() async throws {
        let stage = try Stage()
        let world = try stage.backend.makeWorld(id: "brief")
        let client = try stage.connect()
        func status() async throws -> Int {
            try await stage.send("GET", "/v1/feed?limit=1", fields: ["Larder-World": "brief"], on: client).reply()
                .status
        }
        for _ in 0..<4 { #expect(try await status() == 200) }
        try world.destroy()
        #expect(try await status() == 404)
    }

    @Test func `a fork of a world that follows the system's clock again follows it too`() async throws {
        let stage = try Stage()
        stage.world.clock.followSystem()
        let fork = try stage.world.fork(id: "fork")
        #expect(fork.clock.mode == .real)
    }

    @Test func `a replica lags behind a restored snapshot, and history is recorded from the first lag fault on`()
        async throws
    {
        let stage = try Stage()
        func rename(_ name: String) {
            let body = "{\"displayName\":\"\(name)\"}"
            _ = stage.world.perform(ScriptedAction("PATCH", "/v1/profiles/user_1", as: "ana", body: body))
        }
        func triggers() throws -> Int64 {
            try stage.world.world.read {
                try $0.database.integer("SELECT count(*) FROM temp.sqlite_temp_master WHERE type = 'trigger'")
            }
        }
        #expect(try triggers() == 0)
        try stage.world.takeSnapshot("s")
        try stage.world.set(Fault(id: "lag", .lag(.init(commits: 1)), when: FaultMatch("GET", "/v1/**")))
        try stage.world.restore("s")
        rename("One")
        rename("Two")
        #expect(try await stage.ask("GET", "/v1/profiles/user_1").json["displayName"] == .string("One"))
        #expect(try triggers() > 0)
        stage.world.removeFaults()
        rename("Three")
        #expect(try await stage.ask("GET", "/v1/profiles/user_1").json["displayName"] == .string("Three"))
    }

    @Test func `a snapshot of a newer program is rejected by name`() async throws {
        let folder = try ScratchDirectory()
        let database = try Database(.memory)
        try WorldSchema.migrations.run(on: database)
        try database.setUserVersion(99)
        try SourceFile.replace(folder.path + "/later.larder", with: database.image().bytes())
        let stage = try Stage { $0.snapshotsDirectory = folder.path }
        let reply = try await stage.ask("POST", "/_larder/snapshots/later/restore", as: nil)
        #expect(reply.status == 400 && reply.text.contains("schema version 99"))
        #expect(try await stage.ask("POST", "/_larder/snapshots/never/restore", as: nil).status == 404)
        #expect(try await stage.ask("GET", "/v1/feed").json["items"]?.array?.count == 20)
    }

    @Test func `the directory of snapshots is made at the start, and one that cannot be written is not listed`()
        async throws
    {
        let folder = try ScratchDirectory()
        let path = folder.path + "/a/b"
        let stage = try Stage { $0.snapshotsDirectory = path }
        var status = stat()
        #expect(unsafe stat(path, &status) == 0 && status.st_mode & 0o777 == 0o700)
        func take() async throws -> Int {
            try await stage.ask("POST", "/_larder/snapshots", #"{"name":"s","file":true}"#, as: nil).status
        }
        #expect(unsafe rmdir(path) == 0)
        #expect(try await take() == 503)
        #expect(try await stage.ask("GET", "/_larder/snapshots", as: nil).json["items"]?.array == [])
        #expect(unsafe mkdir(path, 0o700) == 0)
        #expect(try await take() == 201)
        let file = folder.path + "/file"
        try SourceFile.write([], to: file)
        for path in [file, file + "/inner"] {
            let error = #expect(throws: FileError.self) { _ = try Stage { $0.snapshotsDirectory = path } }
            #expect(error?.description == path + ": Not a directory")
        }
    }

    @Test func `a scripted actor acts after a commit to a database file`() async throws {
        let folder = try ScratchDirectory()
        let stage = try Stage { $0.databasePath = folder.path + "/w" }
        let act = ScriptedAction("POST", "/v1/posts", as: "person2", body: #"{"text":"theirs"}"#)
        try stage.world.set(ScriptedActor([act], when: FaultMatch("POST", "/v1/posts"), moment: .after))
        #expect(try await stage.ask("POST", "/v1/posts", #"{"text":"mine"}"#).status == 201)
        let items = try await stage.ask("GET", "/v1/feed?limit=2").json["items"]?.array ?? []
        #expect(items.compactMap { $0["text"]?.string } == ["theirs", "mine"])
    }

    @Test
    func `a snapshot of a world in a database file is not restored, because later writes would not be in the file`()
        async throws
    {
        let folder = try ScratchDirectory()
        let stage = try Stage { $0.databasePath = folder.path + "/w" }
        try stage.world.takeSnapshot("s")
        #expect(throws: Problem.self) { try stage.world.restore("s") }
        let blue = try stage.backend.makeWorld(id: "blue")
        try blue.takeSnapshot("s")
        #expect(throws: Never.self) { try blue.restore("s") }
    }

    /// A world in memory whose store fails as planned.
    private func failing(by plan: FaultPlan) throws -> World {
        let database = try Database(.memory, faults: plan)
        try WorldSchema.migrations.run(on: database)
        let clock = ManualClock()
        return try World(
            id: World.mainID,
            database: database,
            images: .empty,
            clock: WorldClock(wall: clock, monotonic: clock),
            seed: 1,
            settings: WorldSettings(),
            hooks: WorldControl(seed: 1, journalCapacity: 0),
            instances: SeededGenerator(seed: 1)
        )
    }

    @Test func `an action in a world whose store cannot be read is rejected with the error of the store`() async throws
    {
        let stage = try Stage()
        let plan = FaultPlan()
        let world = try failing(by: plan)
        plan.arm(.fail(.full), atStep: 1)
        let act = ScriptedAction("POST", "/v1/posts", as: "ana", body: #"{"text":"one"}"#)
        let reply = stage.backend.plane.perform(act, in: world)
        #expect(reply.status == .serviceUnavailable, "\(String(decoding: reply.bytes, as: UTF8.self))")
    }

    @Test func `a write that cannot be committed is not acknowledged`() async throws {
        let plan = FaultPlan()
        let world = try failing(by: plan)
        try world.commit { store, commit in
            let profile = EntityRow(id: EntityID(.profile, 1), name: "ana", members: JSONObject(), updated: commit.now)
            try commit.add(profile, to: store)
        }
        for isLost in [false, true, false] {
            if isLost { plan.arm(.fail(.full), atStep: 1) }
            let stamp = world.stamp
            do throws(Problem) {
                try world.commit { store, commit in
                    let row = try store.entities.next(.post).row
                    try commit.add(
                        .post(row, author: 1, text: "one more", image: nil, created: commit.now),
                        to: store
                    )
                }
                #expect(!isLost && world.stamp != stamp)
            } catch {
                #expect(isLost && error.status.code == 503 && world.stamp == stamp)
            }
            plan.heal()
        }
        #expect(world.commitCount == 3)
    }

    @Test func `heartbeats continue after a world's clock stops following the system`() async throws {
        let stage = try Stage()
        let world = try stage.backend.makeWorld(id: "taken")
        let stream = try stage.send("GET", "/w/taken/v1/live/events")
        _ = try await stream.read(until: "event: hello")
        // The loop sets the timers after that message. Reading the journal waits for the turn of the loop.
        _ = await world.journal()
        world.clock.freeze()
        world.clock.advance(by: .seconds(31))
        #expect(String(decoding: try await stream.read(until: ": alive"), as: UTF8.self).hasSuffix(": alive"))
    }
}
