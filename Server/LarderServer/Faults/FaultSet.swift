import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime

/// The application of one fault to one exchange.
struct FaultDecision: Sendable, Hashable {
    let fault: Fault
    /// Whose count it is: the device of the exchange, or the host of the handshake.
    let device: String
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

extension Fault: NamedRule {
    static var noun: String { "fault" }
    static var countMaximum: Int { 10_000 }
}

/// The counters of a fault per device, and what its decisions follow from.
struct FaultCounts: Sendable {
    let setAt: MonotonicTime
    /// That of the world.
    let seed: UInt64
    /// A hash of the fault's name.
    let hash: UInt64
    var ordinals: [String: Int] = [:]
    var applications: [String: Int] = [:]
    var applicationCount = 0
    private static let devicesMaximum = 10_000

    /// Counts a matching exchange or handshake of a device, and decides about it.
    ///
    /// - Parameter canAct: whether the exchange would meet the fault, whose window began at a time.
    mutating func decide(
        _ fault: Fault,
        _ name: String,
        _ now: MonotonicTime,
        canAct: (_ windowStart: MonotonicTime) -> Bool
    ) -> FaultDecision? {
        let occurrence = fault.occurrence
        guard occurrence.probability > 0 else { return nil }
        var age = now - setAt
        if let period = occurrence.period?.nanosecondsSaturating, period > 0 {
            age = .nanoseconds(age.nanosecondsSaturating % period)
        }
        guard age >= occurrence.from, occurrence.until.map({ age < $0 }) ?? true else { return nil }
        // Beyond the bound devices share one count, so that memory stays bounded.
        let device = ordinals[name] != nil || ordinals.count < Self.devicesMaximum ? name : "others"
        let ordinal = (ordinals[device] ?? 0) + 1
        ordinals[device] = ordinal
        guard ordinal > occurrence.after, (ordinal - occurrence.after - 1) % occurrence.every == 0 else { return nil }
        if let count = occurrence.count, applications[device] ?? 0 >= count { return nil }
        let deviceHash = ContentHash.hash64(Array(device.utf8).span, seed: hash)
        var mixer = SeededGenerator(seed: seed ^ deviceHash ^ (UInt64(ordinal) &* 0x9E37_79B9_7F4A_7C15))
        let drawn = mixer.unit()
        guard occurrence.probability >= 1 || drawn < occurrence.probability else { return nil }
        guard canAct(now + (occurrence.from - age)) else { return nil }
        applications[device, default: 0] += 1
        applicationCount += 1
        return FaultDecision(fault: fault, device: device, ordinal: ordinal, seed: mixer.next())
    }
}

/// The faults of a world. Earlier faults apply first.
///
/// Every decision is a function of the world's seed, the fault, the device and the ordinal, and of nothing else: not of
/// threads, other devices or elapsed time. A fault that cannot act, because another one has ended the exchange before, is not applied.
typealias FaultSet = RuleSet<Fault, FaultCounts>

extension FaultSet {
    /// Whether any fault makes reads see an earlier state.
    var hasLag: Bool { contains { $0.action.effect is FaultAction.Lag } }

    /// Whether any fault applies to TLS handshakes.
    var hasHandshakeFaults: Bool { contains { $0.stage == .handshake } }

    private func contains(_ isWanted: (Fault) -> Bool) -> Bool {
        withEntries { $0.contains { isWanted($0.rule) } } ?? false
    }

    // MARK: Setting

    /// As `RuleSet.add`.
    func add(_ faults: [Fault], now: MonotonicTime, seed: UInt64, replacesAll: Bool) throws(Problem) -> [Fault] {
        try add(faults, replacesAll: replacesAll) { fault in
            FaultCounts(setAt: now, seed: seed, hash: ContentHash.hash64(Array(fault.id.utf8).span))
        }
    }

    /// The faults in the order in which they were set, each with the number of exchanges that it was applied to.
    var applied: [(fault: Fault, applications: Int)] {
        withEntries { $0.map { ($0.rule, $0.counts.applicationCount) } } ?? []
    }

    // MARK: Deciding

    /// Whether any fault may match a path.
    func mayMatch(path: ArraySlice<UInt8>) -> Bool {
        withEntries { $0.contains { $0.matcher.pattern?.matches(path) ?? true } } ?? false
    }

    /// Whether any fault replies to the method on the path, regardless of its other conditions.
    func answers(_ method: Method, _ path: ArraySlice<UInt8>) -> Bool {
        withEntries { $0.contains { $0.rule.action.effect is CannedReply && $0.matcher.names(method, path) } }
            ?? false
    }

    /// The faults that apply to an exchange, in the order in which they act: by stage, and at one stage earlier faults first.
    ///
    /// - Parameters:
    ///   - decided: the faults that were decided when the head of the request had arrived.
    ///   - isWanted: which stages are decided.
    func decide(
        _ facts: ExchangeFacts,
        _ owner: WorldExchange,
        after decided: [FaultDecision] = [],
        at isWanted: (Fault.Stage) -> Bool
    ) -> [FaultDecision] {
        let now = owner.world.clock.uptime
        return decide(for: facts.device, owner.connection.since, now: now, after: decided) { fault, matcher in
            fault.stage != .handshake && isWanted(fault.stage) && matcher.matches(facts)
                && fault.action.effect.concerns(facts.request)
        }
    }

    /// The faults that apply to a TLS handshake, earlier faults first. A handshake has no device: the matching ones are counted for each
    /// host that clients name.
    func decide(handshakeFor host: String?, of peer: String, now: MonotonicTime) -> [FaultDecision] {
        decide(for: "host:" + (host?.lowercased() ?? ""), now: now) { fault, _ in
            fault.stage == .handshake && fault.match.matches(handshakeFor: host, of: peer)
        }
    }

    private func decide(
        for name: String,
        _ connectedAt: MonotonicTime? = nil,
        now: MonotonicTime,
        after decided: [FaultDecision] = [],
        _ matches: (Fault, Matcher) -> Bool
    ) -> [FaultDecision] {
        withEntries { entries in
            var decisions: [FaultDecision] = []
            let matching = entries.indices.filter { matches(entries[$0].rule, entries[$0].matcher) }
                .map { (index: $0, place: entries[$0].rule.place) }
            for (index, _) in matching.sorted(by: { ($0.place, $0.index) < ($1.place, $1.index) }) {
                let fault = entries[index].rule
                let decision = entries[index].counts.decide(fault, name, now) { windowStart in
                    // A connection is stale if it is older than the window.
                    if fault.action.effect is StaleConnections, connectedAt.map({ $0 >= windowStart }) ?? true {
                        return false
                    }
                    return !(decided + decisions).contains { $0.fault.overtakes(fault) }
                }
                if let decision { decisions.append(decision) }
            }
            return decisions
        } ?? []
    }

    /// Does not count a decision that has changed nothing as an application.
    func withdraw(_ decision: FaultDecision) {
        _ = withEntries { entries in
            // Another fault may have its name since.
            guard let index = entries.firstIndex(where: { $0.rule.id == decision.fault.id }),
                let count = entries[index].counts.applications[decision.device], count > 0
            else { return }
            entries[index].counts.applications[decision.device] = count - 1
            entries[index].counts.applicationCount -= 1
        }
    }
}
