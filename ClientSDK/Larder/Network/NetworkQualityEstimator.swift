public import LarderTime

/// What requests tell of the network, and the level that follows: pure, decided from samples and times alone.
///
/// Averages forget by half in `halfLife`. A level gets worse as soon as enough samples say so, and better only when they have
/// said so for `recoveryTime`, by other thresholds than those it fell by; a single reply ends being offline. Where nothing has
/// been heard for some half-lives, nothing is held against the network any more: who does not send learns nothing, and must not
/// be kept from sending by what was long ago.
public struct NetworkQualityEstimator: Sendable, Hashable {
    /// Where levels begin and end.
    public struct Thresholds: Sendable, Hashable {
        /// Mean latency from which on the network is constrained.
        public var slowLatency: Duration = .milliseconds(1_500)
        /// Mean latency below which it may be good again.
        public var goodLatency: Duration = .milliseconds(800)
        /// Bytes a second below which the network is constrained.
        public var slowThroughput: Double = 40_000
        /// Bytes a second above which it may be good again.
        public var goodThroughput: Double = 100_000
        /// The share of failed exchanges from which on the network is constrained.
        public var badFailureShare: Double = 0.3
        /// The share below which it may be good again.
        public var goodFailureShare: Double = 0.1
        /// How many exchanges (weighted by their age) it takes to judge.
        public var samplesMinimum: Double = 2.5
        /// How many exchanges in a row must not reach the server until the network counts as offline.
        public var unreachableInRow = 3
        /// In which time averages forget half.
        public var halfLife: Duration = .seconds(20)
        /// For how long everything must be good until the level rises.
        public var recoveryTime: Duration = .seconds(10)
        /// Transfers of fewer bytes say nothing of throughput.
        public var transferMinimum = 16_384
        /// While offline by experience, how long after the last failure one request may try again; doubled each time.
        public var probeInterval: Duration = .seconds(2)
        /// The most that this becomes.
        public var probeIntervalMaximum: Duration = .seconds(60)

        /// Thresholds for a phone.
        public init() {}
    }

    /// Present averages, for people to look at.
    public struct Quality: Sendable, Hashable {
        /// The mean time until the reply's head; nil while unknown.
        public var latency: Duration?
        /// The mean throughput in bytes a second; nil while unknown.
        public var bytesPerSecond: Double?
        /// The share of exchanges that failed, from 0 to 1; nil while unknown.
        public var failureShare: Double?
    }

    /// A mean whose older parts count for less.
    private struct Mean: Sendable, Hashable {
        var sum = 0.0
        var weight = 0.0

        mutating func add(_ value: Double) {
            sum += value
            weight += 1
        }

        mutating func forget(_ factor: Double) {
            sum *= factor
            weight *= factor
        }

        /// Nil where what is known is too old or too little.
        func value(minimumWeight: Double) -> Double? { weight >= minimumWeight ? sum / weight : nil }
    }

    /// Where levels begin and end.
    public let thresholds: Thresholds
    private var latency = Mean()
    private var throughput = Mean()
    private var failures = Mean()
    private var unreachable = 0
    private var updated: MonotonicTime?
    private var goodSince: MonotonicTime?
    private var decided: NetworkLevel = .good
    private var probes = 0
    /// When a request may be tried although the network counts as offline; nil while it does not.
    public private(set) var nextProbe: MonotonicTime?
    private var isProbing = false

    /// Nothing is known yet: the network is held for good.
    public init(_ thresholds: Thresholds = Thresholds()) { self.thresholds = thresholds }

    /// The level as of the last sample or look.
    public var level: NetworkLevel { decided }

    /// Takes a sample in; gives the level that follows.
    @discardableResult
    public mutating func add(_ sample: NetworkSample, at now: MonotonicTime) -> NetworkLevel {
        forget(until: now)
        failures.add(sample.outcome == .reply ? 0 : 1)
        switch sample.outcome {
        case .reply:
            unreachable = 0
            probes = 0
            nextProbe = nil
            isProbing = false
            if let time = sample.latency { latency.add(max(0, time.seconds)) }
            if let time = sample.transfer, sample.bytes >= thresholds.transferMinimum, time > .zero {
                throughput.add(Double(sample.bytes) / time.seconds)
            }
            if decided == .offline {
                // It works again; how well is to be seen. What failed meanwhile is no measure of that.
                decided = .constrained
                failures = Mean()
                goodSince = nil
            }
        case .unreachable:
            unreachable += 1
            if unreachable >= thresholds.unreachableInRow {
                decided = .offline
                goodSince = nil
                noteFailedProbe(now)
            }
        case .broken:
            // The server may have been reached: it breaks no row of those that did not, and makes none.
            if decided == .offline { noteFailedProbe(now) }
        }
        return look(at: now)
    }

    /// Lets time pass; gives the level that follows.
    @discardableResult
    public mutating func look(at now: MonotonicTime) -> NetworkLevel {
        forget(until: now)
        guard decided != .offline else { return .offline }
        if isBad {
            decided = .constrained
            goodSince = nil
        } else if decided == .constrained {
            if !isGood {
                goodSince = nil
            } else if let since = goodSince {
                if now - since >= thresholds.recoveryTime { decided = .good }
            } else {
                goodSince = now
            }
        }
        return decided
    }

    /// Forgets everything: the network is another now.
    public mutating func reset() { self = NetworkQualityEstimator(thresholds) }

    /// Whether a request may be tried although the network counts as offline by experience: one, from time to time.
    ///
    /// The next one is let through an interval later, which doubles with every one that fails.
    public mutating func takeProbe(at now: MonotonicTime) -> Bool {
        guard decided == .offline else { return true }
        guard let next = nextProbe, now >= next else { return false }
        isProbing = true
        nextProbe = now + probeInterval
        return true
    }

    /// When `look` may decide otherwise without any sample, or a probe is let through; nil if never.
    public var nextChange: MonotonicTime? {
        switch decided {
        case .offline: return nextProbe
        case .constrained:
            if let goodSince { return goodSince + thresholds.recoveryTime }
            // Averages must be forgotten first, or improve by samples.
            return updated.map { $0 + thresholds.halfLife }
        case .good: return nil
        }
    }

    /// Present averages.
    public var quality: Quality {
        Quality(
            latency: latency.value(minimumWeight: 0.5).map { .seconds($0) },
            bytesPerSecond: throughput.value(minimumWeight: 0.5),
            failureShare: failures.value(minimumWeight: 0.5)
        )
    }

    private var isBad: Bool {
        let minimum = thresholds.samplesMinimum
        if let share = failures.value(minimumWeight: minimum), share >= thresholds.badFailureShare { return true }
        if let time = latency.value(minimumWeight: minimum), time >= thresholds.slowLatency.seconds { return true }
        // Large transfers are rare: fewer of them suffice.
        if let rate = throughput.value(minimumWeight: min(minimum, 1.5)), rate < thresholds.slowThroughput {
            return true
        }
        return false
    }

    private var isGood: Bool {
        if let share = failures.value(minimumWeight: 0.5), share >= thresholds.goodFailureShare { return false }
        if let time = latency.value(minimumWeight: 0.5), time >= thresholds.goodLatency.seconds { return false }
        if let rate = throughput.value(minimumWeight: 0.5), rate < thresholds.goodThroughput { return false }
        return true
    }

    private var probeInterval: Duration {
        min(thresholds.probeInterval * (1 << min(probes, 20)), thresholds.probeIntervalMaximum)
    }

    /// The first failure and that of every probe make the next wait longer; those of requests that were under way do not.
    private mutating func noteFailedProbe(_ now: MonotonicTime) {
        guard isProbing || nextProbe == nil else { return }
        isProbing = false
        nextProbe = now + probeInterval
        probes += 1
    }

    private mutating func forget(until now: MonotonicTime) {
        guard let last = updated else {
            updated = now
            return
        }
        guard now > last else { return }
        updated = now
        var factor = 1.0
        var left = (now - last).seconds / max(thresholds.halfLife.seconds, 1e-9)
        // 2 to the power of −left, without a library: whole halvings, and a series for the rest.
        if left > 64 {
            factor = 0
        } else {
            while left >= 1 {
                factor /= 2
                left -= 1
            }
            let x = -left * 0.693_147_180_559_945_3
            factor *= 1 + x * (1 + x / 2 * (1 + x / 3 * (1 + x / 4 * (1 + x / 5 * (1 + x / 6)))))
        }
        latency.forget(factor)
        throughput.forget(factor)
        failures.forget(factor)
    }
}

extension Duration {
    /// The duration in seconds, as near as a `Double` comes.
    var seconds: Double { Double(components.seconds) + Double(components.attoseconds) * 1e-18 }
}
