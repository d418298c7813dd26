/// Keeps an observer registered for as long as it lives.
package final class EventRegistration: Sendable {
    private let cancel: @Sendable () -> Void

    /// - Parameter cancel: called once, when the registration is released.
    package init(cancel: @escaping @Sendable () -> Void) { self.cancel = cancel }

    deinit { cancel() }
}
