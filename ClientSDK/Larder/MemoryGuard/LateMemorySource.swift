import Synchronization

/// A source that is made when somebody asks for its explanation: to look at the system's files takes a millisecond that a start has
/// better uses for. Safe from any thread.
final class LateMemorySource: MemoryPressureSource {
    private let make: @Sendable () -> any MemoryPressureSource
    private let observers = OrderedObservers<MemorySignal>()
    /// The source is kept with it: a system's source ends when nobody holds it.
    private let made = Mutex<(source: any MemoryPressureSource, registration: EventRegistration)?>(nil)

    init(_ make: @escaping @Sendable () -> any MemoryPressureSource) { self.make = make }

    var explanation: String { begin().explanation }

    /// Makes the source, unless it was made.
    private func begin() -> any MemoryPressureSource {
        made.withLock { made in
            if let made { return made.source }
            let source = make()
            let observers = observers
            made = (source, source.observe { observers.tell($0) })
            return source
        }
    }

    func observe(_ body: @escaping @Sendable (MemorySignal) -> Void) -> EventRegistration { observers.add(body) }
}
