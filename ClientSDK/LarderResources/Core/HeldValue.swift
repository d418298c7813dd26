import LarderEvents
import LarderStorage
import LarderTime
import Synchronization

/// A value that a cache has been asked for, as an inspector shows it.
package struct HeldValue: Sendable {
    /// The name and the parameters of the resource.
    package let key: String
    /// Its value is the beginning of the text; nil also if it was not asked for.
    package let shown: Snapshot<String>
    package let observerCount: Int
}

extension Node {
    func held(textMaximum: Int) -> HeldValue {
        let (resource, observers, error) = state.withLock {
            ($0.resource, $0.observers.count, $0.own.backOff.error)
        }
        var shown = current(content(), options(resource), error: error).map { String("\($0)".prefix(textMaximum)) }
        if textMaximum == 0 { shown.value = nil }
        return HeldValue(key: key.description, shown: shown, observerCount: observers)
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
