public import LarderTime

/// When a client that was offline may come back: pure, decided from levels and times alone.
///
/// The return is conditional: if the network goes again before the time has come, nothing is sent, and the next return draws
/// another time. Flapping therefore costs the server nothing.
public struct ResumeSchedule: Sendable, Hashable {
    /// Over how long clients are spread; a return that is under way keeps its time.
    public var spread: ResumeSpread
    private let seed: UInt64
    private var round: UInt64 = 0
    private var wasOffline = false

    /// When to come back; nil while there is nothing to come back to, or from.
    public private(set) var due: MonotonicTime?

    /// A client that is online.
    public init(_ spread: ResumeSpread, seed: UInt64) {
        self.spread = spread
        self.seed = seed
    }

    /// Notes the network's level.
    public mutating func note(_ level: NetworkLevel, at now: MonotonicTime) {
        if level == .offline {
            wasOffline = true
            due = nil
        } else if wasOffline {
            wasOffline = false
            round += 1
            due = now + spread.delay(seed: seed, round: round)
        }
    }

    /// Whether it is time to come back; true once for each return.
    public mutating func take(at now: MonotonicTime) -> Bool {
        guard let time = due, now >= time else { return false }
        due = nil
        return true
    }
}
