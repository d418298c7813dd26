package import LarderTime

/// Finds out that a connection is dead although nobody has said so: asks after a while of silence, and gives up after another.
///
/// A pure value; time is told to it.
package struct Heartbeat: Sendable, Hashable {
    /// What to do now.
    package enum Beat: Sendable, Hashable {
        case nothing
        /// Ask for a sign of life.
        case ping
        /// Give up: none came.
        case silent
    }

    private let interval: Duration?
    private let timeout: Duration
    private var lastHeard: MonotonicTime
    private var asked: MonotonicTime?
    private var isHeld = false

    /// - Parameter interval: how long nothing may come before it asks; nil never asks.
    package init(interval: Duration?, timeout: Duration, now: MonotonicTime) {
        self.interval = interval
        self.timeout = timeout
        lastHeard = now
    }

    /// Something came.
    package mutating func heard(at now: MonotonicTime) {
        lastHeard = now
        asked = nil
    }

    /// Nothing is listened to for a while, so nothing can be heard.
    package mutating func hold() { isHeld = true }

    /// It is listened again.
    package mutating func resume(at now: MonotonicTime) {
        isHeld = false
        heard(at: now)
    }

    /// When to look again; nil for never.
    package var deadline: MonotonicTime? {
        guard !isHeld, let interval else { return nil }
        return asked.map { $0 + timeout } ?? (lastHeard + interval)
    }

    /// What to do at that time.
    package mutating func beat(at now: MonotonicTime) -> Beat {
        guard let deadline, now >= deadline else { return .nothing }
        guard asked == nil else { return .silent }
        // From now on and not from when it was due: a machine that slept has not listened.
        asked = now
        return .ping
    }
}
