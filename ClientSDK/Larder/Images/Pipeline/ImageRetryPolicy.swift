public import LarderTime

/// When and how often a download is tried again. A value that can be replaced.
public struct ImageRetryPolicy: Sendable {
    /// How many tries without any progress there are before it is given up. A try that brought bytes that can be kept does not
    /// count.
    public var triesWithoutProgress: Int
    /// How many tries there are in all.
    public var triesMaximum: Int
    /// The longest that a server may ask to be left alone (`Retry-After`, RFC 9110 §10.2.3); that is waited for beside `delay`. One
    /// that asks for more gets no further try.
    public var retryAfterMaximum: Duration
    /// How long to wait before a try, by the number of those without progress before it, from 1.
    public var delay: @Sendable (Int) -> Duration
    /// Waits; throws when the waiting task is cancelled.
    public var wait: @Sendable (Duration) async throws -> Void

    /// A policy. The first delay is a quarter of a second; it doubles up to four seconds, and each is between half and all of that by
    /// chance.
    ///
    /// - Parameters:
    ///   - clock: measures the delays.
    ///   - sleeper: waits. It must follow `clock`.
    ///   - random: gives numbers from 0 up to but not including 1, by which the delays are spread.
    public init(
        triesWithoutProgress: Int = 3,
        triesMaximum: Int = 20,
        retryAfterMaximum: Duration = .seconds(10),
        clock: any MonotonicClock = SystemMonotonicClock(),
        sleeper: any Sleeper = SystemSleeper(),
        random: @escaping @Sendable () -> Double = { Double.random(in: 0..<1) }
    ) {
        self.triesWithoutProgress = triesWithoutProgress
        self.triesMaximum = triesMaximum
        self.retryAfterMaximum = retryAfterMaximum
        delay = { count in .milliseconds(min(4_000, 250 << min(count - 1, 8))) * (0.5 + 0.5 * random()) }
        wait = { try await sleeper.sleep(until: clock.uptime + $0) }
    }

    /// Tries once.
    public static let none = ImageRetryPolicy(triesWithoutProgress: 1, triesMaximum: 1)
}
