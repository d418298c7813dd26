/// The platform's own source of network states.
public enum SystemNetworkSource {
    /// Netlink on Linux, `NWPathMonitor` on Apple's systems. Where neither is to be had, a network is assumed, and only requests
    /// tell of it: `explanation` says so.
    public static func make() -> (source: any NetworkStatusSource, explanation: String) {
        #if os(Linux)
            do {
                return (try NetlinkSource(), "Interfaces and addresses by netlink.")
            } catch {
                return (ManualNetworkSource(), "A network is assumed. \(error)")
            }
        #elseif canImport(Network)
            return (PathSource(), "Paths by NWPathMonitor.")
        #else
            return (ManualNetworkSource(), "A network is assumed: this system has no source that is known here.")
        #endif
    }
}
