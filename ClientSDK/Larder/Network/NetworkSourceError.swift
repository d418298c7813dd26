#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Why the system does not tell of its network.
public struct NetworkSourceError: Error, Sendable, CustomStringConvertible {
    /// What failed and what to do.
    public let description: String

    init(_ action: String, _ code: Int32) {
        let reason = unsafe String(cString: strerror(code))
        description = "\(action): \(reason). Use a ManualNetworkSource; requests tell of the network too."
    }
}
