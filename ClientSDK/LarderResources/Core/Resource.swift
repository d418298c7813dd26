public import LarderStorage

/// A readable value: its identity, its configuration and its fetch function.
///
/// The identity is the key, the type of the value and the shape (a value stored whole, an entity, or a value made of entities).
/// Resources with one identity share the stored value, the value in memory and requests. Everything else is configuration, may differ,
/// and applies per read:
///
/// - `policy`, `freshness` and `demands` apply to the read or the observer that passes the resource.
/// - `timeout`: a request has the timeout of the read that begins it. A read that joins the request waits no longer than its own.
/// - `tags`: a value has all tags that readers in this process have passed.
/// - `isMemoryOnly`: true wins over false. The first read with true removes from the disk what is stored under the key, and nothing is written under the key until the cache is closed.
/// - A request calls the fetch function of the latest reader, which may know a newer session.
///
/// ```swift
/// // A value that is stored whole, with a lifetime of its own.
/// let countries = Resource<[String]>("countries", ["language": "en"], freshness: .reference) { context in
///     try await client.source.fetch("/countries", context: context)
/// }
/// // An entity, which is as fresh as its server says.
/// let article = Resource<Article>.entity("7") { try await client.source.fetch("/articles/7", context: $0) }
/// // A list of entities, which shows a change of one of them wherever it comes from.
/// let articles = Resource<EntityList<Article>>.list("articles") { context in
///     try await client.source.fetch("/articles", context: context, as: [Article].self).map { EntityList($0) }
/// }
/// ```
public struct Resource<Value: Sendable & Equatable>: Sendable {
    /// The name and the parameters: with the type and the shape of the value, the identity.
    public let key: QueryKey
    /// When values are fresh. By default the source decides; a stated freshness overrides the lifetime that the source states.
    public var freshness: Freshness.Demand
    /// The read policy, unless a read passes another one.
    public var policy: ReadPolicy
    /// Whether values are kept in memory only, as those that a server marks `no-store`.
    public var isMemoryOnly = false
    /// Names for invalidation of many values at once (`LarderCache.invalidate(tag:)`). Any characters are allowed.
    public var tags: Set<String> = []
    /// The time limit of a fetch; nil: no limit.
    public var timeout: Duration? = .seconds(30)
    /// The completeness that a value needs to count as fresh.
    public var demands: Completeness
    /// Whether the resource is cached at present; nil: always. Called for each read and observation that begins, on its thread.
    ///
    /// If not, the read asks the network only (a policy without the network gets nothing), and from then on the value is kept off the
    /// disk until the cache is closed. Pending changes of the outbox are shown and sent as usual.
    public var isCached: (@Sendable () -> Bool)?

    let shape: Shape<Value>
    /// The kind of the shape: a part of the resource's identity.
    let kind: ShapeKind
    let fetch: @Sendable (FetchContext) async throws -> Fetched<Value>

    init(
        _ key: QueryKey,
        freshness: Freshness.Demand,
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

extension Resource: CustomStringConvertible {
    /// The type of the value and the key.
    public var description: String { "Resource<\(Value.self)>(\(key))" }
}

/// The kinds of shapes. Resources of different kinds have different identities, whatever their keys.
enum ShapeKind: Sendable, Hashable {
    case whole, entity, normalized
}

/// How values of a resource are stored.
enum Shape<Value: Sendable & Equatable>: Sendable {
    /// As one entity, or as one value of its own.
    case single(EntityKey, PayloadCodec<Value>, version: @Sendable (Value) -> Int64?)
    /// As entities, and an index that names them.
    case normalized(Normalizer<Value>)

    var kind: ShapeKind {
        switch self {
        case .single(let key, _, _): key.type.utf8.first == EntityKey.wholeValuePrefix ? .whole : .entity
        case .normalized: .normalized
        }
    }

    /// The key of the entity that holds the value; nil if the value is made of several entities.
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
    init<E: CacheEntity>(_ type: E.Type, _ id: String) {
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
    /// A value that is stored whole.
    ///
    /// - Parameters:
    ///   - name: the name; with the parameters it is the key.
    ///   - parameters: tell apart resources of one name.
    ///   - freshness: how long the value is fresh.
    ///   - policy: how it is read unless the reader says otherwise.
    ///   - codec: encodes the value for the disk.
    ///   - fetch: returns the value, or `notModified` if the validator of the context still holds. It should react to cancellation;
    /// otherwise it is abandoned at the timeout.
    public init(
        _ name: String,
        _ parameters: [String: String] = [:],
        freshness: Freshness.Demand = .source,
        policy: ReadPolicy = .cacheFirst,
        codec: PayloadCodec<Value>? = nil,
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

extension Resource where Value: CacheEntity {
    /// An entity by its identifier. Lists and events change the same entity.
    ///
    /// - Parameters: as of `init(_:_:freshness:policy:codec:fetch:)`.
    public static func entity(
        _ id: Value.ID,
        freshness: Freshness.Demand = .source,
        policy: ReadPolicy = .cacheFirst,
        fetch: @escaping @Sendable (FetchContext) async throws -> Fetched<Value>
    ) -> Resource {
        Resource(
            QueryKey(Value.entityType, [.init("id", id.description)]),
            freshness: freshness,
            policy: policy,
            demands: .complete,
            shape: .single(Value.key(id), Value.codec, version: { $0.entityVersion }),
            fetch: fetch
        )
    }
}

extension Resource {
    /// A value that is made of entities: each entity is stored once, and an index lists their keys.
    ///
    /// - Parameters: as of `init(_:_:freshness:policy:codec:fetch:)`, and:
    ///   - normalizer: how the value is split into entities and joined again.
    package init(
        _ name: String,
        _ parameters: [String: String] = [:],
        of normalizer: Normalizer<Value>,
        freshness: Freshness.Demand = .source,
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
