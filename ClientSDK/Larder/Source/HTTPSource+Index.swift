import LarderResources

extension HTTPSource.Paging {
    /// How an API answers requests by index.
    struct Indexed: Sendable {
        let index:
            @Sendable (HTTPSource, _ url: String, FetchContext) async throws(LarderError) -> Fetched<PageRequest.Index>
        /// The query of an index besides that of the page.
        let parameters: [(String, String?)]
        let itemsPath: String
        let ids: String
        let batchMaximum: Int
    }

    /// The same pages, for an API that also has them as identifiers with versions, and items by identifiers: a stored page that was not
    /// confirmed for two hours is refreshed by its index, and only items that are missing, older or invalidated are fetched.
    ///
    /// Only for pages by cursor. Without it every page is fetched as a whole.
    ///
    /// - Parameters:
    ///   - parameters: the query parameters that request an index.
    ///   - entries: the identifiers and versions of an index, in order.
    ///   - next: the cursor of the next page; nil after the last one. It must be that of the whole page.
    ///   - previous: the cursor of the page of newer items, as for `bothWays`.
    ///   - itemsPath: the path that answers with items by identifiers, as the content of a page and without those that do not exist.
    ///   - ids: the name of the query parameter that takes the identifiers, separated by commas.
    ///   - batchMaximum: the maximum number of identifiers of a request.
    public func indexed<IndexContent: Decodable & Sendable>(
        _ parameters: [(String, String?)] = [("fields", "id,version")],
        entries: @escaping @Sendable (IndexContent) -> [(id: String, version: Int64)],
        next: @escaping @Sendable (IndexContent) -> String?,
        previous: @escaping @Sendable (IndexContent) -> String? = { _ in nil },
        itemsAt itemsPath: String,
        ids: String = "ids",
        batchMaximum: Int = 100
    ) -> Self {
        var paging = self
        paging.indexed = Indexed(
            index: {
                (source: HTTPSource, url: String, context: FetchContext) async throws(LarderError) in
                try await source.fetch(url: url, context: context, as: IndexContent.self) {
                    (reply: HTTPSource.Reply<IndexContent>) throws(LarderError) in
                    PageRequest.Index(
                        entries(reply.value).map { PageRequest.Index.Entry(id: $0.id, version: $0.version) },
                        nextCursor: next(reply.value),
                        previousCursor: previous(reply.value)
                    )
                }
            },
            parameters: parameters,
            itemsPath: itemsPath,
            ids: ids,
            batchMaximum: batchMaximum
        )
        return paging
    }
}
