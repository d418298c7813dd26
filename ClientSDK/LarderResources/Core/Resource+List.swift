public import LarderStorage

extension Resource {
    /// A list of entities.
    ///
    /// - Parameters: as of `init(_:_:freshness:policy:codec:fetch:)`, and:
    ///   - type: the type of the items.
    ///   - completeness: how much of an entity the list shows.
    public static func list<Item: CacheEntity>(
        _ name: String,
        _ parameters: [String: String] = [:],
        of type: Item.Type = Item.self,
        showing completeness: Completeness = .complete,
        freshness: Freshness.Demand = .source,
        policy: ReadPolicy = .staleWhileRevalidate,
        fetch: @escaping @Sendable (FetchContext) async throws -> Fetched<Value>
    ) -> Resource where Value == EntityList<Item> {
        Resource(
            name,
            parameters,
            of: EntityList.normalizer(showing: completeness),
            freshness: freshness,
            policy: policy,
            fetch: fetch
        )
    }

    /// A list of entities with a declared condition and order: a change of an entity moves it between such lists at once,
    /// whether it comes from a put, an event, a pending operation or another list, offline too and after a restart.
    ///
    ///     let open = Resource<EntityList<WorkItem>>.list(
    ///         "tasks", ["status": "open"], of: WorkItem.self,
    ///         where: { $0.status == .open }, sortedBy: { ($0.due, $0.id) < ($1.due, $1.id) }
    ///     ) { context in … }
    ///
    /// The source decides about everything that it has returned: condition and order apply only to entities that have changed
    /// since, and to those with pending operations. While `nextCursor` is not nil, only the beginning of the list is known, and
    /// an entity that sorts behind it is not shown. If entities that have changed since the last answer were evicted, the list is stale.
    ///
    /// The functions must be pure and depend on nothing but their arguments and what the parameters of the key say. They are
    /// called when the list is assembled, outside of locks and transactions, from any thread.
    ///
    /// - Parameters: as of the function above, and:
    ///   - isMember: whether an entity belongs to the list.
    ///   - areInIncreasingOrder: whether the first entity comes before the second: a strict weak ordering.
    ///   - temporaryID: the identifier that an entity had on this device before the source confirmed it; nil if it had none. An entity
    ///     under that identifier is not shown beside the confirmed one.
    public static func list<Item: CacheEntity>(
        _ name: String,
        _ parameters: [String: String] = [:],
        of type: Item.Type = Item.self,
        where isMember: @escaping @Sendable (Item) -> Bool,
        sortedBy areInIncreasingOrder: @escaping @Sendable (Item, Item) -> Bool,
        temporaryID: @escaping @Sendable (Item) -> String? = { _ in nil },
        showing completeness: Completeness = .complete,
        freshness: Freshness.Demand = .source,
        policy: ReadPolicy = .staleWhileRevalidate,
        fetch: @escaping @Sendable (FetchContext) async throws -> Fetched<Value>
    ) -> Resource where Value == EntityList<Item> {
        Resource(
            name,
            parameters,
            of: EntityList.normalizer(
                showing: completeness,
                where: isMember,
                sortedBy: areInIncreasingOrder,
                temporaryID: temporaryID
            ),
            freshness: freshness,
            policy: policy,
            fetch: fetch
        )
    }
}
