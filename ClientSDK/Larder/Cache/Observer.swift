import LarderTime

/// One who observes a node, and how they want to read it.
///
/// `@unchecked Sendable`: it lives in the node's dictionary and is reached under the node's lock alone. Before that only whoever makes
/// it knows it (`Node.observe`), after that only whoever has taken it out (`removeObserver`, `close`).
final class Observer<Value: Sendable & Equatable>: @unchecked Sendable {
    let mailbox: Mailbox<Snapshot<Value>>
    let options: ReadOptions
    /// By what the time to the next refresh is multiplied, so that what was read together is not refreshed together.
    let spread: Double
    /// Whether what there is may be shown: from the beginning, since the network has answered, or since it was waited for long enough.
    var isSettled: Bool
    /// The request that was started or joined for them.
    var flight: Flight?
    /// Ends the wait for the network.
    var patience: Task<Void, Never>?
    /// When they began; nil once they were shown something.
    var askedAt: MonotonicTime?

    init(
        _ mailbox: Mailbox<Snapshot<Value>>,
        _ options: ReadOptions,
        spread: Double,
        isSettled: Bool,
        askedAt: MonotonicTime
    ) {
        self.mailbox = mailbox
        self.options = options
        self.spread = spread
        self.isSettled = isSettled
        self.askedAt = askedAt
    }

    /// What was started for them, which is theirs no more: to be ended outside of the lock.
    func release() -> Started {
        defer {
            patience = nil
            flight = nil
        }
        return Started(patience: patience, flight: flight)
    }

    struct Started: Sendable {
        let patience: Task<Void, Never>?
        let flight: Flight?

        func end() {
            patience?.cancel()
            flight?.leave()
        }
    }
}

extension Snapshot where Value: Equatable {
    /// Whether another snapshot says the same to somebody who looks at it. The time of a confirmation alone is nothing new, and
    /// neither is the tier.
    func says(thatOf other: Snapshot) -> Bool {
        freshness == other.freshness && activity == other.activity && completeness == other.completeness
            && pendingChanges == other.pendingChanges && refreshError?.code == other.refreshError?.code
            && refreshError?.description == other.refreshError?.description && value == other.value
    }
}
