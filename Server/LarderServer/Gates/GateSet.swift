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

    static func read(_ reader: BodyReader) -> Gate {
        Gate(
            id: reader.string("id", length: 1...64) ?? "",
            when: reader.child("match").map(FaultMatch.read) ?? FaultMatch(),
            stage: reader.choice("stage", Stage.self) ?? .reply,
            count: reader.integer("count", in: 1...1_000_000)
        )
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

extension Gate: NamedRule {
    static var noun: String { "gate" }
    static var countMaximum: Int { 1_000 }
}

/// The gates of a world and the exchanges that they hold. Safe from any thread.
final class GateSet: Sendable {
    /// Called on the releasing thread with the name of the gate, and with how the exchange ends; nil: it goes on.
    typealias Resumption = @Sendable (_ gate: String, FaultEnding?) -> Void

    private struct State {
        var held: [(exchange: HeldExchange, resume: Resumption)] = []
        var lastNumber = 0
    }

    static let heldMaximum = 10_000

    /// Each with the number of exchanges that it has held.
    private let rules = RuleSet<Gate, Int>()
    /// Used inside of the lock of the rules: a gate that is removed holds nothing afterwards.
    private let state = Mutex(State())
    /// Told of each exchange that is held.
    let observers = Observers<HeldExchange>()

    var isEmpty: Bool { rules.isEmpty }

    var gates: [Gate] { rules.all }

    var held: [HeldExchange] { state.withLock { $0.held.map(\.exchange) } }

    /// Adds a gate; it replaces one with the same name, whose held exchanges stay held.
    func add(_ gate: Gate) throws(Problem) -> Gate { try rules.add([gate]) { _ in 0 }[0] }

    /// Removes a gate and releases the exchanges that it holds.
    @discardableResult func remove(_ id: String) -> Bool {
        let found = rules.remove(id)
        _ = releaseAll(of: id)
        return found
    }

    func removeAll() {
        for gate in gates { remove(gate.id) }
    }

    /// Holds the exchange if a gate matches; then `resume` is called once, from any thread and possibly before this method
    /// returns.
    ///
    /// - Returns: the held exchange; nil if it is not held.
    func hold(_ facts: ExchangeFacts, _ stage: Gate.Stage, _ resume: @escaping Resumption) -> HeldExchange? {
        let held =
            rules.withEntries { entries -> HeldExchange? in
                let index = entries.firstIndex {
                    $0.rule.stage == stage && $0.counts < $0.rule.count ?? .max && $0.matcher.matches(facts)
                }
                guard let index else { return nil }
                return state.withLock { state in
                    guard state.held.count < Self.heldMaximum else { return nil }
                    entries[index].counts += 1
                    state.lastNumber += 1
                    let exchange = HeldExchange(
                        number: state.lastNumber,
                        gate: entries[index].rule.id,
                        method: facts.request.method.rawValue,
                        target: facts.request.targetText,
                        device: facts.device
                    )
                    state.held.append((exchange, resume))
                    return exchange
                }
            } ?? nil
        if let held { observers.tell(held) }
        return held
    }

    func isHolding(_ number: Int) -> Bool { state.withLock { $0.held.contains { $0.exchange.number == number } } }

    /// Releases one exchange; false if it is not held.
    @discardableResult func release(_ number: Int, _ ending: FaultEnding? = nil) -> Bool {
        release(ending) { $0.number == number } > 0
    }

    /// Releases all exchanges of a gate, in the order of arrival.
    func releaseAll(of gate: String?) -> Int { release(nil) { gate == nil || $0.gate == gate } }

    private func release(_ ending: FaultEnding?, _ isWanted: (HeldExchange) -> Bool) -> Int {
        let items = state.withLock { state in
            defer { state.held.removeAll { isWanted($0.exchange) } }
            return state.held.filter { isWanted($0.exchange) }
        }
        for item in items { item.resume(item.exchange.gate, ending) }
        return items.count
    }
}
