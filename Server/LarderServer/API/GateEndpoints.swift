import LarderCoding
import LarderEngine
import LarderHTTP

/// Gates and held exchanges over HTTP.
enum GateEndpoints {
    static func answer(_ call: ControlCall, _ rest: [String]) throws(Problem) -> Reply {
        let gates = call.world.control.gates
        if rest.count == 2, rest[1] == "release" {
            guard call.method == .post else { throw ControlEndpoints.wrongMethod("POST") }
            let known = gates.gates.map(\.id)
            guard known.contains(rest[0]) else { throw ControlEndpoints.missing(Gate.noun, rest[0], known) }
            return ControlEndpoints.json(.members(["released": .int(gates.releaseAll(of: rest[0]))]))
        }
        return try ControlEndpoints.named(
            call,
            rest,
            Gate.noun,
            gates.gates.map { ($0.id, $0.json) },
            remove: gates.remove,
            removeAll: gates.removeAll
        ) { () throws(Problem) in
            let reader = try call.settings()
            let gate = Gate.read(reader)
            try reader.check()
            return try gates.add(gate).json.warning(call.plane.doubt(about: gate.match, in: call.world))
        }
    }

    /// `GET /_larder/held`, and `POST` on `NUMBER/release` or `NUMBER/answer`.
    static func held(_ call: ControlCall, _ method: Method, _ rest: [String]) throws(Problem) -> Reply {
        let gates = call.world.control.gates
        guard rest.count == 2 else {
            guard method == .get, rest.isEmpty else { throw ControlEndpoints.wrongMethod("GET") }
            return ControlEndpoints.json(.members(["items": .array(gates.held.map(\.json))]))
        }
        guard method == .post else { throw ControlEndpoints.wrongMethod("POST") }
        var ending: FaultEnding?
        switch rest[1] {
        case "release": break
        case "answer":
            let reader = try call.settings()
            let cut = reader.choice("cut", FaultAction.ExchangeCut.self)
            // A wrong `cut` needs no status.
            ending =
                reader.has("cut")
                ? cut.map { .cut($0) } : .respond(CannedReply.read(reader) ?? CannedReply(status: 500))
            try reader.check()
        default: throw ProblemType.notFound("A held exchange can be released or answered.")
        }
        guard let number = Int(rest[0]), gates.release(number, ending) else {
            throw ProblemType.notFound("No exchange with the number '\(rest[0].prefix(32))' is held.")
        }
        return ControlEndpoints.done
    }
}
