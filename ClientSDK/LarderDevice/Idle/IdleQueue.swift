import LarderEvents
import LarderTime

/// Work that waits for an idle moment, oldest first: decisions from times alone. A value for its owner to protect.
struct IdleQueue<Work> {
    /// How long after an interaction the user counts as idle.
    let quiet: Duration
    /// The age from which work is due during an interaction too.
    let ageMaximum: Duration
    private var entries = FIFO<(since: MonotonicTime, work: Work)>()
    private var interacted: MonotonicTime?

    init(quiet: Duration, ageMaximum: Duration) {
        self.quiet = max(.zero, quiet)
        self.ageMaximum = max(.zero, ageMaximum)
    }

    var count: Int { entries.count }

    mutating func noteInteraction(at now: MonotonicTime) { interacted = now }

    func isIdle(at now: MonotonicTime) -> Bool { interacted.map { now - $0 >= quiet } ?? true }

    mutating func add(_ work: Work, at now: MonotonicTime) { entries.append((now, work)) }

    /// Removes and returns the oldest work if it is due. O(1), amortised.
    mutating func takeDue(at now: MonotonicTime) -> Work? {
        guard let first = entries.first, isIdle(at: now) || now - first.since >= ageMaximum else { return nil }
        return entries.popFirst()?.work
    }

    /// How long until the oldest work is due; nil if there is none.
    func delay(at now: MonotonicTime) -> Duration? {
        guard let first = entries.first else { return nil }
        guard let interacted else { return .zero }
        return max(.zero, min(quiet - (now - interacted), ageMaximum - (now - first.since)))
    }
}
