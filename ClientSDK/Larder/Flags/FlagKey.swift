/// A feature flag: its name, its type and its default value.
///
/// ```swift
/// extension FlagKey<Bool> {
///     static let newFeed = FlagKey("feed.new", default: false)
/// }
/// ```
public struct FlagKey<Value: FlagValue>: Sendable, Hashable where Value: Hashable {
    /// The name on servers and in storage.
    public let name: String
    /// The value without an override or a server setting.
    public let defaultValue: Value

    /// Creates a key.
    public init(_ name: String, default value: Value) {
        self.name = name
        defaultValue = value
    }
}
