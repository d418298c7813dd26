import Synchronization

/// Counts the webhooks of custom routes. Safe from any thread.
package final class WebhookCounter: Sendable {
    /// How many webhooks were answered, and why the last one was not.
    package struct Totals: Sendable {
        package var sent = 0
        package var failed = 0
        package var lastFailure: String?
    }

    private let state = Mutex(Totals())

    package var totals: Totals { state.withLock { $0 } }

    func count(failure: String?) {
        state.withLock { totals in
            if failure == nil { totals.sent += 1 } else { totals.failed += 1 }
            totals.lastFailure = failure ?? totals.lastFailure
        }
    }
}
