#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// How many files and sockets the process may have open at a time (setrlimit(2)).
enum DescriptorLimit {
    /// What a server has open besides its connections: the database, pictures, the loops' own.
    private static let others: UInt64 = 64

    /// Lifts the soft limit, which most shells set to 1,024, to what so many connections need, or to the hard limit.
    ///
    /// - Returns: for how many connections there is room.
    static func lift(forConnections count: Int) -> Int {
        #if canImport(Darwin)
            let resource = RLIMIT_NOFILE
        #else
            let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        #endif
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
