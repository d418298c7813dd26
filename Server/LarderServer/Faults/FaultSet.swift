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

    var generator: SeededGenerator { SeededGenerator(seed: seed) }

    var json: JSONValue {
        .members([
            "fault": .string(fault.id), "action": .string(fault.action.name), "stage": .string(fault.stage.rawValue),
            "ordinal": .integer(Int64(ordinal)),
        ])
    }
}

/// Counts the faults of all worlds that apply before a body is read. Read for every request. Safe from any thread.
final class HeadFaultCount: Sendable {
    private let count = Atomic<Int>(0)

    var isZero: Bool { count.load(ordering: .relaxed) == 0 }

    func add(_ difference: Int) { count.add(difference, ordering: .relaxed) }
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
    }

    private struct State {
        var rules: [String: Rule] = [:]
        /// Names in the order in which the faults were set: earlier faults apply first.
        var order: [String] = []
        /// Names by literal path, so that a thousand faults cost no more than those of one path.
        var byPath: [[UInt8]: [String]] = [:]
        var others: [String] = []
        /// Names of the faults of TLS handshakes.
        var handshakes: [String] = []
        var lastID = 0
    }

    static let countMaximum = 10_000
    private static let devicesMaximum = 10_000

    private let seed: UInt64
    private let state = Mutex(State())
    private let count = Atomic<Int>(0)
    private let headCount = Atomic<Int>(0)
    private let lagCount = Atomic<Int>(0)
    private let handshakeCount = Atomic<Int>(0)
    private let allHeads: HeadFaultCount

    init(seed: UInt64, allHeads: HeadFaultCount) {
        self.seed = seed
        self.allHeads = allHeads
    }

    var isEmpty: Bool { count.load(ordering: .relaxed) == 0 }

    /// Whether any fault applies before the body is read.
    var hasHeadFaults: Bool { headCount.load(ordering: .relaxed) > 0 }

    /// Whether any fault makes reads see an earlier state.
    var hasLag: Bool { lagCount.load(ordering: .relaxed) > 0 }

    /// Whether any fault applies to TLS handshakes.
    var hasHandshakeFaults: Bool { handshakeCount.load(ordering: .relaxed) > 0 }

    // MARK: Setting

    /// Adds faults, all or none; a fault replaces one with the same name.
    ///
    /// - Parameter replacesAll: whether all other faults are removed.
    /// - Returns: the faults with their names.
    func add(_ faults: [Fault], now: MonotonicTime, replacesAll: Bool = false) throws(Problem) -> [Fault] {
        try state.withLock { state throws(Problem) in
            let count = replacesAll ? faults.count : state.rules.count + faults.count { state.rules[$0.id] == nil }
            guard count <= Self.countMaximum else {
                throw ProblemType.limitReached(
                    "A world has at most \(Self.countMaximum) faults.",
                    limit: Self.countMaximum
                )
            }
            if replacesAll { state = State(lastID: state.lastID) }
            var named: [Fault] = []
            for var fault in faults {
                if fault.id.isEmpty {
                    repeat { state.lastID += 1 } while state.rules["fault-\(state.lastID)"] != nil
                    fault.id = "fault-\(state.lastID)"
                }
                remove(fault.id, &state)
                let matcher = Matcher(fault.match)
                let hash = ContentHash.hash64(Array(fault.id.utf8).span)
                state.rules[fault.id] = Rule(fault: fault, matcher: matcher, setAt: now, hash: hash)
                state.order.append(fault.id)
                if fault.stage == .handshake {
                    state.handshakes.append(fault.id)
                } else if let pattern = matcher.pattern, pattern.isLiteral {
                    state.byPath[Array(pattern.text.utf8), default: []].append(fault.id)
                } else {
                    state.others.append(fault.id)
                }
                named.append(fault)
            }
            publishCounts(state)
            return named
        }
    }

    @discardableResult func remove(_ id: String) -> Bool {
        state.withLock { state in
            defer { publishCounts(state) }
            return remove(id, &state)
        }
    }

    func removeAll() {
        state.withLock { state in
            state = State(lastID: state.lastID)
            publishCounts(state)
        }
    }

    @discardableResult private func remove(_ id: String, _ state: inout State) -> Bool {
        guard let rule = state.rules.removeValue(forKey: id) else { return false }
        state.order.removeAll { $0 == id }
        state.handshakes.removeAll { $0 == id }
        if let pattern = rule.matcher.pattern, pattern.isLiteral {
            let path = Array(pattern.text.utf8)
            state.byPath[path]?.removeAll { $0 == id }
            if state.byPath[path]?.isEmpty ?? false { state.byPath[path] = nil }
        } else {
            state.others.removeAll { $0 == id }
        }
        return true
    }

    private func publishCounts(_ state: State) {
        count.store(state.rules.count, ordering: .relaxed)
        let lags = state.rules.values.count { $0.fault.action.effect is FaultAction.Lag }
        lagCount.store(lags, ordering: .relaxed)
        handshakeCount.store(state.handshakes.count, ordering: .relaxed)
        let heads = state.rules.values.count { $0.fault.stage.precedesBody }
        allHeads.add(heads - headCount.exchange(heads, ordering: .relaxed))
    }

    /// The faults in the order in which they were set, each with the number of exchanges that it was applied to.
    var all: [(fault: Fault, applications: Int)] {
        state.withLock { state in state.order.compactMap { state.rules[$0] }.map { ($0.fault, $0.applicationCount) } }
    }

    // MARK: Deciding

    /// Whether any fault may match a path. Faults of other literal paths are not examined.
    func mayMatch(path: ArraySlice<UInt8>) -> Bool {
        guard !isEmpty else { return false }
        return state.withLock { state in !state.others.isEmpty || state.byPath[Array(path)] != nil }
    }

    /// Whether any fault replies to the method on the path, regardless of its other conditions.
    func answers(_ method: Method, _ path: ArraySlice<UInt8>) -> Bool {
        guard !isEmpty else { return false }
        return state.withLock { state in
            (state.others + (state.byPath[Array(path)] ?? [])).contains { id in
                guard let rule = state.rules[id], rule.fault.action.effect is CannedReply else { return false }
                return rule.matcher.names(method, path)
            }
        }
    }

    /// Which faults are evaluated.
    enum Part {
        /// Faults that apply before the body is read.
        case head
        /// Faults that apply later.
        case rest
        /// All faults, for a request without a body.
        case whole
    }

    /// The faults that apply to an exchange, earlier faults first.
    func decide(_ facts: ExchangeFacts, _ part: Part, now: MonotonicTime) -> [FaultDecision] {
        state.withLock { state in
            let path = Array(facts.request.path)
            var candidates = state.byPath[path] ?? []
            if candidates.isEmpty {
                candidates = state.others
            } else if !state.others.isEmpty {
                // Both lists are in the order of setting; the merged list must be too.
                let wanted = Set(candidates).union(state.others)
                candidates = state.order.filter { wanted.contains($0) }
            }
            var decisions: [FaultDecision] = []
            for id in candidates {
                guard let rule = state.rules[id], rule.matcher.matches(facts) else { continue }
                let stage = rule.fault.stage
                switch part {
                case .head: guard stage.precedesBody else { continue }
                case .rest: guard !stage.precedesBody else { continue }
                case .whole: guard stage != .requestBody else { continue }
                }
                if let decision = decide(id, facts.device, now, &state) { decisions.append(decision) }
            }
            return decisions
        }
    }

    /// The faults that apply to a TLS handshake, earlier faults first. A handshake has no device: the matching ones are counted for each
    /// host that clients name.
    func decide(handshakeFor host: String?, of peer: String, now: MonotonicTime) -> [FaultDecision] {
        state.withLock { state in
            state.handshakes.compactMap { id in
                guard state.rules[id]?.fault.match.matches(handshakeFor: host, of: peer) == true else { return nil }
                return decide(id, "host:" + (host?.lowercased() ?? ""), now, &state)
            }
        }
    }

    /// Counts a matching exchange or handshake of a device, and decides about it.
    private func decide(
        _ id: String,
        _ name: String,
        _ now: MonotonicTime,
        _ state: inout State
    ) -> FaultDecision? {
        // Taken out and put back, so that its counts have one owner and are never copied.
        guard var rule = state.rules.removeValue(forKey: id) else { return nil }
        defer { state.rules[id] = rule }
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
        return FaultDecision(fault: rule.fault, ordinal: ordinal, seed: mixer.next())
    }

    /// When the fault's current window began, on the world's clock.
    func windowStart(of id: String, now: MonotonicTime) -> MonotonicTime? {
        state.withLock { state in
            guard let rule = state.rules[id] else { return nil }
            let occurrence = rule.fault.occurrence
            guard let period = occurrence.roundNanoseconds else { return rule.setAt + occurrence.from }
            let rounds = (now - rule.setAt).nanosecondsSaturating / period
            return rule.setAt + .nanoseconds(rounds * period) + occurrence.from
        }
    }
}
