import LarderTime

/// One who observes a node: how they want to read it, and what they were shown last. Held under the node's lock.
struct Observer<Value: Sendable & Equatable> {
    let mailbox: Mailbox<Snapshot<Value>>
    let policy: ReadPolicy
    let rule: FreshnessRule
    let fields: Set<String>
    /// Whether what there is may be shown: from the beginning, since the network has answered, or since it was waited for long enough.
    var isSettled: Bool
    /// The request that was started or joined for them.
    var flight: Flight?
    /// Ends the wait for the network.
    var patience: Task<Void, Never>?
    var last: Snapshot<Value>?
    /// When they began; nil once they were shown something.
    var askedAt: MonotonicTime?

    /// Shows a snapshot, unless it says nothing new.
    mutating func show(_ snapshot: Snapshot<Value>) {
        if let last, last.says(thatOf: snapshot) { return }
        last = snapshot
        mailbox.put(snapshot)
    }

    /// Ends what was started for them.
    mutating func stop() {
        patience?.cancel()
        patience = nil
        flight?.leave()
        flight = nil
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
