/// Keeps an observer registered for as long as it lives.
public final class EventRegistration: Sendable {
    private let cancel: @Sendable () -> Void

    /// - Parameter cancel: called once, when the registration is released.
    public init(cancel: @escaping @Sendable () -> Void) { self.cancel = cancel }

    deinit { cancel() }
}
