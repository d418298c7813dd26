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

    /// Compares the bytes, as the store does: `String` takes other normal forms of a text for equal.
    public static func == (left: EntityKey, right: EntityKey) -> Bool {
        left.type == right.type && left.id == right.id && left.id.utf8.elementsEqual(right.id.utf8)
    }

    /// Both parts, for messages.
    public var description: String { "\(type)/\(id)" }
}
