/// The platform's own source of memory levels.
public enum SystemMemorySource {
    /// Stalls and control groups on Linux, Dispatch's events on Apple's systems, and one that is told by hand elsewhere.
    public static func make() -> any MemoryPressureSource {
        #if os(Linux)
            return LinuxMemorySource()
        #elseif canImport(Darwin)
            return DispatchMemorySource()
        #else
            return ManualMemorySource()
        #endif
    }
}
