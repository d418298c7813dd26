/// A request for one page of a `PagedResource`.
public struct PageRequest: Sendable, Hashable {
    /// Which items are requested.
    public enum Position: Sendable, Hashable {
        /// The newest items.
        case newest
        /// The items after a cursor (`EntityList.nextCursor`).
        case older(String)
        /// The nearest items before a cursor (`EntityList.previousCursor`), newest first as always.
        case newer(String)
        /// The items around the one with this identifier, and this one. `gone` if there is no such item.
        case around(String)
    }

    /// Which items are requested. Positions other than `newest` and `older` are requested only of a resource with
    /// `PagedResource.isNewer`.
    public var position: Position
    /// The cursor of the page that was loaded before; nil for the newest page and a page around an item.
    public var cursor: String? {
        switch position {
        case .newest, .around: nil
        case .older(let cursor), .newer(let cursor): cursor
        }
    }
    /// The number of items.
    public var limit: Int
    /// The validator of the stored page; nil if there is none.
    public var validator: String?
    /// Whether caches on the way must revalidate the page, as for a refresh, a gate or an invalidated list.
    public var mustRevalidate: Bool
    /// The stored items of the page; nil if it was not loaded before.
    var stored: StoredItems?

    /// The request as the context of a fetch.
    public var context: FetchContext {
        FetchContext(
            validator: indexValidator == nil ? validator : nil,
            mustRevalidate: mustRevalidate,
            stored: stored
        )
    }

    /// Creates a request, for direct calls of a fetch function.
    public init(
        _ position: Position = .newest,
        limit: Int,
        validator: String? = nil,
        mustRevalidate: Bool = false
    ) {
        self.position = position
        self.limit = limit
        self.validator = validator
        self.mustRevalidate = mustRevalidate
    }

    /// Creates a request for the newest page from the context of a fetch.
    public init(_ context: FetchContext, limit: Int) {
        self.init(
            limit: limit,
            validator: context.validator,
            mustRevalidate: context.mustRevalidate
        )
        stored = context.stored
    }
}
