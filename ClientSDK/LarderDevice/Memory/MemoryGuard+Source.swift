package import LarderEvents
package import LarderTime
import Synchronization

extension MemoryGuard {
    /// Reports memory pressure. Safe from any thread.
    package protocol Source: Sendable {
        /// A description of the system's signals that are used.
        var explanation: String { get }

        /// Calls `body` with each report until the registration is released; on any thread, one call at a time.
        ///
        /// A level is reported when it is reached and again while it lasts; `.normal` when it is over.
        func observe(_ body: @escaping @Sendable (Signal) -> Void) -> EventRegistration
    }
}

extension MemoryGuard {
    /// A source that is set by hand.
    package final class ManualSource: Source {
        private let observers = OrderedObservers<Signal>()

        package init() {}

        /// A fixed description.
        package let explanation = "Set by the app."

        /// Reports a level. Observers have been called when this returns, unless another thread is calling them.
        package func signal(_ level: MemoryLevel, cause: String = "set by the app") {
            observers.tell(Signal(level, cause: cause))
        }

        /// Calls `body` with each report.
        package func observe(_ body: @escaping @Sendable (Signal) -> Void) -> EventRegistration {
            observers.add(body)
        }
    }
}

extension MemoryGuard {
    /// The system's source: pressure-stall information and control groups.
    package static func systemSource() -> any Source {
        LinuxMemorySource()
    }

    /// The pressure that the system reports now, and where it was read; nil if the system has no signal. Cost: some reads of files of the
    /// kernel.
    package static func systemPressure() -> (signal: Signal?, explanation: String) {
        let source = LinuxMemorySource()
        return (source.isWatching ? source.read() : nil, source.explanation)
    }
}
