public import LarderModels

/// The feed: what is stored at once, revalidated after a minute; edits, deletes and counts arrive without refetching pages.
public struct Feed: Sendable {
    static let key = QueryKey("feed")

    private let cache: LarderCache
    private let source: HTTPSource

    init(_ cache: LarderCache, _ source: HTTPSource) {
        self.cache = cache
        self.source = source
    }

    /// The newest posts, as a resource.
    public var newest: Resource<EntityList<Post>> {
        let source = source
        var feed = Resource<EntityList<Post>>.list("feed", of: Post.self, freshness: .timeToLive(.seconds(60))) {
            context in
            try await source.page("/v1/feed", [("limit", "50")], context)
        }
        feed.tags = [LarderClient.everything]
        return feed
    }

    /// A post, as a resource.
    public func post(_ id: String) -> Resource<Post> {
        let source = source
        return .entity(id, freshness: .timeToLive(.seconds(60))) { context in
            try await source.fetch("/v1/posts/\(HTTPSource.escape(id))", context: context)
        }
    }

    /// The newest posts, and what becomes of them.
    public func snapshots(_ policy: ReadPolicy? = nil) -> Snapshots<EntityList<Post>> {
        cache.snapshots(newest, policy)
    }
}
