public import LarderTime

/// How a cached request goes about it.
public enum RequestStrategy: String, Sendable, Hashable, CaseIterable {
    /// What is recorded, however old; the function is not called.
    case cacheNoLoad
    /// The function's answer, which is recorded.
    case noCacheDoLoad
    /// What is recorded and not outdated; else the function's answer.
    case cacheElseLoad
    /// What is recorded at once, however old, and then the function's answer.
    case cacheAndLoad
}

/// A value, and where it came from.
public struct RequestResult<Value: Sendable>: Sendable {
    /// The value.
    public let value: Value
    /// When it was recorded.
    public let recordedAt: WallTime
    /// Whether it was recorded before, rather than given by the function just now.
    public let isFromCache: Bool
}
