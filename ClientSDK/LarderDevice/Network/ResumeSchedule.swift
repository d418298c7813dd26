import LarderEvents
import LarderTime

/// Decides when a client that was offline resumes: pure, from levels and times alone.
///
/// If the network is lost again before the time has come, nothing is sent, and the next return has another delay. A flapping
/// network therefore causes no load.
struct ResumeSchedule: Sendable, Hashable {
    /// The window; a return that is under way keeps its time.
    var spread: DegradationPolicy.ResumeSpread
    private let seed: UInt64
    private var round: UInt64 = 0
    private var wasOffline = false

    /// When to resume; nil while there is nothing to resume.
    private(set) var due: MonotonicTime?

    init(_ spread: DegradationPolicy.ResumeSpread, seed: UInt64) {
        self.spread = spread
        self.seed = seed
    }

    mutating func note(_ level: NetworkLevel, at now: MonotonicTime) {
        if level == .offline {
            wasOffline = true
            due = nil
        } else if wasOffline {
            wasOffline = false
            round += 1
            due = now + spread.delay(seed: seed, round: round)
        }
    }

    /// Whether it is time to resume; true once for each return.
    mutating func take(at now: MonotonicTime) -> Bool {
        guard let time = due, now >= time else { return false }
        due = nil
        return true
    }
}
