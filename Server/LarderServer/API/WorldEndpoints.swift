import LarderCoding
import LarderEngine
import LarderHTTP
import LarderSQLite
import LarderTime

/// Worlds over HTTP.
enum WorldEndpoints {
    /// `GET` and `POST /_larder/worlds`.
    static func answerAll(_ call: ControlCall) throws(Problem) -> Reply {
        switch call.method {
        case .get:
            let worlds = call.plane.worlds.all.map { describe($0, call.plane.worlds) }
            return ControlEndpoints.json(.members(["items": .array(worlds)]))
        case .post:
            let world = try create(call)
            return ControlEndpoints.json(describe(world, call.plane.worlds), status: .created)
        default: throw ControlEndpoints.wrongMethod("GET, POST")
        }
    }

    private static func create(_ call: ControlCall) throws(Problem) -> World {
        let reader = try call.settings()
        let id = reader.string("id", length: 1...64)
        let seed = reader.integer("seed", in: 0...Int.max).map { UInt64($0) }
        let idleLimit = reader.seconds("idleSeconds")
        if let idleLimit, idleLimit <= .zero { reader.fail("idleSeconds", "must be greater than 0") }
        var source: WorldSource?
        var original: String?
        if let from = reader.value("from") {
            if from.string == "fixtures" {
                source = nil
            } else if from.string == "empty" {
                source = .empty
            } else if let child = reader.child("from") {
                original = child.string("fork", length: 1...64)
                if original == nil { source = worldSize(child).map { .generated($0, picturesFrom: nil) } }
            }
        }
        try reader.check()
        let worlds = call.plane.worlds
        if let original { return try worlds.fork(original, id: id, seed: seed, idleLimit: idleLimit) }
        return try worlds.create(id: id, source: source, seed: seed, idleLimit: idleLimit)
    }

    private static func worldSize(_ reader: BodyReader) -> WorldSize? {
        guard let child = reader.child("generator") else {
            reader.failMissing(
                anyOf: ["generator", "fork"],
                "or `fork` must be given, or `from` as \"fixtures\" or \"empty\""
            )
            return nil
        }
        var size = WorldSize()
        size.seed = UInt64(child.integer("seed", in: 0...Int.max) ?? 1)
        size.people = child.integer("people", in: 1...100_000) ?? size.people
        size.posts = child.integer("posts", in: 0...1_000_000) ?? size.posts
        size.conversations = child.integer("conversations", in: 0...100_000) ?? size.conversations
        size.messages = child.integer("messages", in: 0...1_000_000) ?? size.messages
        size.tasks = child.integer("tasks", in: 0...1_000_000) ?? size.tasks
        size.transfers = child.integer("transfers", in: 0...1_000_000) ?? size.transfers
        return size
    }

    private static func describe(_ world: World, _ worlds: WorldRegistry) -> JSONValue {
        .members([
            "id": .string(world.id), "baseURL": .string(world.basePath.isEmpty ? "/" : world.basePath),
            "seed": .string(String(world.seed)), "time": .string(world.clock.now.rfc3339()),
            "commits": .integer(world.commitCount),
            "faults": .integer(Int64(world.control.faults.all.count)),
            "journal": .integer(Int64(world.control.journal.countEver)),
            "idleSeconds": worlds.idleLimit(of: world.id).map { .seconds($0) },
        ])
    }

    /// One world: `GET` and `DELETE /_larder/worlds/ID`; `GET /_larder`.
    static func answer(_ call: ControlCall, _ method: Method) throws(Problem) -> Reply {
        switch method {
        case .get:
            var object = describe(call.world, call.plane.worlds).object ?? JSONObject()
            object["clock"] = ClockEndpoints.describe(call.world.clock)
            object["serves"] = .string(call.plane.serves(call.world))
            object["parts"] = .array(ControlEndpoints.parts.map { .string($0) })
            return ControlEndpoints.json(.object(object))
        case .delete:
            try call.plane.worlds.destroy(call.world.id)
            return ControlEndpoints.done
        default: throw ControlEndpoints.wrongMethod("GET, DELETE")
        }
    }

    static func reset(_ call: ControlCall, _ method: Method) throws(Problem) -> Reply {
        guard method == .post else { throw ControlEndpoints.wrongMethod("POST") }
        try call.plane.worlds.reset(call.world.id)
        return ControlEndpoints.done
    }

    static func snapshots(_ call: ControlCall, _ method: Method, _ rest: [String]) throws(Problem) -> Reply {
        let worlds = call.plane.worlds
        if rest.count == 2, rest[1] == "restore" {
            guard method == .post else { throw ControlEndpoints.wrongMethod("POST") }
            try worlds.restore(rest[0], in: call.world.id)
            return ControlEndpoints.done
        }
        guard rest.isEmpty else { throw ProblemType.notFound("The only path below snapshots is NAME/restore.") }
        switch method {
        case .get:
            let items = worlds.snapshots(of: call.world.id).map { describe($0.name, $0.snapshot) }
            return ControlEndpoints.json(.members(["items": .array(items)]))
        case .post:
            let reader = try call.settings()
            let name = reader.string("name", length: 1...64)
            let isKept = reader.bool("file")
            if name == nil { reader.failMissing("name", "is missing") }
            try reader.check()
            let snapshot = try worlds.takeSnapshot(name ?? "", of: call.world.id, isKept: isKept)
            return ControlEndpoints.json(describe(name ?? "", snapshot), status: .created)
        default: throw ControlEndpoints.wrongMethod("GET, POST")
        }
    }

    private static func describe(_ name: String, _ snapshot: WorldRegistry.Snapshot) -> JSONValue {
        .members([
            "name": .string(name), "bytes": .integer(Int64(snapshot.image.byteCount)),
            "time": .string(snapshot.time.rfc3339()),
        ])
    }
}

/// The clock of a world over HTTP.
enum ClockEndpoints {
    static func answer(_ call: ControlCall, _ method: Method, _ rest: [String]) throws(Problem) -> Reply {
        let clock = call.world.clock
        switch (method, rest.first) {
        case (.get, nil): break
        case (.put, nil):
            let reader = try call.settings()
            let mode = reader.string("mode")
            let factor = reader.number("factor", in: 0.000_001...1_000_000)
            let time = reader.string("time").map { ($0, WallTime(rfc3339: $0)) }
            if let time, time.1 == nil { reader.fail("time", "must be an RFC 3339 time such as 2026-01-01T00:00:00Z") }
            if let mode, !["real", "frozen", "running"].contains(mode) {
                reader.fail("mode", "must be real, frozen or running")
            }
            if mode == "real", time != nil {
                reader.fail("time", "must not be given with the mode real, which uses the system's clock")
            }
            if let time = time?.1, time - clock.now > clock.remaining {
                reader.fail("time", "must not be beyond the clock's range: \(rangeEnd(clock))")
            }
            if mode == nil, time == nil, factor == nil {
                reader.failMissing(anyOf: ["mode", "time", "factor"], "or `time` or `factor` must be given")
            }
            try reader.check()
            switch mode {
            case "real"?: clock.followSystem()
            case "frozen"?: clock.freeze()
            case "running"?: clock.run(factor: factor ?? 1)
            default: if let factor { clock.run(factor: factor) }
            }
            if let time = time?.1 { clock.set(to: time) }
        case (.post, "advance"?):
            let reader = try call.settings()
            let duration = reader.seconds("seconds", maximum: 3_153_600_000)
            let toNext = reader.bool("toNextTimer")
            if let duration, duration > clock.remaining {
                reader.fail("seconds", "must not exceed the clock's range: \(rangeEnd(clock))")
            }
            if (duration == nil) == !toNext {
                reader.failMissing(anyOf: ["seconds", "toNextTimer"], "or `toNextTimer` must be given")
            }
            try reader.check()
            if let duration { clock.advance(by: duration) } else { clock.advanceToNextTimer() }
        default: throw ControlEndpoints.wrongMethod("GET, PUT, and POST on advance")
        }
        return ControlEndpoints.json(describe(clock))
    }

    private static func rangeEnd(_ clock: WorldClock) -> String {
        "it can be advanced by \(clock.remaining.components.seconds) seconds at most"
    }

    static func describe(_ clock: WorldClock) -> JSONValue {
        var mode = "real"
        var factor: Double?
        switch clock.mode {
        case .real: break
        case .frozen: mode = "frozen"
        case .running(let times): (mode, factor) = ("running", times)
        }
        return .members([
            "mode": .string(mode), "factor": factor.map { .number($0) }, "time": .string(clock.now.rfc3339()),
            "nextTimerInSeconds": clock.untilNextTimer.map { .seconds($0) },
        ])
    }

    /// The offsets of devices' dates: `{"devices": {"phone": -60, "*": 5}}`.
    static func skew(_ call: ControlCall, _ method: Method) throws(Problem) -> Reply {
        if method == .put {
            let reader = try call.settings()
            let skews = reader.child("devices")?.durations() ?? [:]
            try reader.check()
            call.world.control.change { $0.skews = skews }
        } else if method != .get {
            throw ControlEndpoints.wrongMethod("GET, PUT")
        }
        let skews = call.world.control.current.skews.sorted { $0.key < $1.key }
        return ControlEndpoints.json(["devices": .members(skews.map { ($0.key, .seconds($0.value)) })])
    }
}
