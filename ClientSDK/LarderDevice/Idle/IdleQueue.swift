import LarderTime

/// Work that waits for an idle moment, oldest first: decisions from times alone. A value for its owner to protect.
struct IdleQueue<Work> {
    /// How long after an interaction the user counts as idle.
    let quiet: Duration
    /// The age from which work is due during an interaction too.
    let ageMaximum: Duration
    private var entries: [(since: MonotonicTime, work: Work)] = []
    private var first = 0
    private var interacted: MonotonicTime?

    init(quiet: Duration, ageMaximum: Duration) {
        self.quiet = max(.zero, quiet)
        self.ageMaximum = max(.zero, ageMaximum)
    }

    var count: Int { entries.count - first }

    mutating func noteInteraction(at now: MonotonicTime) { interacted = now }

    func isIdle(at now: MonotonicTime) -> Bool { interacted.map { now - $0 >= quiet } ?? true }

    mutating func add(_ work: Work, at now: MonotonicTime) { entries.append((now, work)) }

    /// Removes and returns the oldest work if it is due. O(1), amortised.
    mutating func takeDue(at now: MonotonicTime) -> Work? {
        guard first < entries.count, isIdle(at: now) || now - entries[first].since >= ageMaximum else { return nil }
        let work = entries[first].work
        first += 1
        if first == entries.count || (first > 64 && first > entries.count / 2) {
            entries.removeFirst(first)
            first = 0
        }
        return work
    }

    /// How long until the oldest work is due; nil if there is none.
    func delay(at now: MonotonicTime) -> Duration? {
        guard first < entries.count else { return nil }
        guard let interacted else { return .zero }
        return max(.zero, min(quiet - (now - interacted), ageMaximum - (now - entries[first].since)))
    }
}
