/// What can be read: its name and parameters, how fresh it has to be, how it is read, and where it comes from. One value says it all.
///
/// Two resources with one key and one type of value are one thing: they share what is stored, what is in memory, and requests.
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
    /// Names by which it can be invalidated together with others (`LarderCache.invalidate(tag:)`).
    public var tags: Set<String> = []
    /// How long a fetch may take; nil: as long as it likes.
    public var timeout: Duration? = .seconds(30)
    /// How much a value must hold to be called fresh.
    public var demands: Completeness

    let shape: Shape<Value>
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
        self.fetch = fetch
    }
}

/// How a resource's values lie in the store.
enum Shape<Value: Sendable & Equatable>: Sendable {
    /// As one entity, or as one value of its own.
    case single(EntityKey, Codec<Value>, version: @Sendable (Value) -> Int64?)
    /// As entities, and an index that names them.
    case normalized(Normalizer<Value>)
}

extension EntityKey {
    /// What a value that is stored whole is called. No entity type of a user's should begin with «=».
    init(wholeValueOf key: QueryKey) { self.init(type: "=" + key.name, id: key.canonicalParameters) }
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
