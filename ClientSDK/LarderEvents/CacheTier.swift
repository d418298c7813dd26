/// Where a value, a response or a picture was found.
public enum CacheTier: String, Sendable, Hashable, CaseIterable, Encodable, CodingKeyRepresentable {
    /// Values or decoded pixels in memory.
    case memory
    /// The store on disk.
    case disk
    /// The HTTP cache.
    case http
    /// A server just now: it sent the value or confirmed it (304).
    case network
    /// Several of them, or a local change that the server has not confirmed yet.
    case merged
}
