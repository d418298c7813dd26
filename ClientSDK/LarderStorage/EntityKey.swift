/// The key of an entity: its type and its identifier within that type.
///
/// Keys are compared by their bytes in UTF-8.
public struct EntityKey: Sendable, Hashable, CustomStringConvertible {
    /// The entity's type: `post`.
    public var type: String
    /// The identifier within the type: `post_1042`.
    public var id: String

    /// Creates a key.
    public init(type: String, id: String) {
        self.type = type
        self.id = id
    }

    /// Both parts, for messages.
    public var description: String { "\(type)/\(id)" }
}
