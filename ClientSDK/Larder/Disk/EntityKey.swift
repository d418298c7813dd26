/// What an entity is called: its type and its identifier within that type.
///
/// The store tells keys apart by their bytes in UTF-8, whatever they contain.
public struct EntityKey: Sendable, Hashable, CustomStringConvertible {
    /// The entity's type: `post`.
    public var type: String
    /// Its identifier within the type: `post_1042`.
    public var id: String

    /// A key of both parts.
    public init(type: String, id: String) {
        self.type = type
        self.id = id
    }

    /// Both parts, for messages.
    public var description: String { "\(type)/\(id)" }
}
