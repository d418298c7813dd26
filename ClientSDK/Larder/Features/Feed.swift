public import LarderModels

/// The feed: what is stored at once, revalidated after a minute; edits, deletes and counts arrive without refetching pages.
public struct Feed: Sendable {
    static let key = QueryKey("feed")
    static let timelineKey = QueryKey("feed timeline")

    private let cache: LarderCache
    private let source: HTTPSource

    init(_ cache: LarderCache, _ source: HTTPSource) {
        self.cache = cache
        self.source = source
    }

    /// The newest posts, as a resource.
    public var newest: Resource<EntityList<Post>> {
        let source = source
        var feed = Resource<EntityList<Post>>.list(
            "feed",
            of: Post.self,
            freshness: .timeToLive(.seconds(60), as: .interactive)
        ) {
            context in
            try await source.page("/v1/feed", [("limit", "50")], context)
        }
        feed.tags = [LarderClient.everything]
        return feed
    }

    /// The whole feed in pages: refreshed by overlap, with gaps where something was missed, and new posts held back until they
    /// are taken. What was scrolled to once costs no request again.
    public var timeline: Timeline<Post> {
        let source = source
        var pages = PagedResource<Post>(
            Self.timelineKey.name,
            pageSize: 20,
            freshness: .timeToLive(.seconds(60), as: .interactive)
        ) { request in
            let context = FetchContext(validator: request.validator, isForced: request.isForced)
            let query = [("limit", "\(request.limit)"), ("after", request.cursor)]
            let fetched: Fetched<EntityList<Post>> = try await source.page("/v1/feed", query, context)
            return fetched.map { EntityPage($0.items, nextCursor: $0.nextCursor) }
        }
        pages.pageSizeMaximum = 100
        pages.tags = [LarderClient.everything]
        return cache.timeline(pages)
    }

    /// A post, as a resource.
    public func post(_ id: String) -> Resource<Post> {
        let source = source
        return .entity(id, freshness: .timeToLive(.seconds(60), as: .interactive)) { context in
            try await source.fetch("/v1/posts/\(HTTPSource.escape(id))", context: context)
        }
    }

    /// The newest posts, and what becomes of them.
    public func snapshots(_ policy: ReadPolicy? = nil) -> Snapshots<EntityList<Post>> {
        cache.snapshots(newest, policy)
    }
}
