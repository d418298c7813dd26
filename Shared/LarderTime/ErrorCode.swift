/// A failure code of the error type `Scope`.
///
/// A struct rather than an enum, so that codes can be added without breaking a `switch` of an app. The codes of an error type are in an
/// extension of `ErrorCode` where `Scope` is that type.
public struct ErrorCode<Scope>: RawRepresentable, Sendable, Hashable {
    /// The name of the code, which is stable.
    public let rawValue: String

    /// Makes a code that this version may not know.
    public init(rawValue: String) { self.rawValue = rawValue }
}
