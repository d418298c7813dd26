import LarderTime

/// Decides from signals and times alone what is to be done about memory.
///
/// Worse comes at once, better in steps: pressure must have been less for the quiet time, and each step of the recovery must have
/// lasted, before the next. Pressure during a recovery begins anew, with times that are twice as long.
struct MemoryMachine: Sendable, Hashable {
    private enum Stage: Sendable, Hashable {
        case normal(since: MonotonicTime?)
        case pressed(MemoryLevel)
        case recovering(step: Int, since: MonotonicTime)
    }

    let policy: MemoryPolicy
    private var stage = Stage.normal(since: nil)
    /// What the source said last.
    private(set) var told = MemoryLevel.normal
    /// Since when what the source says is less than what is acted upon.
    private var lessSince: MonotonicTime?
    /// Since when the source says that there is no pressure.
    private var normalSince: MonotonicTime?
    private(set) var doublings = 0

    init(_ policy: MemoryPolicy) { self.policy = policy }

    /// Which level is acted upon; `.normal` while recovering.
    var level: MemoryLevel {
        if case .pressed(let level) = stage { return level }
        return .normal
    }

    /// What is to be done now.
    var posture: MemoryPosture {
        switch stage {
        case .normal: return .normal
        case .pressed(let level): return policy[level]
        case .recovering(let step, _):
            var posture = policy.recovery[step].posture
            posture.recoveryStep = step + 1
            return posture
        }
    }

    /// Takes in what the source says.
    mutating func signal(_ level: MemoryLevel, at now: MonotonicTime) {
        look(at: now)
        if level > .normal { normalSince = nil } else if told > .normal { normalSince = now }
        told = level
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

    /// Lets time pass.
    mutating func look(at now: MonotonicTime) {
        // A look that comes late goes through all the steps that are over: each at the time at which it was.
        while let due = nextChange, now >= due { advance(at: due) }
    }

    /// When time alone changes something; nil if it does not.
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
            if told > .normal {
                stage = .pressed(told)
            } else if let since, let normal = normalSince, normal > since {
                // It was a lesser pressure first: that one's quiet has yet to last.
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
