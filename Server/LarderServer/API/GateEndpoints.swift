import LarderBackend
import LarderCoding
import LarderEngine
import LarderHTTP

/// Gates and held exchanges over HTTP.
enum GateEndpoints {
    static func answer(_ call: ControlCall, _ method: Method, _ rest: [String]) throws(Problem) -> Reply {
        let gates = call.world.control.gates
        if let id = rest.first {
            if rest.count == 2, rest[1] == "release" {
                guard method == .post else { throw ControlEndpoints.wrongMethod("POST") }
                let count = gates.releaseAll(of: id)
                return ControlEndpoints.json(.members(["released": .integer(Int64(count))]))
            }
            guard method == .delete else { throw ControlEndpoints.wrongMethod("DELETE, and POST on release") }
            guard gates.remove(id) else { throw ProblemType.notFound("There is no gate '\(id.prefix(64))'.") }
            return ControlEndpoints.done
        }
        switch method {
        case .get:
            return ControlEndpoints.json(.members(["items": .array(gates.gates.map(\.json))]))
        case .post:
            var reader = try call.settings()
            let gate = Gate.read(&reader)
            try reader.errors.check()
            let added = try gates.add(gate)
            return ControlEndpoints.json(
                added.json.warning(added.match.whyNobodyMatches(in: call.world)),
                status: .created
            )
        case .delete:
            gates.removeAll()
            return ControlEndpoints.done
        default: throw ControlEndpoints.wrongMethod("GET, POST, DELETE")
        }
    }

    /// `GET /_larder/held`, and `POST` on `NUMBER/release` or `NUMBER/answer`.
    static func held(_ call: ControlCall, _ method: Method, _ rest: [String]) throws(Problem) -> Reply {
        let gates = call.world.control.gates
        guard rest.count == 2 else {
            guard method == .get else { throw ControlEndpoints.wrongMethod("GET") }
            return ControlEndpoints.json(.members(["items": .array(gates.held.map(\.json))]))
        }
        guard method == .post else { throw ControlEndpoints.wrongMethod("POST") }
        let verdict: GateSet.Verdict
        switch rest[1] {
        case "release": verdict = .proceed
        case "answer":
            var reader = try call.settings()
            if let cut = reader.choice("cut", FaultAction.ExchangeCut.self) {
                reader.finish()
                verdict = .cut(cut)
            } else {
                let canned = CannedReply.read(&reader)
                reader.finish()
                verdict = .answer(canned ?? CannedReply(status: 500))
            }
            try reader.errors.check()
        default: throw ProblemType.notFound("A held exchange can be released or answered.")
        }
        guard let number = Int(rest[0]), gates.release(number, verdict) else {
            throw ProblemType.notFound("No exchange with the number '\(rest[0].prefix(32))' is held.")
        }
        return ControlEndpoints.done
    }
}
