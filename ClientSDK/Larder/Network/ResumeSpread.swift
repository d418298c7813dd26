import LarderTime

/// How clients that lost the network together come back apart, so that a stadium of phones does not return at once.
///
/// Each waits a time that its seed and the number of its return decide: uniform over the window, so that n clients come at a
/// rate of n / window. What a person asks for does not wait.
public struct ResumeSpread: Sendable, Hashable {
    /// Over how long the clients are spread.
    public var window: Duration

    /// - Parameter window: for 10,000 clients and a server that takes 100 requests a second, 100 s or more.
    public init(window: Duration = .seconds(30)) { self.window = max(.zero, window) }

    /// How long a client waits: less than the window, the same for the same arguments, everywhere and for ever.
    ///
    /// - Parameters:
    ///   - seed: the client's own: random once, then stored.
    ///   - round: the number of this return: the unlucky of one time are not those of the next.
    public func delay(seed: UInt64, round: UInt64) -> Duration {
        // SplitMix64's mixing, twice, so that neighbours in seed or round have nothing in common.
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
