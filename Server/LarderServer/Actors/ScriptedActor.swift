import LarderCoding
import LarderEngine
import LarderHTTP

/// A request by another person, or by the same person on another device.
public struct ScriptedAction: Sendable, Hashable {
    /// The person's handle; nil for an anonymous request.
    public var person: String?
    /// The request's method.
    public var method: String
    /// Path and query, inside the world.
    public var path: String
    /// The bytes of the body; nil for none.
    var body: [UInt8]?
    /// Further fields. An edit without `If-Match` applies to the current version.
    public var headers: [String: String] = [:]

    /// - Parameter body: JSON text; nil for none. Text that is not JSON is sent as it is, and the API rejects it.
    public init(_ method: String, _ path: String, as person: String?, body: String? = nil) {
        self.person = person
        self.method = method
        self.path = path
        self.body = body.map { Array($0.utf8) }
    }

    static func read(_ reader: BodyReader) -> ScriptedAction? {
        let person = reader.string("as", length: 1...64)
        let method = reader.string("method", length: 1...16)
        let path = reader.string("path")
        let body = reader.value("body")
        let headers = reader.texts("headers")
        guard let method, let path, path.hasPrefix("/") else {
            reader.failMissing(
                anyOf: ["path", "method"],
                "must be a path such as /v1/posts, and `method` must be given"
            )
            return nil
        }
        var act = ScriptedAction(method.uppercased(), path, as: person)
        act.body = body?.encoded
        act.headers = headers
        return act
    }

    /// The action as a request.
    func request(device: String) throws(Problem) -> Request {
        var fields: [(name: String, value: String)] = [("Host", "actor"), ("Larder-Device", device)]
        if let person { fields.append(("Authorization", "Bearer " + DeveloperToken.text(for: person))) }
        if body != nil { fields.append(("Content-Type", "application/json")) }
        if method == "PATCH" || method == "DELETE", headers["If-Match"] == nil { fields.append(("If-Match", "*")) }
        for header in headers.sorted(by: { $0.key < $1.key }) { fields.append((header.key, header.value)) }
        do { return try Request(Method(method), path, fields, body: body ?? []) } catch {
            throw ProblemType.invalidParameter("The action is not a valid request: \(error.detail)")
        }
    }

    var json: JSONValue {
        .members([
            "as": person.map { .string($0) }, "method": .string(method), "path": .string(path),
            "body": body.map { JSONValue(displaying: $0) }, "headers": JSONValue.texts(headers),
        ])
    }
}

extension JSONValue {
    /// A body for display: JSON as it is, and anything else as a string.
    init(displaying body: [UInt8]) {
        do { self = try JSONParser.parse(body) } catch { self = .string(String(decoding: body, as: UTF8.self)) }
    }
}

/// Actions that run at a given stage of a matching exchange, so that a conflict happens in every run.
public struct ScriptedActor: Sendable, Hashable {
    /// At which stage of the exchange the actions run.
    public enum Moment: String, Sendable, Hashable, CaseIterable {
        /// The request has arrived and was not processed: between a client's pull and its push.
        case before
        /// The request was processed, and the reply was not sent.
        case after
    }

    /// The actor's name.
    public var id: String
    /// Which exchanges trigger the actor.
    public var match: FaultMatch
    /// At which stage of the exchange it acts.
    public var moment: Moment
    /// How often it acts at most.
    public var count: Int
    /// Its actions, in order.
    public var acts: [ScriptedAction]

    /// - Parameter id: its name; empty to generate one.
    public init(
        id: String = "",
        _ acts: [ScriptedAction],
        when match: FaultMatch,
        moment: Moment = .before,
        count: Int = 1
    ) {
        self.id = id
        self.match = match
        self.moment = moment
        self.count = count
        self.acts = acts
    }

    static func read(_ reader: BodyReader) -> ScriptedActor {
        ScriptedActor(
            id: reader.string("id", length: 1...64) ?? "",
            reader.one(or: "acts", ScriptedAction.read),
            when: reader.child("match").map(FaultMatch.read) ?? FaultMatch(),
            moment: reader.choice("moment", Moment.self) ?? .before,
            count: reader.integer("count", in: 1...1_000_000) ?? 1
        )
    }

    var json: JSONValue {
        .members([
            "id": .string(id), "match": match.json, "moment": .string(moment.rawValue),
            "count": .integer(Int64(count)), "acts": .array(acts.map(\.json)),
        ])
    }
}

extension ScriptedActor: NamedRule {
    static var noun: String { "actor" }
    static var countMaximum: Int { 1_000 }
}

/// The scripted actors of a world, each with how often it has acted.
typealias ScriptedActorSet = RuleSet<ScriptedActor, Int>

extension ScriptedActorSet {
    func add(_ actor: ScriptedActor) throws(Problem) -> ScriptedActor {
        try add([actor]) { _ in 0 }[0]
    }

    /// The actions that are due at this stage of an exchange.
    func due(_ facts: ExchangeFacts, _ moment: ScriptedActor.Moment) -> [ScriptedAction] {
        withEntries { entries in
            var acts: [ScriptedAction] = []
            for index in entries.indices where entries[index].rule.moment == moment {
                let actor = entries[index].rule
                guard entries[index].counts < actor.count, entries[index].matcher.matches(facts) else { continue }
                entries[index].counts += 1
                acts += actor.acts
            }
            return acts
        } ?? []
    }
}
