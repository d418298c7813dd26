/// A list that comes in pages by cursors, newest first: a feed, a conversation, an account's history. One value says it all.
///
/// Its pages are put together into a `Timeline`. Resources of one name, parameters and type of item are one thing: they share
/// what is stored and what is asked for. Settings that differ travel with each `Timeline` as with reads of a `Resource`; how pages
/// are fetched and merged is decided by the resource that was given last.
public struct PagedResource<Item: Entity>: Sendable {
    /// Its name and its parameters.
    public let key: QueryKey
    /// When its newest page counts as fresh.
    public var freshness: FreshnessDemand
    /// How it is read, unless a reader says otherwise.
    public var policy: ReadPolicy
    /// How many items a page should have.
    public var pageSize: Int
    /// How many the source gives at most: on a bad network pages are larger, up to that. Nil: `pageSize`, always.
    public var pageSizeMaximum: Int?
    /// How many items are kept at most, at least two pages of them. Beyond, the oldest are dropped, and can be loaded again.
    public var itemsMaximum = 5_000
    /// What becomes of the older part where a refresh does not reach it.
    public var whenApart = TimelineSeparation.keepBehindGap
    /// For how long an item that was inserted here (`insertNewest`) stays where pages do not have it: a replica may lag behind.
    public var settlingTime: Duration = .seconds(60)
    /// How much of an item a page shows.
    public var completeness = Completeness.complete
    /// Where it is kept.
    public var retention = QueryRetention.disk
    /// Names by which it can be invalidated together with others.
    public var tags: Set<String> = []
    /// What an item was called here until the server named it, if it was made here: where both are there, because it was told of
    /// before it was acknowledged, only the server's is shown.
    public var localName: (@Sendable (Item) -> String?)?
    /// How long a page may take; nil: as long as it likes.
    public var timeout: Duration? = .seconds(30)

    let fetch: @Sendable (PageRequest) async throws -> Fetched<EntityPage<Item>>

    /// How many items a page should have now.
    func pageSize(_ conduct: DegradationPolicy.Conduct) -> Int {
        let usual = max(1, pageSize)
        return max(usual, min(pageSizeMaximum ?? usual, conduct.batch(usual)))
    }

    /// Where a list is kept: `Resource.Retention`, whatever the value.
    public typealias QueryRetention = Resource<TimelineList<Item>>.Retention

    /// A paged list.
    ///
    /// - Parameters:
    ///   - name: what it is called; with the parameters it is the key.
    ///   - fetch: gets a page. It says «not modified» where the validator that it is given still holds, and «gone» where the server
    ///     does not know the cursor any more. It should notice cancellation: one that does not is abandoned at its timeout.
    public init(
        _ name: String,
        _ parameters: [String: String] = [:],
        of type: Item.Type = Item.self,
        pageSize: Int = 20,
        freshness: FreshnessDemand = .interactive,
        policy: ReadPolicy = .staleWhileRevalidate,
        fetch: @escaping @Sendable (PageRequest) async throws -> Fetched<EntityPage<Item>>
    ) {
        key = QueryKey(name, parameters)
        self.pageSize = pageSize
        self.freshness = freshness
        self.policy = policy
        self.fetch = fetch
    }
}

/// Which page is asked for.
public struct PageRequest: Sendable, Hashable {
    /// Where the page begins, as the page before it said; nil: the newest page.
    public var cursor: String?
    /// How many items it should have.
    public var limit: Int
    /// What the source gave with the page that is stored; nil where there is none.
    public var validator: String?
    /// Whether the page has to come from the origin, as for a refresh or a gate: caches on the way must validate what they have.
    public var isForced: Bool

    /// A request: for those who call a fetch function by hand.
    public init(cursor: String? = nil, limit: Int, validator: String? = nil, isForced: Bool = false) {
        self.cursor = cursor
        self.limit = limit
        self.validator = validator
        self.isForced = isForced
    }
}

/// A page of a list, newest first.
public struct EntityPage<Item: Entity>: Sendable, Equatable {
    /// The items in order.
    public var items: [Item]
    /// Where the items after these begin; nil where these are the last. A page without items may have one.
    public var nextCursor: String?

    /// A page.
    public init(_ items: [Item], nextCursor: String? = nil) {
        self.items = items
        self.nextCursor = nextCursor
    }
}

/// What becomes of the older part of a timeline where a refresh does not reach it.
public enum TimelineSeparation: String, Sendable, Hashable {
    /// It stays, behind a gap that can be filled.
    case keepBehindGap
    /// It is dropped, and loaded again by whoever goes there.
    case reset
}
