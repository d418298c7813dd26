/// A thing with an identity: wherever it is shown, it is the same, and a change to it is a change everywhere.
///
/// Entities are kept once, under their type and identifier; lists name them. Changing `entityType` or the coding of a type that
/// was stored makes what is stored unreadable, which is a miss and not an error.
public protocol Entity: Codable, Sendable, Equatable, Identifiable where ID == String {
    /// The type's name in the store: `post`. It must not begin with "=": such names are reserved.
    static var entityType: String { get }
    /// The server's version, which only grows with changes; nil where the server has none, and then the order of requests decides.
    var entityVersion: Int64? { get }
    /// Whether entities of this type may not touch the disk.
    static var isMemoryOnly: Bool { get }
    /// How entities of this type become bytes; JSON unless the type says otherwise.
    static var codec: Codec<Self> { get }
}

extension Entity {
    /// No version: of two replies that one is newer whose request was sent later.
    public var entityVersion: Int64? { nil }

    /// They may be stored on disk.
    public static var isMemoryOnly: Bool { false }

    /// What the entity is called in the store.
    public var entityKey: EntityKey { EntityKey(Self.self, id) }

    /// What an entity of this type is called in the store.
    public static func key(_ id: String) -> EntityKey { EntityKey(Self.self, id) }
}

extension Entity {
    /// JSON as Foundation writes and reads it.
    public static var codec: Codec<Self> { .json }
}
