public import Larder
import LarderModels

extension HTTPSource {
    /// Fetches a page of a list with cursors, conditionally if the context has a validator.
    ///
    /// The result is complete if no page follows. An item that cannot be decoded fails the whole page; stored data is kept.
    ///
    /// - Parameters:
    ///   - path: the absolute path. Escape variable segments with `HTTPSource.escape`.
    ///   - query: `limit` and the cursor. Nil values are left out.
    /// - Throws: as `fetch`.
    public func page<Item: CacheEntity & Hashable>(
        _ path: String,
        _ query: [(String, String?)],
        _ context: FetchContext
    ) async throws(LarderError) -> Fetched<EntityList<Item>> {
        let fetched = try await fetch(path, query, context: context, as: Page<Item>.self)
        var list = fetched.map { EntityList($0.items, nextCursor: $0.nextCursor) }
        list.completeness = list.value?.nextCursor == nil ? .complete : .partial
        return list
    }
}
