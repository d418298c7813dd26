/// The readiness of a descriptor.
struct Readiness: OptionSet, Sendable {
    let rawValue: UInt8

    static let read = Readiness(rawValue: 1)
    static let write = Readiness(rawValue: 2)
    /// The peer or the descriptor is closed.
    static let hangUp = Readiness(rawValue: 4)
    /// The peer sends no more. Reported without `read` too, while bytes of it are not read.
    static let end = Readiness(rawValue: 8)
}

/// The owner of a descriptor that a loop watches. Confined to its loop.
protocol DescriptorUser: AnyObject {
    func ready(_ readiness: Readiness)
}

/// Waits for events on many descriptors. Confined to its loop.
protocol Poller: AnyObject {
    /// Watches a descriptor, or changes its interest. An empty interest still reports that both directions have ended, or an error.
    func watch(_ descriptor: Int32, for interest: Readiness, isShared: Bool) throws(EngineError)

    /// Stops watching a descriptor; call it before the descriptor is closed.
    func forget(_ descriptor: Int32)

    /// Waits for an event or the timeout, and returns what is ready.
    ///
    /// - Parameter timeout: in milliseconds; negative for no limit.
    func wait(timeout: Int32) -> [(descriptor: Int32, readiness: Readiness)]
}

/// Which system call a loop waits with.
package enum PollerChoice: Sendable, Hashable {
    case epoll
    /// poll(2), which needs no state of the system: for the simulator.
    case poll
}

/// Why the engine could not start or continue.
package struct EngineError: Error, Sendable, Hashable, CustomStringConvertible {
    package let description: String

    init(_ what: String, _ code: Int32) {
        description = "\(what): \(SystemCall.describe(code))"
    }

    init(_ what: String) { description = what }
}
