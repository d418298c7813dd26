/// How a request is answered when the control plane deviates from the default.
package struct Conditions: Sendable {
    /// Reads see the state at an earlier commit.
    package var past: StateHistory.Limit?
    /// The filter for the frames of a live channel.
    package var live: (any LiveFilter)?
    /// Whether the request did not arrive over a connection, so that faults of the change feed do not apply to it.
    package var isDetached = false
    /// Whether the request already holds its idempotency key.
    package var holdsKey = false

    package init() {}

    /// Whether cached replies may be used.
    var allowsCache: Bool { past == nil }
}
