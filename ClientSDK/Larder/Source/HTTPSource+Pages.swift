import LarderModels

extension HTTPSource {
    /// Gets a page of a list that is read by cursor, as the source of a list resource: `items`, `nextCursor` and `previousCursor`,
    /// conditional where the context has a validator.
    ///
    /// The page is complete where no other follows it. An item that cannot be decoded fails the whole page: what is stored stays.
    ///
    /// - Parameters:
    ///   - path: the list's, from a slash on; what is variable in it goes through `escape`.
    ///   - query: what else is asked: `limit`, the cursor. Values that are nil are left out.
    /// - Throws: as `fetch`.
    public func page<Item: Entity & Hashable>(
        _ path: String,
        _ query: [(String, String?)],
        _ context: FetchContext
    ) async throws(LarderError) -> Fetched<EntityList<Item>> {
        let fetched = try await fetch(path, query, context: context, as: Page<Item>.self)
        var list = fetched.map {
            EntityList($0.items, nextCursor: $0.nextCursor, previousCursor: $0.previousCursor)
        }
        list.completeness = list.value?.nextCursor == nil ? .complete : .partial
        return list
    }
}
