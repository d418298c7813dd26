import LarderEvents
import LarderStorage
import LarderTime
import Synchronization

/// A value that a cache has been asked for, as an inspector shows it.
package struct HeldValue: Sendable {
    /// The name and the parameters of the resource.
    package let key: String
    package let freshness: Freshness
    /// Where it was found; nil without a value.
    package let source: String?
    package let times: Freshness.Times?
    package let version: Int64?
    package let pendingChanges: Int
    package let isFetching: Bool
    /// The error of the last request; nil if it succeeded.
    package let error: LarderError?
    package let observerCount: Int
    /// The beginning of the value; nil if it was not asked for.
    package let text: String?
}

extension Node {
    func held(textMaximum: Int) -> HeldValue {
        let (resource, observers) = state.withLock { ($0.resource, $0.observers.count) }
        let content = content()
        let (revision, isFetching, error) = state.withLock { ($0.revision, $0.flight != nil, $0.error) }
        let shown = snapshot(
            content,
            options(resource),
            error: error,
            isFetching: isFetching,
            revision: revision,
            at: core.now()
        )
        return HeldValue(
            key: key.description,
            freshness: shown.freshness,
            source: shown.source?.rawValue,
            times: shown.times,
            version: shown.version,
            pendingChanges: shown.pendingChanges,
            isFetching: isFetching,
            error: error,
            observerCount: observers,
            text: textMaximum > 0 ? shown.value.map { String("\($0)".prefix(textMaximum)) } : nil
        )
    }

    func refreshHeld() async throws(LarderError) {
        let resource = state.withLock { $0.resource }
        _ = try await refresh(
            since: core.configuration.monotonicClock.uptime,
            options(resource),
            cause: "the inspector"
        )
    }
}
