/// A feature flag: its name, its type and what it is when nobody says otherwise.
///
///     extension FlagKey<Bool> {
///         static let newFeed = FlagKey("feed.new", default: false)
///     }
public struct FlagKey<Value: FlagValue>: Sendable, Hashable where Value: Hashable {
    /// What it is called by servers and storages.
    public let name: String
    /// What it is when nobody says otherwise.
    public let defaultValue: Value

    /// A flag.
    public init(_ name: String, default value: Value) {
        self.name = name
        defaultValue = value
    }
}
