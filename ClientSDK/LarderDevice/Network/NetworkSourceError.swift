import Glibc

/// The reason why the system's network state cannot be observed.
struct NetworkSourceError: Error, Sendable, CustomStringConvertible {
    /// What failed and what to do about it.
    let description: String

    init(_ action: String, _ code: Int32) {
        let reason = unsafe String(cString: strerror(code))
        description = "\(action): \(reason). Use a NetworkMonitor.ManualSource; requests are measured in any case."
    }
}
