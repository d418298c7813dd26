import LarderEvents
import LarderTime

/// Decides the memory limits from signals and times alone.
///
/// Stricter limits apply at once, recovery takes steps: pressure must have been lower for the quiet time, and each step must have
/// lasted, before the next. Pressure during a recovery restarts it with doubled times.
struct MemoryMachine: Sendable, Hashable {
    private enum Stage: Sendable, Hashable {
        case normal(since: MonotonicTime?)
        case pressed(MemoryLevel)
        case recovering(step: Int, since: MonotonicTime)
    }

    let policy: MemoryPolicy
    private var stage = Stage.normal(since: nil)
    /// The last reported level.
    private(set) var reported = MemoryLevel.normal
    /// Since when the reported level is lower than the one acted upon.
    private var lessSince: MonotonicTime?
    /// Since when the reported level is normal.
    private var normalSince: MonotonicTime?
    private(set) var doublings = 0

    init(_ policy: MemoryPolicy) { self.policy = policy }

    /// The level acted upon; `.normal` while recovering.
    var level: MemoryLevel {
        if case .pressed(let level) = stage { return level }
        return .normal
    }

    /// The limits now.
    var limits: MemoryLimits {
        switch stage {
        case .normal: return .normal
        case .pressed(let level): return policy[level]
        case .recovering(let step, _):
            var limits = policy.recovery[step].limits
            limits.recoveryStep = step + 1
            return limits
        }
    }

    /// Notes a reported level.
    mutating func signal(_ level: MemoryLevel, at now: MonotonicTime) {
        look(at: now)
        if level > .normal { normalSince = nil } else if reported > .normal { normalSince = now }
        reported = level
        switch stage {
        case .normal, .recovering:
            guard level > .normal else { return }
            if case .recovering = stage { doublings = min(doublings + 1, policy.doublingsMaximum) }
            stage = .pressed(level)
            lessSince = nil
        case .pressed(let old):
            if level >= old {
                stage = .pressed(level)
                lessSince = nil
            } else if lessSince == nil {
                lessSince = now
            }
        }
    }

    /// Takes the steps that are due.
    mutating func look(at now: MonotonicTime) {
        // A late look takes all steps that are due, each at its own time.
        while let due = nextChange, now >= due { advance(at: due) }
    }

    /// When the next step is due; nil if there is none.
    var nextChange: MonotonicTime? {
        switch stage {
        case .normal(let since): doublings > 0 ? since.map { $0 + recoveryTime } : nil
        case .pressed: lessSince.map { $0 + policy.quietTime * factor }
        case .recovering(let step, let since): since + policy.recovery[step].duration * factor
        }
    }

    private var factor: Int { 1 << doublings }

    private var recoveryTime: Duration { policy.recovery.reduce(policy.quietTime) { $0 + $1.duration } }

    private mutating func advance(at time: MonotonicTime) {
        switch stage {
        case .normal: doublings = 0
        case .pressed:
            let since = lessSince
            lessSince = nil
            if reported > .normal {
                stage = .pressed(reported)
            } else if let since, let normal = normalSince, normal > since {
                // A lower pressure came in between: its quiet time is not over yet.
                stage = .pressed(.warning)
                lessSince = normal
            } else {
                begin(step: 0, at: time)
            }
        case .recovering(let step, _): begin(step: step + 1, at: time)
        }
    }

    private mutating func begin(step: Int, at time: MonotonicTime) {
        stage = policy.recovery.indices.contains(step) ? .recovering(step: step, since: time) : .normal(since: time)
    }
}
