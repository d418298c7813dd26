import LarderBackend
import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime
import Synchronization

/// The application of one fault to one exchange.
struct FaultDecision: Sendable, Hashable {
    let fault: Fault
    /// The 1-based index of this exchange among the device's matching exchanges.
    let ordinal: Int
    /// The seed of all random choices.
    let seed: UInt64
    /// When the fault's current window began, on the world's clock.
    let windowStart: MonotonicTime

    var generator: SeededGenerator { SeededGenerator(seed: seed) }

    var json: JSONValue {
        .members([
            "fault": .string(fault.id), "action": .string(fault.action.name), "stage": .string(fault.stage.rawValue),
            "ordinal": .integer(Int64(ordinal)),
        ])
    }
}

/// The faults of a world and their counters per device.
///
/// Every decision is a function of the world's seed, the fault, the device and the ordinal, and of nothing else: not of
/// threads, other devices or elapsed time. Safe from any thread.
final class FaultSet: Sendable {
    private struct Rule {
        let fault: Fault
        let matcher: Matcher
        let setAt: MonotonicTime
        /// A hash of the fault's name.
        let hash: UInt64
        var ordinals: [String: Int] = [:]
        var applications: [String: Int] = [:]
        var applicationCount = 0

        init(_ fault: Fault, setAt: MonotonicTime) {
            self.fault = fault
            self.setAt = setAt
            matcher = Matcher(fault.match)
            hash = ContentHash.hash64(Array(fault.id.utf8).span)
        }
    }

    private struct State {
        /// In the order in which the faults were set: earlier faults apply first.
        var rules: [Rule] = []
        var lastID = 0
    }

    static let countMaximum = 10_000
    private static let devicesMaximum = 10_000

    private let seed: UInt64
    private let state = Mutex(State())
    private let count = Atomic<Int>(0)

    init(seed: UInt64) { self.seed = seed }

    var isEmpty: Bool { count.load(ordering: .relaxed) == 0 }

    /// Whether any fault applies before the body is read.
    var hasHeadFaults: Bool { contains { $0.fault.stage.precedesBody } }

    /// Whether any fault makes reads see an earlier state.
    var hasLag: Bool { contains { $0.fault.action.effect is FaultAction.Lag } }

    /// Whether any fault applies to TLS handshakes.
    var hasHandshakeFaults: Bool { contains { $0.fault.stage == .handshake } }

    private func contains(_ isWanted: (Rule) -> Bool) -> Bool {
        !isEmpty && state.withLock { $0.rules.contains(where: isWanted) }
    }

    // MARK: Setting

    /// Adds faults, all or none; a fault replaces one with the same name.
    ///
    /// - Parameter replacesAll: whether all other faults are removed.
    /// - Returns: the faults with their names.
    func add(_ faults: [Fault], now: MonotonicTime, replacesAll: Bool = false) throws(Problem) -> [Fault] {
        try change { state throws(Problem) in
            var next = State(rules: replacesAll ? [] : state.rules, lastID: state.lastID)
            var names = Set(next.rules.map(\.fault.id))
            var named: [Fault] = []
            for var fault in faults {
                if fault.id.isEmpty {
                    repeat {
                        next.lastID += 1
                        fault.id = "fault-\(next.lastID)"
                    } while names.contains(fault.id)
                }
                if !names.insert(fault.id).inserted { next.rules.removeAll { $0.fault.id == fault.id } }
                next.rules.append(Rule(fault, setAt: now))
                named.append(fault)
            }
            guard next.rules.count <= Self.countMaximum else {
                throw ProblemType.limitReached(
                    "A world has at most \(Self.countMaximum) faults.",
                    limit: Self.countMaximum
                )
            }
            state = next
            return named
        }
    }

    @discardableResult func remove(_ id: String) -> Bool {
        change { state in
            let before = state.rules.count
            state.rules.removeAll { $0.fault.id == id }
            return state.rules.count < before
        }
    }

    func removeAll() { change { $0.rules = [] } }

    private func change<Result, Failure>(
        _ body: (inout State) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try state.withLock { state throws(Failure) in
            defer { count.store(state.rules.count, ordering: .relaxed) }
            return try body(&state)
        }
    }

    /// The faults in the order in which they were set, each with the number of exchanges that it was applied to.
    var all: [(fault: Fault, applications: Int)] { state.withLock { $0.rules.map { ($0.fault, $0.applicationCount) } } }

    // MARK: Deciding

    /// Whether any fault may match a path.
    func mayMatch(path: ArraySlice<UInt8>) -> Bool { contains { $0.matcher.pattern?.matches(path) ?? true } }

    /// Whether any fault replies to the method on the path, regardless of its other conditions.
    func answers(_ method: Method, _ path: ArraySlice<UInt8>) -> Bool {
        contains { $0.fault.action.effect is CannedReply && $0.matcher.names(method, path) }
    }

    /// The faults that apply to an exchange, earlier faults first.
    ///
    /// - Parameter isWanted: which stages are decided.
    func decide(_ facts: ExchangeFacts, now: MonotonicTime, at isWanted: (Fault.Stage) -> Bool) -> [FaultDecision] {
        decide(for: facts.device, now: now) { rule in
            rule.fault.stage != .handshake && isWanted(rule.fault.stage) && rule.matcher.matches(facts)
        }
    }

    /// The faults that apply to a TLS handshake, earlier faults first. A handshake has no device: the matching ones are counted for each
    /// host that clients name.
    func decide(handshakeFor host: String?, of peer: String, now: MonotonicTime) -> [FaultDecision] {
        decide(for: "host:" + (host?.lowercased() ?? ""), now: now) { rule in
            rule.fault.stage == .handshake && rule.fault.match.matches(handshakeFor: host, of: peer)
        }
    }

    private func decide(for name: String, now: MonotonicTime, _ matches: (Rule) -> Bool) -> [FaultDecision] {
        guard !isEmpty else { return [] }
        return state.withLock { state in
            state.rules.indices.compactMap { index in
                matches(state.rules[index]) ? decide(&state.rules[index], name, now) : nil
            }
        }
    }

    /// Counts a matching exchange or handshake of a device, and decides about it.
    private func decide(_ rule: inout Rule, _ name: String, _ now: MonotonicTime) -> FaultDecision? {
        let occurrence = rule.fault.occurrence
        guard occurrence.probability > 0 else { return nil }
        var age = now - rule.setAt
        if let lifetime = rule.fault.lifetime, age >= lifetime { return nil }
        if let period = occurrence.roundNanoseconds { age = .nanoseconds(age.nanosecondsSaturating % period) }
        guard age >= occurrence.from, occurrence.until.map({ age < $0 }) ?? true else { return nil }
        // Beyond the bound devices share one count, so that memory stays bounded.
        let device =
            rule.ordinals[name] != nil || rule.ordinals.count < Self.devicesMaximum ? name : "others"
        let ordinal = (rule.ordinals[device] ?? 0) + 1
        rule.ordinals[device] = ordinal
        guard ordinal > occurrence.after, (ordinal - occurrence.after - 1) % occurrence.every == 0 else { return nil }
        if let count = occurrence.count, rule.applications[device] ?? 0 >= count { return nil }
        let deviceHash = ContentHash.hash64(Array(device.utf8).span, seed: rule.hash)
        var mixer = SeededGenerator(seed: seed ^ deviceHash ^ (UInt64(ordinal) &* 0x9E37_79B9_7F4A_7C15))
        let drawn = mixer.unit()
        guard occurrence.probability >= 1 || drawn < occurrence.probability else { return nil }
        rule.applications[device, default: 0] += 1
        rule.applicationCount += 1
        return FaultDecision(
            fault: rule.fault,
            ordinal: ordinal,
            seed: mixer.next(),
            windowStart: now + (occurrence.from - age)
        )
    }
}
