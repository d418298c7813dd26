/// A value and what is known of it.
public struct Snapshot<Value: Sendable>: Sendable {
    /// Where the value came from this time.
    public enum Source: Sendable, Hashable {
        /// The memory tier.
        case memory
        /// The disk tier.
        case disk
        /// The server just now, be it that it sent the value or said that it is unchanged.
        case network
    }

    /// The value.
    public let value: Value
    /// Its times.
    public let freshness: Freshness
    /// Why it is stale, as far as it is.
    public let staleReason: Freshness.StaleReason?
    /// Where it came from.
    public let source: Source
    /// Why it could not be refreshed, if that was tried and failed.
    public let refreshError: LarderError?
}

/// Why a read gave nothing.
public struct LarderError: Error, Sendable, CustomStringConvertible {
    /// What kind of failure it was. A struct, because kinds will be added.
    public struct Code: RawRepresentable, Sendable, Hashable {
        /// The code's name.
        public let rawValue: String

        /// A code by its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// There was no reply, and nothing in the cache to show instead.
        public static let offline = Code(rawValue: "offline")
        /// The server refused; the problem's title is in the description.
        public static let refused = Code(rawValue: "refused")
        /// The reply was not what the API promises. The cache is as it was.
        public static let unexpectedReply = Code(rawValue: "unexpectedReply")
        /// The store could not be read or written.
        public static let storage = Code(rawValue: "storage")
    }

    /// What kind of failure it was.
    public let code: Code
    /// What happened and what to do.
    public let description: String
    /// What led to it.
    public let cause: (any Error)?

    init(_ code: Code, _ description: String, cause: (any Error)? = nil) {
        self.code = code
        self.description = description
        self.cause = cause
    }
}
