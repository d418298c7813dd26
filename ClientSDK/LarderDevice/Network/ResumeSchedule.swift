import LarderEvents
import LarderTime

/// Decides when a client that was offline resumes: pure, from levels and times alone.
///
/// If the network is lost again before the time has come, nothing is sent, and the next return has another delay. A flapping
/// network therefore causes no load.
struct ResumeSchedule: Sendable, Hashable {
    /// The window; a return that is under way keeps its time.
    var window: Duration
    private let seed: UInt64
    private var round: UInt64 = 0
    private var wasOffline = false

    /// When to resume; nil while there is nothing to resume.
    private(set) var due: MonotonicTime?

    init(_ window: Duration, seed: UInt64) {
        self.window = window
        self.seed = seed
    }

    mutating func note(_ level: NetworkLevel, at now: MonotonicTime) {
        if level == .offline {
            wasOffline = true
            due = nil
        } else if wasOffline {
            wasOffline = false
            round += 1
            due = now + Self.delay(within: window, seed: seed, round: round)
        }
    }

    /// The delay of a client: less than the window, and always the same for the same arguments.
    ///
    /// - Parameters:
    ///   - window: the time over which clients are spread; negative counts as zero.
    ///   - seed: a random number of the client, stored once.
    ///   - round: the number of this return, so that the order differs each time.
    static func delay(within window: Duration, seed: UInt64, round: UInt64) -> Duration {
        var random = SeededGenerator(seed: seed)
        // Unrelated for neighbouring rounds, too.
        random = SeededGenerator(seed: random.next() ^ round)
        let nanoseconds = UInt64(max(0, window.nanosecondsSaturating))
        return .nanoseconds(Int64(random.next().multipliedFullWidth(by: nanoseconds).high))
    }

    /// Whether it is time to resume; true once for each return.
    mutating func take(at now: MonotonicTime) -> Bool {
        guard let time = due, now >= time else { return false }
        due = nil
        return true
    }
}
