/// What can be read: its name and parameters, how fresh it has to be, how it is read, and where it comes from. One value says it all.
///
/// Resources with the same key, type of value and shape (a value stored whole, an entity, or a value made of entities) are one
/// thing: they share what is stored, what is in memory, and requests. Their other settings may differ, and travel with each read:
///
/// - `policy`, `freshness` and `demands` hold for the read or the observer that passes the resource, whoever stored the value.
/// - `timeout`: a request has the timeout of the read that begins it. A read that joins the request waits no longer than its own.
/// - `tags`: a value has all tags that readers in this process have given it.
/// - `retention`: `.memory` wins over `.disk`. The first read with `.memory` removes from the disk what is stored under the key, and
///   nothing is written under the key until the cache is closed.
/// - A request calls the fetch function of the latest reader, which may know a newer session.
public struct Resource<Value: Sendable & Equatable>: Sendable {
    /// Where values are kept.
    public enum Retention: Sendable, Hashable {
        /// In memory and on disk.
        case disk
        /// In memory only, as for what a server marks `no-store`.
        case memory
    }

    /// Its name and its parameters.
    public let key: QueryKey
    /// When its values are fresh.
    public var freshness: FreshnessDemand
    /// How it is read, unless a reader says otherwise.
    public var policy: ReadPolicy
    /// Where its values are kept.
    public var retention: Retention = .disk
    /// Names by which it can be invalidated together with others (`LarderCache.invalidate(tag:)`). They may have any characters.
    public var tags: Set<String> = []
    /// How long a fetch may take; nil: as long as it likes.
    public var timeout: Duration? = .seconds(30)
    /// How much a value must hold to be called fresh.
    public var demands: Completeness

    let shape: Shape<Value>
    /// The kind of the shape: a part of the resource's identity.
    let kind: ShapeKind
    let fetch: @Sendable (FetchContext) async throws -> Fetched<Value>

    init(
        _ key: QueryKey,
        freshness: FreshnessDemand,
        policy: ReadPolicy,
        demands: Completeness,
        shape: Shape<Value>,
        fetch: @escaping @Sendable (FetchContext) async throws -> Fetched<Value>
    ) {
        self.key = key
        self.freshness = freshness
        self.policy = policy
        self.demands = demands
        self.shape = shape
        kind = shape.kind
        self.fetch = fetch
    }
}

/// The kinds of shapes. Resources of different kinds are different things, whatever their keys.
enum ShapeKind: Sendable, Hashable {
    case whole, entity, normalized
}

/// How a resource's values lie in the store.
enum Shape<Value: Sendable & Equatable>: Sendable {
    /// As one entity, or as one value of its own.
    case single(EntityKey, Codec<Value>, version: @Sendable (Value) -> Int64?)
    /// As entities, and an index that names them.
    case normalized(Normalizer<Value>)

    var kind: ShapeKind {
        switch self {
        case .single(let key, _, _): key.type.utf8.first == EntityKey.wholeValuePrefix ? .whole : .entity
        case .normalized: .normalized
        }
    }

    /// The entity that holds the value; nil where it is made of several.
    var entity: EntityKey? {
        guard case .single(let key, _, _) = self else { return nil }
        return key
    }
}

extension EntityKey {
    /// The first character of the types under which values are stored whole: `=`. Entity types must not begin with it.
    static let wholeValuePrefix = UInt8(ascii: "=")

    /// The key under which a value is stored whole.
    init(wholeValueOf key: QueryKey) { self.init(type: "=" + key.name, id: key.canonicalParameters) }

    /// The key of an entity of a user's type.
    init<E: Entity>(_ type: E.Type, _ id: String) {
        let name = E.entityType
        precondition(
            name.utf8.first != EntityKey.wholeValuePrefix,
            "The entityType of \(E.self) is \"\(name)\". Names that begin with \"=\" are reserved for values that are stored whole. "
                + "Choose another name."
        )
        self.init(type: name, id: id)
    }
}

extension Resource where Value: Codable {
    /// A value that is nobody's part: stored whole.
    ///
    /// - Parameters:
    ///   - name: what it is called; with the parameters it is the key.
    ///   - fetch: gets it, and says «not modified» where the validator that it is given still holds. It should notice
    ///     cancellation: one that does not is abandoned at its timeout.
    public init(
        _ name: String,
        _ parameters: [String: String] = [:],
        freshness: FreshnessDemand = .interactive,
        policy: ReadPolicy = .cacheFirst,
        codec: Codec<Value>? = nil,
        fetch: @escaping @Sendable (FetchContext) async throws -> Fetched<Value>
    ) {
        let key = QueryKey(name, parameters)
        self.init(
            key,
            freshness: freshness,
            policy: policy,
            demands: .complete,
            shape: .single(
                EntityKey(wholeValueOf: key),
                codec ?? .json,
                version: { _ in nil }
            ),
            fetch: fetch
        )
    }
}

extension Resource where Value: Entity {
    /// An entity by its identifier. What lists and events bring of it is the same entity.
    ///
    /// - Parameter fetch: gets it; see `init(_:_:freshness:policy:codec:fetch:)`.
    public static func entity(
        _ id: String,
        freshness: FreshnessDemand = .interactive,
        policy: ReadPolicy = .cacheFirst,
        fetch: @escaping @Sendable (FetchContext) async throws -> Fetched<Value>
    ) -> Resource {
        Resource(
            QueryKey(Value.entityType, [.init("id", id)]),
            freshness: freshness,
            policy: policy,
            demands: .complete,
            shape: .single(Value.key(id), Value.codec, version: { $0.entityVersion }),
            fetch: fetch
        )
    }
}

extension Resource {
    /// A value that is made of entities: they are stored once, wherever else they are shown, and an index names them.
    ///
    /// - Parameters:
    ///   - normalizer: how the value is taken apart and put together.
    ///   - fetch: gets it; see `init(_:_:freshness:policy:codec:fetch:)`.
    public init(
        _ name: String,
        _ parameters: [String: String] = [:],
        of normalizer: Normalizer<Value>,
        freshness: FreshnessDemand = .interactive,
        policy: ReadPolicy = .cacheFirst,
        fetch: @escaping @Sendable (FetchContext) async throws -> Fetched<Value>
    ) {
        self.init(
            QueryKey(name, parameters),
            freshness: freshness,
            policy: policy,
            demands: .partial,
            shape: .normalized(normalizer),
            fetch: fetch
        )
    }
}
