import LarderEvents
package import LarderTime
import Synchronization

extension NetworkMonitor {
    /// Observes the system's network state. Safe from any thread.
    package protocol Source: Sendable {
        /// The current state.
        var status: NetworkStatus { get }

        /// Calls `body` with each new state until the registration is released; on any thread, one call at a time.
        func observe(_ body: @escaping @Sendable (NetworkStatus) -> Void) -> EventRegistration
    }
}

extension NetworkMonitor {
    /// A source that is set by hand.
    package final class ManualSource: Source {
        private let state: Mutex<NetworkStatus>
        private let observers = OrderedObservers<NetworkStatus>()

        /// - Parameter status: the state until it is set.
        package init(_ status: NetworkStatus) { state = Mutex(status) }

        /// Reports a connection until it is set.
        package convenience init() { self.init(.assumed) }

        /// The last state that was set.
        package var status: NetworkStatus { state.withLock { $0 } }

        /// Sets the state. Observers have been called when this returns, unless another thread is calling them.
        package func set(_ status: NetworkStatus) {
            let isNew = state.withLock { state in
                defer { state = status }
                return state != status
            }
            if isNew { observers.tell(status) }
        }

        /// Sets whether there is a network, and whether its traffic is expensive or limited.
        package func set(isConnected: Bool, isMetered: Bool = false) {
            set(NetworkStatus(isConnected: isConnected, isMetered: isMetered))
        }

        /// Calls `body` with each state that is set.
        package func observe(_ body: @escaping @Sendable (NetworkStatus) -> Void) -> EventRegistration {
            observers.add(body)
        }
    }
}

extension NetworkMonitor {
    /// The system's source and a description of it: netlink on Linux. Without one, a source that always reports a connection, so
    /// that only requests show the state of the network.
    package static func systemSource() -> (source: any Source, explanation: String) {
        do {
            return (try NetlinkSource(), "Interfaces and addresses come from netlink.")
        } catch {
            return (ManualSource(), "A network is assumed. \(error)")
        }
    }
}
