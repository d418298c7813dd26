public import Larder
public import LarderModels

/// The feed and its posts.
///
/// Stored posts are shown at once and revalidated after 60 s. Edits, deletions and like counts arrive by the change feed. The signed-in
/// user's posts are created, edited and deleted offline too. A new post may be shown twice while the reply to it is lost.
public struct Feed: Sendable {
    static let key = QueryKey("feed")

    let client: APIClient
    /// The operation of changes to posts, to edit a rejected one (`Outbox.edit`) or to decode a queued one (`Outbox.Entry.input`).
    public let operation: WriteBehind<TextChange, Post?>

    init(_ client: APIClient) {
        self.client = client
        operation = Self.operation(client.source, client.cache)
    }

    private func pages(of size: Int) -> PagedResource<Post> {
        let source = client.source
        var pages = PagedResource<Post>(
            Self.key.name,
            pageSize: size,
            freshness: .timeToLive(.seconds(60), as: .interactive)
        ) { request in
            try await source.page("/v1/feed", request, by: .demo(itemsAt: "/v1/posts"))
        }
        pages.pageSizeMaximum = 100
        pages.tags = [LarderClient.everything]
        pages.isCached = client.isCached("feed")
        return pages
    }

    /// The posts that are loaded, newest first, as a resource: refreshed by a page of 50.
    public var newest: Resource<Timeline<Post>.List> { pages(of: 50).list }

    /// The whole feed in pages: refreshed by overlap, with gaps where posts were missed, and with new posts held back
    /// until they are taken. Loaded pages are stored.
    public var timeline: Timeline<Post> { client.cache.timeline(pages(of: 20)) }

    /// A post by its ID. A reader of `likeCount` asks for it by name (`fields:`): it is fresh for 10 s, the text for 60 s.
    public func post(_ id: String) -> Resource<Post> {
        let source = client.source
        let rule = Freshness.Rule(
            .timeToLive(.seconds(60)),
            fieldLifetimes: ["likeCount": .seconds(10)],
            stretchClass: .interactive
        )
        var post = Resource<Post>.entity(id, freshness: .rule(rule)) { context in
            try await source.fetch("/v1/posts/\(HTTPSource.escape(id))", context: context)
        }
        post.isCached = client.isCached("feed")
        return post
    }

    /// Observes the newest posts.
    public func snapshots(_ policy: ReadPolicy? = nil) -> some AsyncSequence<Snapshot<Timeline<Post>.List>, Never>
        & Sendable
    {
        client.cache.snapshots(newest, policy)
    }
}
