import LarderEvents
import LarderTime

/// An observer of a node, with its read options.
struct Observer<Value: Sendable & Equatable>: Sendable {
    let mailbox: Mailbox<Snapshot<Value>>
    let options: ReadOptions
    /// The factor of the time to the next refresh, so that values that were read together are not refreshed together.
    let spread: Double
    /// Whether the current content may be shown: from the start, after the network has answered, or after the fallback delay.
    var isSettled: Bool
    /// When the fallback may be shown, although the network has not answered; nil: not before it has.
    let fallbackAt: MonotonicTime?
    /// The request that was started or joined for the observer.
    var flight: Flight?
}

extension Snapshot where Value: Equatable {
    /// Whether another snapshot has the same visible content. The time of a confirmation and the tier do not count.
    func hasSameContent(as other: Snapshot) -> Bool {
        freshness == other.freshness && isFetching == other.isFetching && completeness == other.completeness
            && pendingChanges == other.pendingChanges && refreshError?.code == other.refreshError?.code
            && refreshError?.description == other.refreshError?.description && value == other.value
    }
}
