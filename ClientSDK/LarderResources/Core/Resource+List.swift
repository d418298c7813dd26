public import LarderStorage

extension Resource {
    /// A list of entities.
    ///
    /// - Parameters:
    ///   - name: the name of the list, unique in the app.
    ///   - parameters: tell apart lists of one name.
    ///   - type: the type of the items.
    ///   - completeness: how much of an entity the list shows.
    ///   - freshness: how long the list is fresh.
    ///   - policy: how it is read unless the reader says otherwise.
    ///   - fetch: returns the list; see `init(_:_:freshness:policy:codec:fetch:)`.
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
}
