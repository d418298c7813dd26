import LarderEvents
package import LarderTime
import Synchronization

/// A source that is created when its explanation is first read, because opening the system's files takes about a millisecond at
/// start. Safe from any thread.
package final class DeferredMemorySource: MemoryGuard.Source {
    private let make: @Sendable () -> any MemoryGuard.Source
    private let observers = OrderedObservers<MemoryGuard.Signal>()
    /// Holds the source too: a system's source ends when it is released.
    private let made = Mutex<(source: any MemoryGuard.Source, registration: EventRegistration)?>(nil)

    package init(_ make: @escaping @Sendable () -> any MemoryGuard.Source) { self.make = make }

    package var explanation: String { begin().explanation }

    /// Creates the source once.
    private func begin() -> any MemoryGuard.Source {
        made.withLock { made in
            if let made { return made.source }
            let source = make()
            let observers = observers
            made = (source, source.observe { observers.tell($0) })
            return source
        }
    }

    package func observe(_ body: @escaping @Sendable (MemoryGuard.Signal) -> Void) -> EventRegistration {
        observers.add(body)
    }
}
