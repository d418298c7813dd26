import LarderCoding
import LarderEngine
import LarderHTTP

/// A difference between a client's data and the server's.
public struct Difference: Sendable, Hashable, CustomStringConvertible {
    /// The entity, such as `post_12`.
    public let id: String
    /// The client's version; nil if it has none.
    public let held: Int?
    /// The server's version; nil if there is none (any more).
    public let truth: Int?

    /// The difference in a sentence.
    public var description: String {
        switch (held, truth) {
        case (let held?, let truth?): "\(id): the client has version \(held), the server \(truth)"
        case (let held?, nil): "\(id): the client has version \(held), the server none"
        case (nil, let truth?): "\(id): the client has none, the server version \(truth)"
        case (nil, nil): "\(id): neither side has it"
        }
    }

    var json: JSONValue {
        .members([
            "id": .string(id), "held": held.map { .integer(Int64($0)) }, "truth": truth.map { .integer(Int64($0)) },
        ])
    }
}

/// Oracles: the consistency of the ledger, and the data that a client should have.
enum OracleEndpoints {
    static let routes = [
        ControlRoute.later(.get, "/oracles/ledger", ledger), .later(.post, "/oracles/converged", converged),
    ]

    private static func ledger(_ call: ControlCall) throws(Problem) -> Reply? {
        try call.plane.requireDemo(in: call.world, "The ledger")
        let faults = try call.world.checkLedger().map { JSONValue.string($0.description) }
        return .control(["isSound": .bool(faults.isEmpty), "faults": .array(faults)])
    }

    private static func converged(_ call: ControlCall) throws(Problem) -> Reply? {
        let reader = try call.settings()
        let person = reader.string("as", length: 1...64)
        var held: [String: Int] = [:]
        if let child = reader.child("held") {
            for member in child.members {
                guard let version = member.value.integer else {
                    child.fail(member.name, "must be the client's version")
                    continue
                }
                held[member.name] = Int(version)
            }
        } else if reader.object["held"] == nil {
            reader.fail("held", "is missing: an object of identifiers and versions")
        }
        let types = reader.string("types")
        let isPartial = reader.bool("partial")
        try reader.check()
        let differences = try call.plane.differences(held: held, types: types, as: person, in: call.world)
            .filter { !isPartial || held[$0.id] != nil }
        call.world.control.heldReports.add(.init(held: held, differing: Set(differences.map(\.id))))
        return .control([
            "isConverged": .bool(differences.isEmpty), "differences": .array(differences.prefix(1_000).map(\.json)),
            "count": .int(differences.count),
        ])
    }
}

extension ControlPlane {
    /// The entities in which a client differs from what its person can see.
    ///
    /// - Parameters:
    ///   - held: the client's entities with their versions.
    ///   - types: the kinds to compare, as in `types=` of the change feed; nil for all.
    func differences(
        held: [String: Int],
        types: String?,
        as person: String?,
        in world: World
    ) throws(Problem) -> [Difference] {
        var truth: [String: Int] = [:]
        var token: String?
        while true {
            // Read through the API as a client does, so that only visible entities are compared.
            var path = world.changesPath + "?limit=500"
            if let types { path += "&types=" + types }
            if let token { path += "&since=" + token }
            let result = look(at: path, as: person, in: world, device: "oracle")
            func failure(_ reason: String) -> Problem {
                ProblemType.invalidParameter("The data of \(person ?? "nobody") cannot be read: \(reason)")
            }
            let page: JSONValue
            do { page = try JSONParser.parse(result.bytes) } catch { throw failure("\(error)") }
            guard result.status == .ok else { throw failure(page["detail"]?.string ?? "\(result.status.code)") }
            for change in page["items"]?.array ?? [] {
                guard var id = change["id"]?.string ?? change["id"]?.integer.map({ String($0) }) else { continue }
                // Documents of two collections may have one identifier.
                if !world.collections.isEmpty { id = "\(change["type"]?.string ?? "")/\(id)" }
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
