import LarderCoding
import LarderEngine
import LarderHTTP

/// A row in which a client differs from the truth.
public struct Difference: Sendable, Hashable, CustomStringConvertible {
    /// The entity, such as `post_12`.
    public let id: String
    /// The version that the client has; nil where it has none.
    public let held: Int?
    /// The version that is true; nil where there is none (any more).
    public let truth: Int?

    /// The difference in a sentence.
    public var description: String {
        switch (held, truth) {
        case (let held?, let truth?): "\(id): the client has version \(held), the server \(truth)"
        case (let held?, nil): "\(id): the client has version \(held), the server none"
        case (nil, let truth?): "\(id): the client has none, the server version \(truth)"
        case (nil, nil): "\(id): neither has it"
        }
    }

    var json: JSONValue {
        .members([
            "id": .string(id), "held": held.map { .integer(Int64($0)) }, "truth": truth.map { .integer(Int64($0)) },
        ])
    }
}

/// Who knows what is true: money, and what a client should hold.
enum OracleEndpoints {
    static func answer(_ call: ControlCall, _ method: Method, _ rest: [String]) throws(Problem) -> Reply {
        switch (method, rest.first) {
        case (.get, "ledger"?):
            let faults = try call.world.checkLedger().map(\.description)
            return ControlEndpoints.json(
                .members(["isSound": .bool(faults.isEmpty), "faults": .array(faults.map { .string($0) })])
            )
        case (.post, "converged"?):
            var (reader, errors) = try call.settings()
            let person = reader.string("as", length: 1...64)
            var held: [String: Int] = [:]
            if let child = reader.child("held") {
                for member in child.object.members {
                    guard let version = member.value.integer else {
                        child.fail(member.name, "must be the version that the client holds")
                        continue
                    }
                    held[member.name] = Int(version)
                }
            } else if reader.object["held"] == nil {
                reader.fail("held", "is missing: an object of identifiers and versions")
            }
            let types = reader.string("types")
            reader.finish()
            try errors.check()
            let differences = try call.plane.differences(held: held, types: types, as: person, in: call.world)
            return ControlEndpoints.json(
                .members([
                    "isConverged": .bool(differences.isEmpty),
                    "differences": .array(differences.prefix(1_000).map(\.json)),
                    "count": .integer(Int64(differences.count)),
                ])
            )
        default: throw ControlEndpoints.wrongMethod("GET on ledger, POST on converged")
        }
    }
}

extension ControlPlane {
    /// The rows in which a client differs from what its person can see.
    ///
    /// - Parameters:
    ///   - held: the entities that the client holds, with their versions.
    ///   - types: which kinds of entity are compared, as `types=` of the change feed spells them; nil for all.
    func differences(
        held: [String: Int],
        types: String?,
        as person: String?,
        in world: World
    ) throws(Problem) -> [Difference] {
        var truth: [String: Int] = [:]
        var token: String?
        while true {
            // Asked for as a client does: what cannot be read cannot be held against anybody.
            var path = "/v1/changes?limit=500"
            if let types { path += "&types=" + types }
            if let token { path += "&since=" + token }
            let result = perform(PhantomAct("GET", path, as: person), in: world, device: "oracle")
            guard result.status == 200, case .object(let page)? = try? JSONParser.parse(result.body) else {
                throw ProblemType.invalidParameter(
                    "The truth for \(person ?? "nobody") cannot be read: \(String(decoding: result.body.prefix(300), as: UTF8.self))"
                )
            }
            for change in page["items"]?.array ?? [] {
                guard let id = change["id"]?.string else { continue }
                truth[id] = change["op"] == .string("delete") ? nil : change["version"]?.integer.map { Int($0) }
            }
            token = page["nextToken"]?.string
            if page["hasMore"] != .bool(true) { break }
        }
        return Set(truth.keys).union(held.keys).sorted()
            .filter { truth[$0] != held[$0] }
            .map { Difference(id: $0, held: held[$0], truth: truth[$0]) }
    }
}
