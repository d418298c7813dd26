import LarderHTTP
public import LarderResources
import LarderTransport

extension HTTPSource {
    /// How an API pages its lists: which query asks for a page, where its items are, and how the next page is named.
    ///
    /// ```swift
    /// struct Envelope: Decodable, Sendable {
    ///     var data: [Article]
    ///     var nextToken: String?
    /// }
    /// let source = client.source
    /// let byLink = PagedResource<Article>("articles") { try await source.page("/articles", $0, by: .links()) }
    /// let byCursor = PagedResource<Article>("news") {
    ///     try await source.page("/news", $0, by: .cursor(items: \Envelope.data, next: \.nextToken))
    /// }
    /// ```
    public struct Paging<Content: Decodable & Sendable, Item: CacheEntity>: Sendable {
        /// How the next page is named.
        enum Next: Sendable {
            /// By a cursor, which is a part of the query.
            case cursor(@Sendable (Content) -> String?)
            /// By the target of a `Link` field with the relation `next`.
            case link
            /// By a number that is computed from that of the page and its number of items; nil after the last page.
            case number(@Sendable (_ number: Int, _ items: Int) -> Int?, first: Int)
        }

        /// How newer pages and pages around an item are named.
        struct Anchors: Sendable {
            let previous: @Sendable (Content) -> String?
            let before: String
            let around: String?
        }

        let items: @Sendable (Content) -> [Item]
        let next: Next
        var anchors: Anchors?
        var indexed: Indexed?
        /// The names of the query's parts.
        let position: String
        let limit: String?

        /// Pages by cursor: each page contains the cursor of the next one.
        ///
        /// - Parameters:
        ///   - items: the items of a page, in its order.
        ///   - next: the cursor of the next page; nil after the last one.
        ///   - parameter: the name of the query parameter that takes the cursor.
        ///   - limit: the name of the query parameter that takes the number of items; nil: the server decides.
        public static func cursor(
            items: @escaping @Sendable (Content) -> [Item],
            next: @escaping @Sendable (Content) -> String?,
            parameter: String = "cursor",
            limit: String? = "limit"
        ) -> Paging { Paging(items: items, next: .cursor(next), position: parameter, limit: limit) }

        /// The same pages, for an API that also has pages of newer items: for resources with `PagedResource.isNewer`.
        ///
        /// - Parameters:
        ///   - previous: the cursor of the page of newer items; nil for the newest page.
        ///   - before: the name of the query parameter that takes that cursor. The reply has the nearest newer items, newest first.
        ///   - around: the name of the query parameter that takes the identifier of an item; nil if the API cannot open a list at an item.
        public func bothWays(
            previous: @escaping @Sendable (Content) -> String?,
            before: String = "before",
            around: String? = nil
        ) -> Paging {
            var paging = self
            paging.anchors = Anchors(previous: previous, before: before, around: around)
            return paging
        }

        /// Pages by `Link` fields with the relation `next` (RFC 8288). The target must have the origin of the API.
        public static func links(
            items: @escaping @Sendable (Content) -> [Item],
            limit: String? = "per_page"
        ) -> Paging { Paging(items: items, next: .link, position: "", limit: limit) }

        /// Pages by number. The first page without items is the last one.
        ///
        /// Items that are inserted or removed meanwhile move between pages: repeated items are merged, and skipped ones are found by
        /// the next refresh. Prefer cursors or links where the API has them.
        public static func number(
            items: @escaping @Sendable (Content) -> [Item],
            parameter: String = "page",
            limit: String? = "per_page",
            first: Int = 1
        ) -> Paging {
            let next = Next.number({ number, count in count == 0 ? nil : number + 1 }, first: first)
            return Paging(items: items, next: next, position: parameter, limit: limit)
        }

        /// Pages by the number of items before them. The first page without items is the last one. See `number`.
        public static func offset(
            items: @escaping @Sendable (Content) -> [Item],
            parameter: String = "offset",
            limit: String? = "limit"
        ) -> Paging {
            let next = Next.number({ number, count in count == 0 ? nil : number + count }, first: 0)
            return Paging(items: items, next: next, position: parameter, limit: limit)
        }
    }

    /// Fetches a page of a list, conditionally if the request has a validator.
    ///
    /// The result is complete if no page follows. An item that cannot be decoded fails the whole page; stored data is kept.
    ///
    /// - Throws: as `fetch`; `.unexpectedReply` if the next page has another origin, because the request would take the credentials
    ///   there.
    public func page<Content, Item>(
        _ path: String,
        query: [(String, String?)] = [],
        _ request: PageRequest,
        by paging: Paging<Content, Item>
    ) async throws(LarderError) -> Fetched<EntityList<Item>> {
        guard let indexed = paging.indexed, case .cursor = paging.next else {
            return try await wholePage(path, query, request.forWholePage, paging)
        }
        var page = try await request.page(
            of: Item.self,
            batchMaximum: indexed.batchMaximum,
            index: { (request: PageRequest) async throws(LarderError) -> Fetched<PageRequest.Index> in
                let limit = paging.limit.map { [($0, "\(request.limit)" as String?)] } ?? []
                let position = [try paging.parameter(request.position)]
                return try await indexed.index(
                    self,
                    url(path, query + indexed.parameters + limit + position),
                    request.context
                )
            },
            items: { (ids: [String]) async throws(LarderError) -> Fetched<[Item]> in
                if let id = ids.first(where: { $0.contains(",") }) {
                    throw LarderError(
                        .invalidArgument,
                        "The identifier '\(id)' has a comma and cannot be requested by `\(indexed.ids)`: use `Paging` without `indexed`."
                    )
                }
                let target = url(indexed.itemsPath, [(indexed.ids, ids.joined(separator: ","))])
                let context = FetchContext(mustRevalidate: true)
                return try await fetch(url: target, context: context, as: Content.self) {
                    (reply: Reply<Content>) throws(LarderError) in paging.items(reply.value)
                }
            },
            whole: { (request: PageRequest) async throws(LarderError) -> Fetched<EntityList<Item>> in
                try await wholePage(path, query, request, paging)
            }
        )
        page.completeness = page.value?.nextCursor == nil ? .complete : .partial
        return page
    }

    private func wholePage<Content, Item>(
        _ path: String,
        _ query: [(String, String?)],
        _ request: PageRequest,
        _ paging: Paging<Content, Item>
    ) async throws(LarderError) -> Fetched<EntityList<Item>> {
        var position: [(String, String?)] = []
        var number: Int?
        switch paging.next {
        case .cursor: position = [try paging.parameter(request.position)]
        case .link: try paging.reject(request.position)
        case .number(_, let first):
            try paging.reject(request.position)
            let present = request.cursor.flatMap { Int($0) } ?? first
            number = present
            position = [(paging.position, "\(present)")]
        }
        let limit = paging.limit.map { [($0, "\(request.limit)" as String?)] } ?? []
        var target = url(path, query + limit + position)
        if case .link = paging.next, let cursor = request.cursor { target = try linked(cursor, from: target) }
        var page = try await fetch(url: target, context: request.context, as: Content.self) {
            (reply: Reply<Content>) throws(LarderError) in
            let items = paging.items(reply.value)
            let next: String? =
                switch paging.next {
                case .cursor(let next): next(reply.value)
                case .link: try reply.link("next").map { link throws(LarderError) in try cursor(link, at: reply.url) }
                case .number(let next, _): number.flatMap { next($0, items.count) }.map { "\($0)" }
                }
            return EntityList(items, nextCursor: next, previousCursor: paging.anchors?.previous(reply.value))
        }
        page.completeness = page.value?.nextCursor == nil ? .complete : .partial
        return page
    }

    /// The URL of a page that a link names: the cursor on the origin of the first page, never another origin.
    private func linked(_ cursor: String, from first: String) throws(LarderError) -> String {
        guard cursor.hasPrefix("/"), let first = HTTPURL(first), let url = HTTPURL(first.origin + cursor),
            url.origin == first.origin
        else {
            throw LarderError(.invalidArgument, "The cursor '\(cursor)' is not the target of a link. Refresh the list.")
        }
        return url.text
    }

    /// The cursor for a link: its path and query, so that it stays valid if the API moves to another host.
    private func cursor(_ link: String, at url: String) throws(LarderError) -> String {
        guard let target = HTTPURL(link), let api = HTTPURL(base), target.origin == api.origin else {
            throw LarderError(
                .unexpectedReply,
                "\(url) links to a next page of another origin, '\(HTTPURL.redacted(link))'. It is not requested, because the request "
                    + "would take the credentials there."
            ).marked(isFromAPI: true)
        }
        return target.target
    }
}

extension HTTPSource.Paging {
    /// The query parameter of a position, for pages by cursor.
    fileprivate func parameter(_ request: PageRequest.Position) throws(LarderError) -> (String, String?) {
        switch request {
        case .newest: return (position, nil)
        case .older(let cursor): return (position, cursor)
        case .newer(let cursor): if let anchors { return (anchors.before, cursor) }
        case .around(let id): if let name = anchors?.around { return (name, id) }
        }
        throw Self.unknown(request)
    }

    /// Rejects the positions that pages by link or number have no names for.
    fileprivate func reject(_ request: PageRequest.Position) throws(LarderError) {
        switch request {
        case .newest, .older: return
        case .newer, .around: throw Self.unknown(request)
        }
    }

    private static func unknown(_ request: PageRequest.Position) -> LarderError {
        LarderError(
            .invalidArgument,
            "The page \(request) cannot be requested: use pages by cursor, and describe with `Paging.bothWays` how the API names it."
        )
    }
}

extension HTTPSource.Paging where Content == [Item] {
    /// Pages by `Link` fields, whose content is an array of items.
    public static func links(limit: String? = "per_page") -> Self { links(items: { $0 }, limit: limit) }

    /// Pages by number, whose content is an array of items.
    public static func number(parameter: String = "page", limit: String? = "per_page", first: Int = 1) -> Self {
        number(items: { $0 }, parameter: parameter, limit: limit, first: first)
    }

    /// Pages by offset, whose content is an array of items.
    public static func offset(parameter: String = "offset", limit: String? = "limit") -> Self {
        offset(items: { $0 }, parameter: parameter, limit: limit)
    }
}
