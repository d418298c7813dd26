import LarderCoding
import LarderEngine
import LarderHTTP
import Synchronization

/// Something that somebody else does: another person, or the same one on another device.
public struct PhantomAct: Sendable, Hashable {
    /// Who does it, by handle; nil for somebody who has not signed in.
    public var person: String?
    /// The request's method.
    public var method: String
    /// Path and query, inside the world.
    public var path: String
    /// A JSON document, or nil.
    var body: JSONValue?
    /// Further fields; edits need no `If-Match`, the phantom always means the current version.
    public var headers: [String: String] = [:]

    /// - Parameter body: JSON text; nil for none.
    public init(_ method: String, _ path: String, as person: String?, body: String? = nil) {
        self.person = person
        self.method = method
        self.path = path
        self.body = body.flatMap { try? JSONParser.parse(Array($0.utf8)) }
    }

    static func read(_ reader: inout SettingsReader) -> PhantomAct? {
        let person = reader.string("as", length: 1...64)
        let method = reader.string("method", length: 1...16)
        let path = reader.string("path")
        let body = reader.value("body")
        let headers = reader.texts("headers")
        guard let method, let path, path.hasPrefix("/v1/") else {
            reader.failMissing("path", or: "method", because: "must be a path of the API, and `method` must be given")
            return nil
        }
        var act = PhantomAct(method.uppercased(), path, as: person)
        act.body = body
        act.headers = headers
        return act
    }

    /// The act as a request.
    func request(device: String) throws(Problem) -> Request {
        var fields: [(name: String, value: String)] = [("Host", "phantom"), ("Larder-Device", device)]
        if let person { fields.append(("Authorization", "Bearer " + DeveloperToken.text(for: person))) }
        if body != nil { fields.append(("Content-Type", "application/json")) }
        if method == "PATCH" || method == "DELETE", headers["If-Match"] == nil { fields.append(("If-Match", "*")) }
        for header in headers.sorted(by: { $0.key < $1.key }) { fields.append((header.key, header.value)) }
        do { return try Request(Method(method), path, fields, body: body?.encoded ?? []) } catch {
            throw ProblemType.invalidParameter("The act makes no request: \(error.detail)")
        }
    }

    var json: JSONValue {
        .members([
            "as": person.map { .string($0) }, "method": .string(method), "path": .string(path), "body": body,
        ])
    }
}

/// What came of an act.
public struct PhantomResult: Sendable, Hashable {
    /// The reply's status.
    public let status: Int
    /// The reply's body.
    public let body: [UInt8]

    var json: JSONValue {
        .members([
            "status": .integer(Int64(status)),
            "body": (try? JSONParser.parse(body)) ?? .string(String(decoding: body, as: UTF8.self)),
        ])
    }
}

/// An act that waits for somebody's exchange: so that a conflict happens on every run, and not on the lucky ones.
public struct Phantom: Sendable, Hashable {
    /// When, of the exchange that it waits for, the act is done.
    public enum Moment: String, Sendable, Hashable, CaseIterable {
        /// The request has arrived, and nothing was done with it: between a pull and this push.
        case before
        /// It is done, and the reply has not left.
        case after
    }

    /// Names the phantom.
    public var id: String
    /// Whose exchange it waits for.
    public var match: FaultMatch
    /// When, of that exchange, it acts.
    public var moment: Moment
    /// How many matching exchanges it lets pass first.
    public var after: Int
    /// How often it acts at most.
    public var count: Int
    /// What it does, in this order.
    public var acts: [PhantomAct]

    /// - Parameter id: its name; empty to be given one.
    public init(
        id: String = "",
        _ acts: [PhantomAct],
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

/// The phantoms of a world that wait for their moment. Safe from any thread.
final class PhantomSet: Sendable {
    private struct Rule {
        let phantom: Phantom
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

    func add(_ phantom: Phantom) throws(Problem) -> Phantom {
        try state.withLock { state throws(Problem) in
            var phantom = phantom
            let isKnown = state.rules.contains { $0.phantom.id == phantom.id }
            guard isKnown || state.rules.count < Self.countMaximum else {
                throw ProblemType.limitReached(
                    "A world has at most \(Self.countMaximum) phantoms.",
                    limit: Self.countMaximum
                )
            }
            if phantom.id.isEmpty {
                repeat {
                    state.lastID += 1
                    phantom.id = "phantom-\(state.lastID)"
                } while state.rules.contains(where: { $0.phantom.id == phantom.id })
            }
            state.rules.removeAll { $0.phantom.id == phantom.id }
            state.rules.append(Rule(phantom: phantom, matcher: Matcher(phantom.match)))
            count.store(state.rules.count, ordering: .relaxed)
            return phantom
        }
    }

    @discardableResult func remove(_ id: String) -> Bool {
        state.withLock { state in
            let before = state.rules.count
            state.rules.removeAll { $0.phantom.id == id }
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

    var all: [Phantom] { state.withLock { $0.rules.map(\.phantom) } }

    /// The acts that are due at this moment of an exchange.
    func due(_ facts: ExchangeFacts, _ moment: Phantom.Moment) -> [PhantomAct] {
        guard !isEmpty else { return [] }
        return state.withLock { state in
            var acts: [PhantomAct] = []
            for index in state.rules.indices where state.rules[index].phantom.moment == moment {
                let rule = state.rules[index]
                guard rule.acted < rule.phantom.count, rule.matcher.matches(facts) else { continue }
                state.rules[index].seen += 1
                guard rule.seen >= rule.phantom.after else { continue }
                state.rules[index].acted += 1
                acts += rule.phantom.acts
            }
            return acts
        }
    }
}
