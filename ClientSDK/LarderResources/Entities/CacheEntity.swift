public import LarderStorage

/// A value with an identity: a change to it is shown in every list and value that contains it.
///
/// An entity is stored once, under its type and identifier; lists contain its key. If `entityType` or the coding of a stored type
/// changes, stored values cannot be read, which is a miss and not an error.
public protocol CacheEntity: Codable, Sendable, Equatable, Identifiable where ID == String {
    /// The name of the type in the store, such as `post`. Names that begin with "=" are reserved.
    static var entityType: String { get }
    /// The server's version, which grows with each change; nil if the server has none: then the order of requests decides.
    var entityVersion: Int64? { get }
    /// Whether entities of this type must not be written to the disk.
    static var isMemoryOnly: Bool { get }
    /// The codec of the type; JSON by default.
    static var codec: PayloadCodec<Self> { get }
}

extension CacheEntity {
    /// No version: the reply of the later request is newer.
    public var entityVersion: Int64? { nil }

    /// Entities may be stored on disk.
    public static var isMemoryOnly: Bool { false }

    /// The entity's key in the store.
    public var entityKey: EntityKey { EntityKey(Self.self, id) }

    /// The key of an entity of this type.
    public static func key(_ id: String) -> EntityKey { EntityKey(Self.self, id) }
}

extension CacheEntity {
    /// JSON by Foundation's encoder and decoder.
    public static var codec: PayloadCodec<Self> { .json }
}
