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

    /// A policy; a quarter of a second, doubled up to four, by default, each between half and all of that by chance.
    public init(
        triesWithoutProgress: Int = 3,
        triesMaximum: Int = 20,
        retryAfterMaximum: Duration = .seconds(10),
        delay: @escaping @Sendable (Int) -> Duration = { count in
            .milliseconds(min(4_000, 250 << min(count - 1, 8))) * Double.random(in: 0.5...1)
        },
        wait: @escaping @Sendable (Duration) async throws -> Void = { try await ContinuousClock().sleep(for: $0) }
    ) {
        self.triesWithoutProgress = triesWithoutProgress
        self.triesMaximum = triesMaximum
        self.retryAfterMaximum = retryAfterMaximum
        self.delay = delay
        self.wait = wait
    }

    /// Tries once.
    public static let none = ImageRetryPolicy(triesWithoutProgress: 1, triesMaximum: 1)
}
