import LarderCoding
import LarderEngine
import LarderHTTP
import LarderSQLite
import LarderTime

/// Worlds over HTTP.
enum WorldEndpoints {
    static let routes = [
        ControlRoute.later(.get, "/worlds") { call in
            .items(call.plane.worlds.all.map { .object(describe($0, call.plane.worlds)) })
        },
        .later(.post, "/worlds") { call throws(Problem) in
            .control(.object(describe(try create(call), call.plane.worlds)), status: .created)
        },
        ControlRoute(.get, "/", read),
        ControlRoute(.delete, "/") { call throws(Problem) in
            try call.plane.worlds.destroy(call.world.id)
            return .noContent
        },
        .later(.post, "/reset") { call throws(Problem) in
            try call.plane.worlds.reset(call.world.id)
            return .noContent
        },
        .later(.get, "/snapshots") { call in
            .items(call.plane.worlds.snapshots(of: call.world.id).map { describe($0.name, $0.snapshot) })
        },
        .later(.post, "/snapshots", takeSnapshot),
        .later(.post, "/snapshots/{name}/restore") { call throws(Problem) in
            try call.plane.worlds.restore(call.parameters[0], in: call.world.id)
            return .noContent
        },
    ]

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

    private static func describe(_ world: World, _ worlds: WorldRegistry) -> JSONObject {
        let members = JSONValue.members([
            "id": .string(world.id), "baseURL": .string(world.basePath.isEmpty ? "/" : world.basePath),
            "seed": .string(String(world.seed)), "time": .string(world.clock.now.rfc3339()),
            "commits": .integer(world.commitCount),
            "faults": .int(world.control.faults.all.count), "journal": .int(world.control.journal.countEver),
            "idleSeconds": worlds.idleLimit(of: world.id).map { .seconds($0) },
        ])
        return members.object ?? JSONObject()
    }

    private static func read(_ call: ControlCall) -> Reply? {
        var object = describe(call.world, call.plane.worlds)
        object["clock"] = ClockEndpoints.describe(call.world.clock)
        object["serves"] = .string(call.plane.serves(call.world))
        object["parts"] = .array(ControlEndpoints.parts.map { .string($0) })
        return .control(.object(object))
    }

    private static func takeSnapshot(_ call: ControlCall) throws(Problem) -> Reply? {
        let reader = try call.settings()
        let name = reader.string("name", length: 1...64)
        let isKept = reader.bool("file")
        if name == nil { reader.failMissing("name", "is missing") }
        try reader.check()
        let snapshot = try call.plane.worlds.takeSnapshot(name ?? "", of: call.world.id, isKept: isKept)
        return .control(describe(name ?? "", snapshot), status: .created)
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
    static let routes = [
        ControlRoute.later(.get, "/clock") { .control(describe($0.world.clock)) }, .later(.put, "/clock", change),
        .later(.post, "/clock/advance", advance), ControlRoute(.get, "/skew", skew),
        ControlRoute(.put, "/skew", setSkew),
    ]

    private static func change(_ call: ControlCall) throws(Problem) -> Reply? {
        let clock = call.world.clock
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
        return .control(describe(clock))
    }

    private static func advance(_ call: ControlCall) throws(Problem) -> Reply? {
        let clock = call.world.clock
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
        return .control(describe(clock))
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
    private static func skew(_ call: ControlCall) -> Reply? {
        let skews = call.world.control.current.skews.sorted { $0.key < $1.key }
        return .control(["devices": .members(skews.map { ($0.key, .seconds($0.value)) })])
    }

    private static func setSkew(_ call: ControlCall) throws(Problem) -> Reply? {
        let reader = try call.settings()
        let skews = reader.child("devices")?.durations() ?? [:]
        try reader.check()
        call.world.control.change { $0.skews = skews }
        return skew(call)
    }
}
