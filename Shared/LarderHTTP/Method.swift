/// A request method (RFC 9110 §9), case-sensitive.
public struct Method: Sendable, Hashable, CustomStringConvertible {
    /// The method as in the request line.
    public let rawValue: String

    /// Makes a method.
    public init(_ rawValue: String) { self.rawValue = rawValue }

    /// The method as in the request line.
    public var description: String { rawValue }

    /// Whether the method is safe (RFC 9110 §9.2.1).
    public var isSafe: Bool { self == .get || self == .head || self == .options || rawValue == "TRACE" }

    /// Whether the method is idempotent (RFC 9110 §9.2.2).
    public var isIdempotent: Bool { isSafe || self == .put || self == .delete }

    public static let get = Method("GET")
    public static let head = Method("HEAD")
    public static let post = Method("POST")
    public static let put = Method("PUT")
    /// `PATCH` (RFC 5789).
    public static let patch = Method("PATCH")
    public static let delete = Method("DELETE")
    public static let options = Method("OPTIONS")
}
