import LarderTime

extension DegradationPolicy {
    /// Spreads clients that lost the network together, so that they do not all return at once.
    ///
    /// Each client waits for a time derived from its seed and the number of its return: uniform over the window, so that n clients
    /// return at a rate of n / window. Requests made by a person do not wait.
    public struct ResumeSpread: Sendable, Hashable {
        /// The time over which clients are spread.
        public var window: Duration

        /// - Parameter window: for 10,000 clients and a server that takes 100 requests a second, 100 s or more.
        public init(window: Duration = .seconds(30)) { self.window = max(.zero, window) }

        /// The delay of a client: less than the window, and always the same for the same arguments.
        ///
        /// - Parameters:
        ///   - seed: a random number of the client, stored once.
        ///   - round: the number of this return, so that the order differs each time.
        public func delay(seed: UInt64, round: UInt64) -> Duration {
            // SplitMix64's mixing, twice, so that neighbouring seeds or rounds are unrelated.
            func mix(_ value: UInt64) -> UInt64 {
                var z = value &+ 0x9E37_79B9_7F4A_7C15
                z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
                z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
                return z ^ (z >> 31)
            }
            let nanoseconds = UInt64(window.nanosecondsSaturating)
            return .nanoseconds(Int64(mix(mix(seed) ^ round).multipliedFullWidth(by: nanoseconds).high))
        }
    }
}
