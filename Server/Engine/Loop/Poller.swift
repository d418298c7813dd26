/// What a descriptor is ready for.
struct Readiness: OptionSet, Sendable {
    let rawValue: UInt8

    static let read = Readiness(rawValue: 1)
    static let write = Readiness(rawValue: 2)
    /// The peer or the descriptor is gone.
    static let hangUp = Readiness(rawValue: 4)
}

/// Waits for many descriptors at once. Confined to its loop.
protocol Poller: AnyObject {
    /// Watches a descriptor, or changes what it is watched for. An empty interest still learns of a hang-up.
    func watch(_ descriptor: Int32, for interest: Readiness, isShared: Bool) throws(EngineError)

    /// Watches a descriptor no more; to be called before it is closed.
    func forget(_ descriptor: Int32)

    /// Waits until something is ready or the time is over.
    ///
    /// - Parameter timeout: in milliseconds; negative for no limit.
    /// - Returns: how many descriptors are ready.
    func wait(timeout: Int32) -> Int

    /// One of those that the last wait found. What was forgotten since is still told.
    func event(_ index: Int) -> (descriptor: Int32, readiness: Readiness)
}

/// How a loop waits.
package enum PollerChoice: Sendable, Hashable {
    /// The best that the system has.
    case automatic
    case epoll
    case poll
}

/// Why the engine could not start or go on.
package struct EngineError: Error, Sendable, Hashable, CustomStringConvertible {
    package let description: String

    init(_ what: String, _ code: Int32) {
        description = "\(what): \(SystemCall.describe(code))"
    }

    init(_ what: String) { description = what }
}
