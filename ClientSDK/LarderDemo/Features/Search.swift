public import Larder
public import LarderModels

/// Search in posts and people: paged lists, each stored under the words of its search.
///
/// A result is fresh for 60 s and is shown with its age afterwards, offline too. The found entities are those of the feed and of profiles: a
/// like changes them everywhere. A search that nobody observes any more is cancelled.
public struct Search: Sendable {
    private let client: APIClient

    init(_ client: APIClient) { self.client = client }

    /// Results on a screen are asked for again before they are five minutes old.
    private static let freshness = Freshness.Demand.rule(
        Freshness.Rule(
            .timeToLive(.seconds(60)),
            level: .boundedStaleness(.seconds(300)),
            stretchClass: .interactive
        )
    )

    /// The posts with all words of a text, newest first.
    public func posts(_ text: String) -> Timeline<Post> { client.cache.timeline(pages("posts", text)) }

    /// The people with all words of a text in their name, handle, place or description.
    public func people(_ text: String) -> Timeline<Profile> { client.cache.timeline(pages("people", text)) }

    /// The loaded part of `posts` as a resource, refreshed by its first page.
    public func postList(_ text: String) -> Resource<Timeline<Post>.List> { pages("posts", text).list }

    /// The loaded part of `people` as a resource, refreshed by its first page.
    public func peopleList(_ text: String) -> Resource<Timeline<Profile>.List> { pages("people", text).list }

    private func pages<Item: CacheEntity>(_ kind: String, _ text: String) -> PagedResource<Item>
    where Item: Codable & Hashable {
        let (source, words) = (client.source, Self.words(text))
        var pages = PagedResource<Item>(
            "search",
            ["kind": kind, "q": words],
            pageSize: 20,
            freshness: Self.freshness
        ) { request in
            try await source.page(
                "/v1/search",
                query: [("q", words), ("kind", kind)],
                request,
                by: .cursor(items: { (page: Page<Item>) in page.items }, next: { $0.nextCursor }, parameter: "after")
            )
        }
        // A deleted post is not worth a place in an old search.
        pages.dropsBehindGap = true
        pages.itemsMaximum = 500
        pages.tags = [LarderClient.everything]
        pages.isCached = client.isCached("search")
        return pages
    }

    /// The words in small letters with one space between them, so that equal searches are one.
    static func words(_ text: String) -> String { text.lowercased().split(separator: " ").joined(separator: " ") }
}
