/// A change that happened elsewhere.
public struct RemoteChange: Sendable {
    /// What has changed.
    public let key: EntityKey
    /// Does it to what is stored. Doing it twice does no more than doing it once.
    public let apply: @Sendable (inout Update) -> Void

    /// A change.
    public init(_ key: EntityKey, apply: @escaping @Sendable (inout Update) -> Void) {
        self.key = key
        self.apply = apply
    }
}

/// A part of a change feed.
public struct ChangeBatch: Sendable {
    /// What has changed, in order.
    public let changes: [RemoteChange]
    /// From where it goes on.
    public let nextToken: String
    /// Whether there is more already.
    public let hasMore: Bool

    /// A part of a change feed.
    public init(_ changes: [RemoteChange], nextToken: String, hasMore: Bool) {
        self.changes = changes
        self.nextToken = nextToken
        self.hasMore = hasMore
    }
}

/// A change as a live channel tells of it: with its place in the feed, so that one who misses something notices.
public struct LiveChange: Sendable {
    /// The change.
    public let change: RemoteChange
    /// Where the feed stands after it.
    public let token: String
    /// Where it stood before it.
    public let previousToken: String

    /// A change with its place.
    public init(_ change: RemoteChange, token: String, previousToken: String) {
        self.change = change
        self.token = token
        self.previousToken = previousToken
    }
}

/// Where changes come from. Protocol-neutral: anything with opaque tokens will do.
public struct ChangeFeed: Sendable {
    /// What it is called in the store.
    public let name: String
    /// Reads what has changed since a token.
    ///
    /// It throws an error with `isTokenGone` where the token is not good any more.
    public let read: @Sendable (_ since: String) async throws(LarderError) -> ChangeBatch
    /// Gives the token of now: what happens after it will be read, and what was before is read otherwise.
    public let present: @Sendable () async throws(LarderError) -> String
    /// Declares everything stale that the feed covers: after a token was lost, nobody knows what has changed.
    public let invalidateAll: @Sendable (inout Update) -> Void

    /// A change feed.
    public init(
        _ name: String,
        read: @escaping @Sendable (_ since: String) async throws(LarderError) -> ChangeBatch,
        present: @escaping @Sendable () async throws(LarderError) -> String,
        invalidateAll: @escaping @Sendable (inout Update) -> Void
    ) {
        self.name = name
        self.read = read
        self.present = present
        self.invalidateAll = invalidateAll
    }
}

extension LarderError {
    /// The change token that was sent is not good any more (410), and everything has to be read anew.
    public static func tokenGone(_ description: String) -> LarderError { LarderError(.gone, description, status: 410) }

    /// Whether a change token is not good any more.
    public var isTokenGone: Bool { status == 410 && code != .unexpectedReply }
}
