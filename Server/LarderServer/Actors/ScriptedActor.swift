import LarderBackend
import LarderCoding
import LarderEngine
import LarderHTTP
import Synchronization

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

    static func read(_ reader: inout BodyReader) -> ScriptedAction? {
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
            "body": body.map { JSONValue(displaying: $0) },
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
    /// How many matching exchanges it skips first.
    public var after: Int
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
        after: Int = 0,
        count: Int = 1
    ) {
        self.id = id
        self.match = match
        self.moment = moment
        self.after = after
        self.count = count
        self.acts = acts
    }

    var json: JSONValue {
        .members([
            "id": .string(id), "match": match.json, "moment": .string(moment.rawValue),
            "after": .integer(Int64(after)), "count": .integer(Int64(count)), "acts": .array(acts.map(\.json)),
        ])
    }
}

/// The scripted actors of a world. Safe from any thread.
final class ScriptedActorSet: Sendable {
    private struct Rule {
        let actor: ScriptedActor
        let matcher: Matcher
        var seen = 0
        var acted = 0
    }

    private struct State {
        var rules: [Rule] = []
        var lastID = 0
    }

    static let countMaximum = 1_000

    private let state = Mutex(State())
    private let count = Atomic<Int>(0)

    var isEmpty: Bool { count.load(ordering: .relaxed) == 0 }

    func add(_ actor: ScriptedActor) throws(Problem) -> ScriptedActor {
        try state.withLock { state throws(Problem) in
            var actor = actor
            let isKnown = state.rules.contains { $0.actor.id == actor.id }
            guard isKnown || state.rules.count < Self.countMaximum else {
                throw ProblemType.limitReached(
                    "A world has at most \(Self.countMaximum) actors.",
                    limit: Self.countMaximum
                )
            }
            if actor.id.isEmpty {
                repeat {
                    state.lastID += 1
                    actor.id = "actor-\(state.lastID)"
                } while state.rules.contains(where: { $0.actor.id == actor.id })
            }
            state.rules.removeAll { $0.actor.id == actor.id }
            state.rules.append(Rule(actor: actor, matcher: Matcher(actor.match)))
            count.store(state.rules.count, ordering: .relaxed)
            return actor
        }
    }

    @discardableResult func remove(_ id: String) -> Bool {
        state.withLock { state in
            let before = state.rules.count
            state.rules.removeAll { $0.actor.id == id }
            count.store(state.rules.count, ordering: .relaxed)
            return state.rules.count < before
        }
    }

    func removeAll() {
        state.withLock { state in
            state.rules.removeAll()
            count.store(0, ordering: .relaxed)
        }
    }

    var all: [ScriptedActor] { state.withLock { $0.rules.map(\.actor) } }

    /// The actions that are due at this stage of an exchange.
    func due(_ facts: ExchangeFacts, _ moment: ScriptedActor.Moment) -> [ScriptedAction] {
        guard !isEmpty else { return [] }
        return state.withLock { state in
            var acts: [ScriptedAction] = []
            for index in state.rules.indices where state.rules[index].actor.moment == moment {
                let rule = state.rules[index]
                guard rule.acted < rule.actor.count, rule.matcher.matches(facts) else { continue }
                state.rules[index].seen += 1
                guard rule.seen >= rule.actor.after else { continue }
                state.rules[index].acted += 1
                acts += rule.actor.acts
            }
            return acts
        }
    }
}
