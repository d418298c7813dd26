import Glibc
import LarderEvents
import LarderTime

/// Derives the level of the network from measurements of requests: pure, decided from samples and times alone.
///
/// Averages decay by half in `halfLife`. A level gets worse as soon as enough samples show it, and better only after they have been
/// good for `recoveryTime`, by other thresholds; a single response ends being offline. Without samples for some half-lives the
/// level rises: a client that does not send learns nothing, and must not be kept from sending by old measurements.
struct NetworkQualityEstimator: Sendable, Hashable {
    /// A decaying mean.
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

        /// Nil if there are too few or only old samples.
        func value(minimumWeight: Double) -> Double? { weight >= minimumWeight ? sum / weight : nil }
    }

    private typealias Thresholds = NetworkMonitor.Thresholds

    private var latency = Mean()
    private var throughput = Mean()
    private var failures = Mean()
    private var unreachable = 0
    private var updated: MonotonicTime?
    private var goodSince: MonotonicTime?
    private var decided: NetworkLevel = .good
    private var probes = 0
    /// When a request may be tried although the network counts as offline; nil while it is not offline.
    private(set) var nextProbe: MonotonicTime?
    private var isProbing = false
    /// With the number of probe intervals so far, the source of their jitter: it spreads the probes of many clients.
    private let seed: UInt64
    private var intervals: UInt64 = 0

    /// Without samples the level is good.
    ///
    /// - Parameter seed: decides the jitter of probes.
    init(seed: UInt64 = 0) { self.seed = seed }

    /// The level after the last sample or look.
    var level: NetworkLevel { decided }

    /// Adds a sample and returns the new level.
    @discardableResult
    mutating func add(_ sample: NetworkSample, at now: MonotonicTime) -> NetworkLevel {
        forget(until: now)
        failures.add(sample.outcome == .reply ? 0 : 1)
        switch sample.outcome {
        case .reply:
            unreachable = 0
            probes = 0
            nextProbe = nil
            isProbing = false
            if let time = sample.latency { latency.add(max(0, time.seconds)) }
            if let time = sample.transfer, sample.bytes >= Thresholds.transferMinimum, time > .zero {
                throughput.add(Double(sample.bytes) / time.seconds)
            }
            if decided == .offline {
                // Reachable again, of unknown quality. The failures meanwhile do not count.
                decided = .constrained
                failures = Mean()
                goodSince = nil
            }
        case .unreachable:
            unreachable += 1
            if unreachable >= Thresholds.unreachableInRow {
                decided = .offline
                goodSince = nil
                noteFailedProbe(now)
            }
        case .broken:
            // The server may have been reached: it neither ends nor extends a row of unreachable results.
            if decided == .offline { noteFailedProbe(now) }
        }
        return look(at: now)
    }

    /// Decides anew at a later time; returns the level.
    @discardableResult
    mutating func look(at now: MonotonicTime) -> NetworkLevel {
        forget(until: now)
        guard decided != .offline else { return .offline }
        if isBad {
            decided = .constrained
            goodSince = nil
        } else if decided == .constrained {
            if !isGood {
                goodSince = nil
            } else if let since = goodSince {
                if now - since >= Thresholds.recoveryTime { decided = .good }
            } else {
                goodSince = now
            }
        }
        return decided
    }

    /// Forgets all samples, because the network has changed.
    mutating func reset() {
        let intervals = intervals
        self = NetworkQualityEstimator(seed: seed)
        self.intervals = intervals
    }

    /// Whether one request may be tried although the network counts as offline.
    ///
    /// The interval to the next one doubles with each failure.
    mutating func takeProbe(at now: MonotonicTime) -> Bool {
        guard decided == .offline else { return true }
        guard let next = nextProbe, now >= next else { return false }
        isProbing = true
        nextProbe = now + makeProbeInterval()
        return true
    }

    /// When `look` may decide differently without a sample; nil if never.
    var nextChange: MonotonicTime? {
        switch decided {
        case .constrained:
            if let goodSince { return goodSince + Thresholds.recoveryTime }
            // Averages must decay first, or improve with new samples.
            return updated.map { $0 + Thresholds.halfLife }
        case .good, .offline: return nil
        }
    }

    /// The current averages.
    var quality: NetworkMonitor.Quality {
        NetworkMonitor.Quality(
            latency: latency.value(minimumWeight: 0.5).map { .seconds($0) },
            bytesPerSecond: throughput.value(minimumWeight: 0.5),
            failureShare: failures.value(minimumWeight: 0.5)
        )
    }

    private var isBad: Bool {
        let minimum = Thresholds.samplesMinimum
        if let share = failures.value(minimumWeight: minimum), share >= Thresholds.badFailureShare { return true }
        if let time = latency.value(minimumWeight: minimum), time >= Thresholds.slowLatency.seconds { return true }
        // Large transfers are rare: fewer of them suffice.
        if let rate = throughput.value(minimumWeight: min(minimum, 1.5)), rate < Thresholds.slowThroughput {
            return true
        }
        return false
    }

    private var isGood: Bool {
        if let share = failures.value(minimumWeight: 0.5), share >= Thresholds.goodFailureShare { return false }
        if let time = latency.value(minimumWeight: 0.5), time >= Thresholds.goodLatency.seconds { return false }
        if let rate = throughput.value(minimumWeight: 0.5), rate < Thresholds.goodThroughput { return false }
        return true
    }

    private mutating func makeProbeInterval() -> Duration {
        let longest = min(Thresholds.probeInterval * (1 << min(probes, 20)), Thresholds.probeIntervalMaximum)
        intervals += 1
        var random = SeededGenerator(seed: seed &+ intervals)
        return longest - longest * (0.25 * random.unit())
    }

    /// The first failure and that of each probe extend the next delay; failures of other requests do not.
    private mutating func noteFailedProbe(_ now: MonotonicTime) {
        guard isProbing || nextProbe == nil else { return }
        isProbing = false
        nextProbe = now + makeProbeInterval()
        probes += 1
    }

    private mutating func forget(until now: MonotonicTime) {
        guard let last = updated else {
            updated = now
            return
        }
        guard now > last else { return }
        updated = now
        let factor = exp2(-(now - last).seconds / max(Thresholds.halfLife.seconds, 1e-9))
        latency.forget(factor)
        throughput.forget(factor)
        failures.forget(factor)
    }
}
