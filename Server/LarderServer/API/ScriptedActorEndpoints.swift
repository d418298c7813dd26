import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime

/// Scripted actors, change-feed faults, dialects and schema drift over HTTP.
enum ScriptedActorEndpoints {
    /// `POST /_larder/act`: one or several actions, immediately or after a delay.
    static func act(_ call: ControlCall, _ method: Method) throws(Problem) -> Reply {
        guard method == .post else { throw ControlEndpoints.wrongMethod("POST") }
        let reader = try call.settings()
        let after = reader.seconds("afterSeconds")
        let acts = reader.one(or: "acts", ScriptedAction.read)
        try reader.check()
        let (plane, world) = (call.plane, call.world)
        try plane.requireDomain("An action of another person")
        if let after {
            world.clock.plan(after: after) { for act in acts { plane.perform(act, in: world) } }
            return ControlEndpoints.json(.members(["scheduled": .integer(Int64(acts.count))]), status: .accepted)
        }
        let results = acts.map { act in
            let reply = plane.perform(act, in: world)
            return JSONValue.members([
                "status": .integer(Int64(reply.status.code)), "body": JSONValue(displaying: reply.bytes),
            ])
        }
        return ControlEndpoints.json(.members(["results": .array(results)]))
    }

    static func answer(_ call: ControlCall, _ rest: [String]) throws(Problem) -> Reply {
        let actors = call.world.control.actors
        return try ControlEndpoints.named(
            call,
            rest,
            ScriptedActor.noun,
            actors.all.map { ($0.id, $0.json) },
            remove: actors.remove,
            removeAll: actors.removeAll
        ) { () throws(Problem) in
            let reader = try call.settings()
            let actor = ScriptedActor(
                id: reader.string("id", length: 1...64) ?? "",
                reader.one(or: "acts", ScriptedAction.read),
                when: reader.child("match").map(FaultMatch.read) ?? FaultMatch(),
                moment: reader.choice("moment", ScriptedActor.Moment.self) ?? .before,
                count: reader.integer("count", in: 1...1_000_000) ?? 1
            )
            try reader.check()
            let named = try call.plane.set(actor, in: call.world)
            return named.json.warning(call.plane.doubt(about: actor.match, in: call.world))
        }
    }

    /// `POST /_larder/changes`: a fault of the change feed.
    static func changes(_ call: ControlCall, _ method: Method) throws(Problem) -> Reply {
        guard method == .post else { throw ControlEndpoints.wrongMethod("POST") }
        let reader = try call.settings()
        let fault = ChangeFeedFault.read(reader)
        try reader.check()
        if let fault { try call.plane.inject(fault, in: call.world) }
        return ControlEndpoints.done
    }

    static func dialect(_ call: ControlCall, _ method: Method) throws(Problem) -> Reply {
        if method == .put {
            let reader = try call.settings()
            var dialect = Dialect()
            if let value = reader.choice("idempotency", Dialect.Idempotency.self) { dialect.idempotency = value }
            if let value = reader.choice("resync", Dialect.Resync.self) { dialect.resync = value }
            try reader.check()
            call.world.control.change { $0.dialect = dialect }
        } else if method != .get {
            throw ControlEndpoints.wrongMethod("GET, PUT")
        }
        let dialect = call.world.control.current.dialect
        return ControlEndpoints.json([
            "idempotency": .string(dialect.idempotency.rawValue),
            "resync": .string(dialect.resync.rawValue),
        ])
    }

    static func drift(_ call: ControlCall, _ method: Method) throws(Problem) -> Reply {
        switch method {
        case .get: break
        case .put:
            let reader = try call.settings()
            let drift = SchemaDrift.read(reader)
            try reader.check()
            call.world.control.change { $0.drift = drift }
        case .delete:
            call.world.control.change { $0.drift = nil }
            return ControlEndpoints.done
        default: throw ControlEndpoints.wrongMethod("GET, PUT, DELETE")
        }
        return ControlEndpoints.json(.members(["drift": call.world.control.current.drift?.json ?? .null]))
    }
}

extension ControlPlane {
    /// Adds an actor; it replaces one with the same name.
    func set(_ actor: ScriptedActor, in world: World) throws(Problem) -> ScriptedActor {
        try requireDomain("An actor")
        return try world.control.actors.add(actor)
    }
}
