import LarderStorage

/// An entity to be stored.
struct EntityDraft: Sendable {
    let key: EntityKey
    let value: any Sendable
    let version: Int64?
    var completeness: DiskEntity.Completeness
    let encode: @Sendable () throws -> [UInt8]
    /// The encoded value, if it was encoded before the commit.
    var payload: Result<[UInt8], any Error>?
    let isEqual: @Sendable (any Sendable) -> Bool
    var isMemoryOnly: Bool
    /// For the reply to a write: when it was sent. What was asked for since may be newer.
    var sentAt: Stamp?
    /// The list that it came with; nil if it is an answer for its own key. A draft of a list that is kept off the disk is, too.
    var list: StoredKey?
    /// How it is combined with the stored value; nil: it replaces it.
    private(set) var merge: Merge?

    /// How a value is combined with the stored one (`CacheEntity.merge`).
    struct Merge: Sendable {
        let decode: @Sendable ([UInt8]) throws -> any Sendable
        /// The combined value as a draft; nil if one of the values has another type.
        let draft: @Sendable (_ new: any Sendable, _ stored: any Sendable) -> EntityDraft?
    }

    init<E: CacheEntity>(_ entity: E, completeness: Completeness) {
        self.init(
            entity.entityKey,
            entity,
            codec: E.codec,
            version: entity.entityVersion,
            completeness: completeness
        )
        merge = E.merge.map { merge in
            Merge(decode: { try E.codec.decode($0) }) { new, stored in
                guard let new = new as? E, let stored = stored as? E else { return nil }
                return EntityDraft(merge(new, stored), completeness: completeness)
            }
        }
    }

    init<Value: Sendable & Equatable>(
        _ key: EntityKey,
        _ value: Value,
        codec: PayloadCodec<Value>,
        version: Int64?,
        completeness: Completeness
    ) {
        self.key = key
        self.value = value
        self.version = version
        isMemoryOnly = (Value.self as? any CacheEntity.Type)?.isMemoryOnly ?? false
        self.completeness = completeness.ofEntity
        encode = { try codec.encode(value) }
        isEqual = { ($0 as? Value) == value }
    }

    func encoded() throws -> [UInt8] { try payload?.get() ?? encode() }

    /// The same draft as a part of a list.
    func asPart(of list: StoredKey) -> EntityDraft {
        var draft = self
        draft.list = list
        return draft
    }

    /// The draft for a value of a resource: that of an entity if the key is one of an entity.
    static func value<Value: Sendable & Equatable>(
        _ value: Value,
        _ key: EntityKey,
        _ codec: PayloadCodec<Value>,
        version: Int64?,
        completeness: Completeness
    ) -> EntityDraft {
        if let entity = value as? any CacheEntity, entity.entityKey == key {
            return EntityDraft(entity, completeness: completeness)
        }
        return EntityDraft(key, value, codec: codec, version: version, completeness: completeness)
    }
}
