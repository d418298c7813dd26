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
        guard let page = fetched.value else {
            if fetched.isGone { return .gone }
            return .notModified()
        }
        return .value(
            EntityList(page.items, nextCursor: page.nextCursor, previousCursor: page.previousCursor),
            validator: fetched.validator,
            completeness: page.nextCursor == nil ? .complete : .partial
        )
    }
}
