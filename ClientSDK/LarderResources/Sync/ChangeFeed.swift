public import LarderStorage

extension ChangeFeed {
    /// A change from the server.
    public struct Change: Sendable {
        /// The key of the entity that has changed.
        public let key: EntityKey
        /// Applies the change. It must be idempotent.
        public let apply: @Sendable (inout CacheUpdate) -> Void

        /// A change.
        public init(_ key: EntityKey, apply: @escaping @Sendable (inout CacheUpdate) -> Void) {
            self.key = key
            self.apply = apply
        }
    }

    /// A page of a change feed.
    public struct Batch: Sendable {
        /// The changes, in order.
        public let changes: [ChangeFeed.Change]
        /// The token of the next page.
        public let nextToken: String
        /// Whether more changes are available.
        public let hasMore: Bool

        /// Creates a page.
        public init(_ changes: [ChangeFeed.Change] = [], nextToken: String, hasMore: Bool = false) {
            self.changes = changes
            self.nextToken = nextToken
            self.hasMore = hasMore
        }
    }
}

/// A source of changes with opaque tokens, independent of a protocol.
public struct ChangeFeed: Sendable {
    /// The name of the feed in the store.
    public let name: String
    /// Reads the changes since a token.
    ///
    /// Throws an error with `isTokenGone` if the token is no longer valid.
    public let read: @Sendable (_ since: String) async throws(LarderError) -> ChangeFeed.Batch
    /// Begins the feed, also after a token was lost: returns the current token, with the present content if the server sends it along.
    /// Later changes are read from the feed.
    public let present: @Sendable () async throws(LarderError) -> ChangeFeed.Batch
    /// Invalidates everything that the feed covers, after a token was lost.
    public let invalidateAll: @Sendable (inout CacheUpdate) -> Void

    /// Creates a change feed.
    public init(
        _ name: String,
        read: @escaping @Sendable (_ since: String) async throws(LarderError) -> ChangeFeed.Batch,
        present: @escaping @Sendable () async throws(LarderError) -> ChangeFeed.Batch,
        invalidateAll: @escaping @Sendable (inout CacheUpdate) -> Void
    ) {
        self.name = name
        self.read = read
        self.present = present
        self.invalidateAll = invalidateAll
    }
}

extension LarderError {
    /// The change token is no longer valid (410): everything must be fetched again.
    public static func tokenGone(_ description: String) -> LarderError { LarderError(.gone, description, status: 410) }

    /// Whether the error says that a change token is no longer valid.
    public var isTokenGone: Bool { status == 410 && code != .unexpectedReply }
}
