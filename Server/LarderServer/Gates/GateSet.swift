import LarderBackend
import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime
import Synchronization

/// A gate holds matching exchanges until they are released.
public struct Gate: Sendable, Hashable {
    /// The stage at which exchanges are held.
    public enum Stage: String, Sendable, Hashable, CaseIterable {
        /// Before the request is processed.
        case request
        /// After the commit, when the reply is ready.
        case reply
    }

    /// The gate's name.
    public var id: String
    /// Which exchanges are held.
    public var match: FaultMatch
    /// The stage at which they are held.
    public var stage: Stage
    /// The maximum number of held exchanges; later ones pass.
    public var count: Int?

    /// - Parameters:
    ///   - id: its name; empty to generate one.
    ///   - match: which exchanges are held.
    ///   - stage: the stage at which they are held.
    ///   - count: the maximum number of held exchanges; later ones pass.
    public init(id: String = "", when match: FaultMatch, stage: Stage = .reply, count: Int? = nil) {
        self.id = id
        self.match = match
        self.stage = stage
        self.count = count
    }

    static func read(_ reader: inout BodyReader) -> Gate {
        var match = FaultMatch()
        if var child = reader.child("match") {
            match = FaultMatch.read(&child)
            child.finish()
        }
        let gate = Gate(
            id: reader.string("id", length: 1...64) ?? "",
            when: match,
            stage: reader.choice("stage", Stage.self) ?? .reply,
            count: reader.integer("count", in: 1...1_000_000)
        )
        reader.finish()
        return gate
    }

    var json: JSONValue {
        .members([
            "id": .string(id), "match": match.json, "stage": .string(stage.rawValue),
            "count": count.map { .integer(Int64($0)) },
        ])
    }
}

/// An exchange that a gate holds.
public struct HeldExchange: Sendable, Hashable {
    /// The number of the held exchange, from 1 in the order of arrival.
    public let number: Int
    /// The gate's name.
    public let gate: String
    /// The request's method.
    public let method: String
    /// Path and query.
    public let target: String
    /// The caller's device.
    public let device: String

    var json: JSONValue {
        .members([
            "number": .integer(Int64(number)), "gate": .string(gate), "method": .string(method),
            "target": .string(Secrets.masked(target: target)), "device": .string(device),
        ])
    }
}

/// The gates of a world and the exchanges that they hold. Safe from any thread.
final class GateSet: Sendable {
    /// How a held exchange continues.
    enum Verdict: Sendable {
        case proceed
        case answer(CannedReply)
        case cut(FaultAction.ExchangeCut)
    }

    /// Called on the releasing thread with the name of the gate.
    typealias Resumption = @Sendable (_ gate: String, Verdict) -> Void

    private struct Rule {
        let gate: Gate
        let matcher: Matcher
        var heldEver = 0
    }

    private struct Held {
        let exchange: HeldExchange
        let resume: Resumption

        func resume(_ verdict: Verdict) { resume(exchange.gate, verdict) }
    }

    private struct State {
        var rules: [Rule] = []
        var held: [Held] = []
        var lastNumber = 0
        var lastID = 0
    }

    static let countMaximum = 1_000
    static let heldMaximum = 10_000

    private let state = Mutex(State())
    /// Told of each exchange that is held.
    let observers = Observers<HeldExchange>()
    private let count = Atomic<Int>(0)

    var isEmpty: Bool { count.load(ordering: .relaxed) == 0 }

    /// Adds a gate; it replaces one with the same name, whose held exchanges stay held.
    func add(_ gate: Gate) throws(Problem) -> Gate {
        try state.withLock { state throws(Problem) in
            var gate = gate
            let isKnown = state.rules.contains { $0.gate.id == gate.id }
            guard isKnown || state.rules.count < Self.countMaximum else {
                throw ProblemType.limitReached(
                    "A world has at most \(Self.countMaximum) gates.",
                    limit: Self.countMaximum
                )
            }
            if gate.id.isEmpty {
                repeat {
                    state.lastID += 1
                    gate.id = "gate-\(state.lastID)"
                } while state.rules.contains(where: { $0.gate.id == gate.id })
            }
            state.rules.removeAll { $0.gate.id == gate.id }
            state.rules.append(Rule(gate: gate, matcher: Matcher(gate.match)))
            count.store(state.rules.count, ordering: .relaxed)
            return gate
        }
    }

    /// Removes a gate and releases the exchanges that it holds.
    @discardableResult func remove(_ id: String) -> Bool {
        let found = state.withLock { state in
            let before = state.rules.count
            state.rules.removeAll { $0.gate.id == id }
            count.store(state.rules.count, ordering: .relaxed)
            return state.rules.count < before
        }
        _ = releaseAll(of: id)
        return found
    }

    func removeAll() {
        for gate in gates { remove(gate.id) }
    }

    var gates: [Gate] { state.withLock { $0.rules.map(\.gate) } }

    var held: [HeldExchange] { state.withLock { $0.held.map(\.exchange) } }

    /// Holds the exchange if a gate matches; then `resume` is called once, from any thread and possibly before this method
    /// returns.
    ///
    /// - Returns: the held exchange; nil if it is not held.
    func hold(_ facts: ExchangeFacts, _ stage: Gate.Stage, _ resume: @escaping Resumption) -> HeldExchange? {
        guard !isEmpty else { return nil }
        let held = state.withLock { state -> HeldExchange? in
            guard state.held.count < Self.heldMaximum else { return nil }
            let index = state.rules.firstIndex { rule in
                rule.gate.stage == stage && rule.heldEver < rule.gate.count ?? .max && rule.matcher.matches(facts)
            }
            guard let index else { return nil }
            state.rules[index].heldEver += 1
            state.lastNumber += 1
            let exchange = HeldExchange(
                number: state.lastNumber,
                gate: state.rules[index].gate.id,
                method: facts.request.method.rawValue,
                target: facts.request.targetText,
                device: facts.device
            )
            state.held.append(Held(exchange: exchange, resume: resume))
            return exchange
        }
        if let held { observers.tell(held) }
        return held
    }

    func isHolding(_ number: Int) -> Bool { state.withLock { $0.held.contains { $0.exchange.number == number } } }

    /// Releases one exchange; false if it is not held.
    @discardableResult func release(_ number: Int, _ verdict: Verdict = .proceed) -> Bool {
        release(verdict) { $0.exchange.number == number } > 0
    }

    /// Releases all exchanges of a gate, in the order of arrival.
    func releaseAll(of gate: String?) -> Int { release(.proceed) { gate == nil || $0.exchange.gate == gate } }

    private func release(_ verdict: Verdict, _ isWanted: (Held) -> Bool) -> Int {
        let items = state.withLock { state in
            defer { state.held.removeAll(where: isWanted) }
            return state.held.filter(isWanted)
        }
        for item in items { item.resume(verdict) }
        return items.count
    }
}
