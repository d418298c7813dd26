import Synchronization

/// Tells how short memory is. Safe from any thread.
public protocol MemoryPressureSource: Sendable {
    /// Which of the system's signals was chosen, and why.
    var explanation: String { get }

    /// Calls `body` with what the source sees until the registration is released; from any thread, one call at a time.
    ///
    /// A level is told when it is reached, and again for as long as it lasts; `.normal` when it is over.
    func observe(_ body: @escaping @Sendable (MemorySignal) -> Void) -> EventRegistration
}

/// A source that is told by hand: for tests, and for programs that know better.
public final class ManualMemorySource: MemoryPressureSource {
    private let observers = OrderedObservers<MemorySignal>()

    /// A source that has nothing to say yet.
    public init() {}

    /// It is told by hand.
    public let explanation = "Told by hand."

    /// Tells a level; observers have been told when this returns, unless another call is telling them.
    public func signal(_ level: MemoryLevel, cause: String = "told by hand") {
        observers.tell(MemorySignal(level, cause: cause))
    }

    /// Calls `body` with what is told.
    public func observe(_ body: @escaping @Sendable (MemorySignal) -> Void) -> EventRegistration {
        observers.add(body)
    }
}
