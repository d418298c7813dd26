public import LarderTime

/// A cache's clock and the way that it waits, as one: what live channels take. Safe from any task.
public struct ConfiguredClock: MonotonicClock, Sleeper {
    private let clock: any MonotonicClock
    private let sleeper: any Sleeper

    /// The clock and the sleeper of a configuration.
    public init(_ configuration: CacheConfiguration) {
        clock = configuration.monotonicClock
        sleeper = configuration.sleeper
    }

    /// How much time has passed.
    public var uptime: MonotonicTime { clock.uptime }

    /// Tells when the clock was moved by hand.
    public func onJump(_ body: @escaping @Sendable () -> Void) -> ClockRegistration? { clock.onJump(body) }

    /// Waits until a time.
    public func sleep(until time: MonotonicTime) async throws(CancellationError) {
        try await sleeper.sleep(until: time)
    }
}
