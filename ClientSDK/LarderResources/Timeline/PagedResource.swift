import LarderEvents
public import LarderStorage

/// A list that is fetched in pages by cursor, newest first: a feed, a conversation, an account's history.
///
/// Its pages are merged into a `Timeline`. The identity is the key and the type of item: resources with one identity
/// share the stored list and requests. Other settings apply per `Timeline`, as with reads of a `Resource`. The newest page is fetched by
/// the resource that was passed last, and each other page by that of the timeline that asks for it.
///
/// ```swift
/// var feed = PagedResource<Article>("feed", pageSize: 20, freshness: .timeToLive(.seconds(60))) { request in
///     try await client.source.page("/feed", request, by: .links())
/// }
/// feed.completeness = .partial                                // a page lacks members that an article has
/// let timeline = larder.timeline(feed)
/// ```
public struct PagedResource<Item: CacheEntity>: Sendable {
    /// The name and the parameters.
    public let key: QueryKey
    /// When the newest page is fresh.
    public var freshness: Freshness.Demand
    /// The read policy, unless a reader passes another one.
    public var policy: ReadPolicy
    /// The number of items of a page.
    public var pageSize: Int
    /// The largest page of the source: on a poor network pages grow up to it. Nil: always `pageSize`.
    public var pageSizeMaximum: Int?
    /// The maximum number of stored items, at least two pages. Older items are dropped and can be loaded again.
    public var itemsMaximum = 5_000
    /// Whether older items are dropped when the refreshed first page does not overlap them: they are loaded again when a reader pages to
    /// them. Otherwise they are kept behind a gap, which can be filled.
    public var dropsBehindGap = false
    /// How complete the items of a page are.
    public var completeness = Completeness.complete
    /// Whether the list is kept in memory only.
    public var isMemoryOnly = false
    /// Names for invalidation of many values at once.
    public var tags: Set<String> = []
    /// The temporary client ID of an item that was created on this device. If both items are in the list, because an event came before
    /// the acknowledgement, only the server's is shown.
    public var temporaryID: (@Sendable (Item) -> String?)?
    /// The order of the list: whether the item with the first identifier comes before the one with the second. Identifiers are given by
    /// their descriptions. It allows to open timelines at items (`Timeline.open`): the fetch function must then answer every
    /// `PageRequest.position`. Nil: only the newest and older pages are requested.
    public var isNewer: (@Sendable (_ id: String, _ other: String) -> Bool)?
    /// Whether the list is cached at present; nil: always. See `Resource.isCached`.
    public var isCached: (@Sendable () -> Bool)?
    /// The time limit of a page; nil: no limit.
    public var timeout: Duration? = .seconds(30)

    let fetch: @Sendable (PageRequest) async throws -> Fetched<EntityList<Item>>

    /// The loaded part of the list as a resource, refreshed by its newest page. It shares one value with timelines.
    public var list: Resource<Timeline<Item>.List> {
        let fetch = fetch
        let limit = max(1, pageSize)
        var list = Resource<Timeline<Item>.List>(
            key,
            freshness: freshness,
            policy: policy,
            demands: .partial,
            shape: .normalized(Timeline<Item>.List.normalizer(of: self))
        ) { context in
            let request = PageRequest(context, limit: limit)
            var list = try await fetch(request).map { Timeline<Item>.List($0) }
            list.completeness = .complete
            return list
        }
        list.isMemoryOnly = isMemoryOnly
        list.tags = tags
        list.isCached = isCached
        list.timeout = timeout
        return list
    }

    /// The page size at the current network level.
    func pageSize(_ conduct: NetworkBehavior) -> Int {
        let usual = max(1, pageSize)
        return max(usual, min(pageSizeMaximum ?? usual, conduct.batch(usual)))
    }

    /// Creates a paged list.
    ///
    /// - Parameters:
    ///   - name: the name; with the parameters it is the key.
    ///   - parameters: tell apart timelines of one name.
    ///   - type: the type of the items.
    ///   - pageSize: the number of items that a request asks for.
    ///   - freshness: how long a page is fresh.
    ///   - policy: how the list is read unless the reader says otherwise.
    ///   - fetch: returns a page; `notModified` if the validator of the request still holds; `gone` if the server does
    ///     not know the cursor any more. It should react to cancellation; otherwise it is abandoned at the timeout.
    public init(
        _ name: String,
        _ parameters: [String: String] = [:],
        of type: Item.Type = Item.self,
        pageSize: Int = 20,
        freshness: Freshness.Demand = .source,
        policy: ReadPolicy = .staleWhileRevalidate,
        fetch: @escaping @Sendable (PageRequest) async throws -> Fetched<EntityList<Item>>
    ) {
        key = QueryKey(name, parameters)
        self.pageSize = pageSize
        self.freshness = freshness
        self.policy = policy
        self.fetch = fetch
    }
}
