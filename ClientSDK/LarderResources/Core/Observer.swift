import LarderEvents
import LarderTime

/// An observer of a node, with its read options.
///
/// `@unchecked Sendable`: it is accessed only under the node's lock while it is in the node's dictionary. Before, only its creator has
/// it (`Node.observe`); afterwards, only the caller that removed it (`removeObserver`, `close`).
final class Observer<Value: Sendable & Equatable>: @unchecked Sendable {
    let mailbox: Mailbox<Snapshot<Value>>
    let options: ReadOptions
    /// The factor of the time to the next refresh, so that values that were read together are not refreshed together.
    let spread: Double
    /// Whether the current content may be shown: from the start, after the network has answered, or after the fallback delay.
    var isSettled: Bool
    /// The request that was started or joined for the observer.
    var flight: Flight?
    var fallbackDelay: Task<Void, Never>?
    /// When the observation began; nil after the first content.
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

    /// Whether a failed request is repeated for it by itself. Bounded staleness has delays of its own for a value that is there.
    func wantsRepetition(isMissing: Bool) -> Bool {
        options.policy.remote != .never && (isMissing || options.bound == nil)
    }

    /// Removes the tasks of the observer, to be ended outside of the lock.
    func release() -> Started {
        defer {
            fallbackDelay = nil
            flight = nil
        }
        return Started(fallbackDelay: fallbackDelay, flight: flight)
    }

    struct Started: Sendable {
        let fallbackDelay: Task<Void, Never>?
        let flight: Flight?

        func end() {
            fallbackDelay?.cancel()
            flight?.leave()
        }
    }
}

extension Snapshot where Value: Equatable {
    /// Whether another snapshot has the same visible content. The time of a confirmation and the tier do not count.
    func hasSameContent(as other: Snapshot) -> Bool {
        freshness == other.freshness && isFetching == other.isFetching && completeness == other.completeness
            && pendingChanges == other.pendingChanges && refreshError?.code == other.refreshError?.code
            && refreshError?.description == other.refreshError?.description && value == other.value
    }
}
