import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime

/// Scripted actors, dialects and schema drift over HTTP.
enum ScriptedActorEndpoints {
    static let routes =
        ControlRoute.named(
            ScriptedActor.noun,
            items: { $0.world.control.actors.all.map { ($0.id, $0.json) } },
            remove: { $0.world.control.actors.remove($1) },
            removeAll: { $0.world.control.actors.removeAll() },
            add: add
        ) + [
            ControlRoute(.post, "/act", act), ControlRoute(.get, "/dialect", dialect),
            ControlRoute(.put, "/dialect", setDialect), ControlRoute(.get, "/drift", drift),
            ControlRoute(.put, "/drift", setDrift),
            ControlRoute(.delete, "/drift") { call in
                call.world.control.change { $0.drift = nil }
                return .noContent
            },
        ]

    private static func act(_ call: ControlCall) throws(Problem) -> Reply? {
        let reader = try call.settings()
        let acts = reader.one(or: "acts", ScriptedAction.read)
        try reader.check()
        let (plane, world) = (call.plane, call.world)
        try plane.requireDomain("An action of another person")
        let results = acts.map { act in
            let reply = plane.perform(act, in: world)
            return JSONValue.members([
                "status": .int(reply.status.code), "body": JSONValue(displaying: reply.bytes),
            ])
        }
        return .control(["results": .array(results)])
    }

    private static func add(_ call: ControlCall) throws(Problem) -> JSONValue {
        let reader = try call.settings()
        let actor = ScriptedActor.read(reader)
        try reader.check()
        let named = try call.plane.set(actor, in: call.world)
        return named.json.warning(call.plane.doubt(about: actor.match, in: call.world))
    }

    private static func dialect(_ call: ControlCall) -> Reply? {
        let dialect = call.world.control.current.dialect
        return .control([
            "idempotency": .string(dialect.idempotency.rawValue), "resync": .string(dialect.resync.rawValue),
        ])
    }

    private static func setDialect(_ call: ControlCall) throws(Problem) -> Reply? {
        let reader = try call.settings()
        var dialect = Dialect()
        if let value = reader.choice("idempotency", Dialect.Idempotency.self) { dialect.idempotency = value }
        if let value = reader.choice("resync", Dialect.Resync.self) { dialect.resync = value }
        try reader.check()
        call.world.control.change { [dialect] in $0.dialect = dialect }
        return self.dialect(call)
    }

    private static func drift(_ call: ControlCall) -> Reply? {
        .control(["drift": call.world.control.current.drift?.json ?? .null])
    }

    private static func setDrift(_ call: ControlCall) throws(Problem) -> Reply? {
        let reader = try call.settings()
        let drift = SchemaDrift.read(reader)
        try reader.check()
        call.world.control.change { $0.drift = drift }
        return self.drift(call)
    }
}

extension ControlPlane {
    /// Adds an actor; it replaces one with the same name.
    func set(_ actor: ScriptedActor, in world: World) throws(Problem) -> ScriptedActor {
        try requireDomain("An actor")
        return try world.control.actors.add(actor)
    }
}
