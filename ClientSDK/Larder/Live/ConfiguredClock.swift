import LarderTime

/// A cache's clock and the way that it waits, as one.
struct ConfiguredClock: MonotonicClock, Sleeper {
    private let clock: any MonotonicClock
    private let sleeper: any Sleeper

    init(_ configuration: CacheConfiguration) {
        clock = configuration.monotonicClock
        sleeper = configuration.sleeper
    }

    var uptime: MonotonicTime { clock.uptime }

    func onJump(_ body: @escaping @Sendable () -> Void) -> ClockRegistration? { clock.onJump(body) }

    func sleep(until time: MonotonicTime) async throws(CancellationError) { try await sleeper.sleep(until: time) }
}
