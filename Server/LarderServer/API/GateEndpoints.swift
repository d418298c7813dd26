import LarderCoding
import LarderEngine
import LarderHTTP

/// Gates and held exchanges over HTTP.
enum GateEndpoints {
    static let routes =
        ControlRoute.named(
            Gate.noun,
            items: { $0.world.control.gates.gates.map { ($0.id, $0.json) } },
            remove: { $0.world.control.gates.remove($1) },
            removeAll: { $0.world.control.gates.removeAll() },
            add: add
        ) + [
            ControlRoute(.post, "/gates/{id}/release", releaseAll),
            ControlRoute(.get, "/held") { .items($0.world.control.gates.held.map(\.json)) },
            ControlRoute(.post, "/held/{number}/release") { call throws(Problem) in try release(call, nil) },
            ControlRoute(.post, "/held/{number}/answer", answer),
        ]

    private static func add(_ call: ControlCall) throws(Problem) -> JSONValue {
        let reader = try call.settings()
        let gate = Gate.read(reader)
        try reader.check()
        let doubt = call.plane.doubt(about: gate.match, in: call.world)
        return try call.world.control.gates.add(gate).json.warning(doubt)
    }

    private static func releaseAll(_ call: ControlCall) throws(Problem) -> Reply? {
        let (gates, id) = (call.world.control.gates, call.parameters[0])
        let known = gates.gates.map(\.id)
        guard known.contains(id) else { throw ControlEndpoints.missing(Gate.noun, id, known) }
        return .control(["released": .int(gates.releaseAll(of: id))])
    }

    private static func answer(_ call: ControlCall) throws(Problem) -> Reply? {
        let reader = try call.settings()
        let cut = reader.choice("cut", FaultAction.ExchangeCut.self)
        // A wrong `cut` needs no status.
        let ending: FaultEnding? =
            reader.has("cut") ? cut.map { .cut($0) } : .respond(CannedReply.read(reader) ?? CannedReply(status: 500))
        try reader.check()
        return try release(call, ending)
    }

    private static func release(_ call: ControlCall, _ ending: FaultEnding?) throws(Problem) -> Reply? {
        let text = call.parameters[0]
        guard let number = Int(text), call.world.control.gates.release(number, ending) else {
            throw ProblemType.notFound("No exchange with the number '\(text.prefix(32))' is held.")
        }
        return .noContent
    }
}
