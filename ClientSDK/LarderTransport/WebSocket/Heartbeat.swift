package import LarderTime

/// Detects a dead connection: requests a ping after a period of silence, and fails if no byte follows.
///
/// A value without I/O; the time is a parameter.
package struct Heartbeat: Sendable, Hashable {
    /// The action that is due.
    package enum Beat: Sendable, Hashable {
        case nothing
        /// Send a ping.
        case ping
        /// No byte followed the ping: end the connection.
        case silent
    }

    private let interval: Duration?
    private let timeout: Duration
    private var lastHeard: MonotonicTime
    private var asked: MonotonicTime?
    private var isHeld = false

    /// - Parameter interval: the silence before a ping; nil: no pings.
    package init(interval: Duration?, timeout: Duration, now: MonotonicTime) {
        self.interval = interval
        self.timeout = timeout
        lastHeard = now
    }

    /// Any byte was received.
    package mutating func heard(at now: MonotonicTime) {
        lastHeard = now
        asked = nil
    }

    /// Reading was paused, so silence has no meaning.
    package mutating func hold() { isHeld = true }

    /// Reading was resumed.
    package mutating func resume(at now: MonotonicTime) {
        isHeld = false
        heard(at: now)
    }

    /// When `beat` must be called; nil: never.
    package var deadline: MonotonicTime? {
        guard !isHeld, let interval else { return nil }
        return asked.map { $0 + timeout } ?? (lastHeard + interval)
    }

    /// Returns the action at a time.
    package mutating func beat(at now: MonotonicTime) -> Beat {
        guard let deadline, now >= deadline else { return .nothing }
        guard asked == nil else { return .silent }
        // Measured from now and not from the due time, because a suspended machine reads nothing.
        asked = now
        return .ping
    }
}
