public import LarderStorage

/// A value with an identity: a change to it is shown in every list and value that contains it.
///
/// An entity is stored once, under its type and identifier; lists contain its key. If `entityType` or the coding of a stored type
/// changes, stored values cannot be read, which is a miss and not an error.
///
/// The description of an identifier is its key in the store: it must be unique within the type and must never change, as those of
/// `String`, integers and `UUID`.
public protocol CacheEntity: Codable, Sendable, Equatable, Identifiable
where ID: CustomStringConvertible & Sendable {
    /// The name of the type in the store, such as `post`. Names that begin with "=" are reserved.
    static var entityType: String { get }
    /// The server's version, which grows with each change; nil if the server has none: then the order of requests decides.
    var entityVersion: Int64? { get }
    /// Whether entities of this type must not be written to the disk.
    static var isMemoryOnly: Bool { get }
    /// The codec of the type; JSON by default.
    static var codec: PayloadCodec<Self> { get }
    /// Combines a value that has arrived with the stored one; nil, the default: it replaces the stored one.
    ///
    /// For a type of which several endpoints return different parts: keep what the new value does not contain. Give the resources of such
    /// endpoints the completeness `.partial`, so that a part does not make the whole value fresh. Called within the commit for every value
    /// of a source or an event, unless the stored one has a higher version or came with a later request. It must be pure.
    ///
    ///     static let merge: Merge? = { new, stored in
    ///         var merged = new
    ///         merged.isBookmarked = new.isBookmarked ?? stored.isBookmarked
    ///         return merged
    ///     }
    static var merge: Merge? { get }
    /// The indices of the type for local queries (`LarderCache.entities`); none by default.
    static var indices: [Index] { get }

    typealias Index = EntityIndex<Self>
    typealias Merge = @Sendable (_ new: Self, _ stored: Self) -> Self
}

extension CacheEntity {
    /// No version: the reply of the later request is newer.
    public var entityVersion: Int64? { nil }

    /// Entities may be stored on disk.
    public static var isMemoryOnly: Bool { false }

    /// New values replace stored ones.
    public static var merge: Merge? { nil }

    /// No index.
    public static var indices: [Index] { [] }

    /// The entity's key in the store.
    public var entityKey: EntityKey { EntityKey(Self.self, entityID) }

    /// The key of an entity of this type.
    public static func key(_ id: ID) -> EntityKey { EntityKey(Self.self, id.description) }

    /// The identifier as it is stored.
    var entityID: String { id.description }

    /// JSON by Foundation's encoder and decoder.
    public static var codec: PayloadCodec<Self> { .json }
}
