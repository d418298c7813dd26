import Glibc

/// The limit on open files and sockets (setrlimit(2)).
enum DescriptorLimit {
    /// The number of descriptors besides connections: the database, images, the loops' own.
    private static let others: UInt64 = 64

    /// Raises the soft limit, usually 1,024, to what the connections need, or to the hard limit.
    ///
    /// - Returns: the number of connections that fit.
    static func lift(forConnections count: Int) -> Int {
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        var limit = rlimit()
        guard unsafe getrlimit(resource, &limit) == 0 else { return count }
        let wanted = min(UInt64(count) + others, UInt64(limit.rlim_max))
        if UInt64(limit.rlim_cur) < wanted {
            var lifted = limit
            lifted.rlim_cur = rlim_t(wanted)
            if unsafe setrlimit(resource, &lifted) == 0 { limit = lifted }
        }
        return Int(clamping: UInt64(limit.rlim_cur) - min(UInt64(limit.rlim_cur), others))
    }
}
