/// A request method (RFC 9110 §9). Case matters.
public struct Method: Sendable, Hashable, CustomStringConvertible {
    /// The method as it stands in the request line.
    public let rawValue: String

    /// A method by its name.
    public init(_ rawValue: String) { self.rawValue = rawValue }

    /// The method as it stands in the request line.
    public var description: String { rawValue }

    /// Whether it asks for no change (RFC 9110 §9.2.1).
    public var isSafe: Bool { self == .get || self == .head || self == .options || rawValue == "TRACE" }

    /// Whether sending it twice is meant to do no more than sending it once (RFC 9110 §9.2.2).
    public var isIdempotent: Bool { isSafe || self == .put || self == .delete }

    /// `GET`.
    public static let get = Method("GET")
    /// `HEAD`.
    public static let head = Method("HEAD")
    /// `POST`.
    public static let post = Method("POST")
    /// `PUT`.
    public static let put = Method("PUT")
    /// `PATCH` (RFC 5789).
    public static let patch = Method("PATCH")
    /// `DELETE`.
    public static let delete = Method("DELETE")
    /// `OPTIONS`.
    public static let options = Method("OPTIONS")
}
