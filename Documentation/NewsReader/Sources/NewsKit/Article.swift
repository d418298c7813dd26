import Foundation
import Larder

/// An article. Lists contain it without its text.
public struct Article: CacheEntity {
    public static let entityType = "article"
    public var id: Int
    public var title: String
    public var authorName: String
    public var publishedAt: Date
    public var revision: Int64
    /// Nil: the article was only seen in a list.
    public var bodyText: String?

    /// An older revision never replaces a newer one.
    public var entityVersion: Int64? { revision }

    /// A page of the list does not remove the text of an article that was opened before.
    public static let merge: Merge? = { new, stored in
        var merged = new
        if merged.bodyText == nil, stored.revision == new.revision { merged.bodyText = stored.bodyText }
        return merged
    }
}

/// A bookmark of the person who is signed in. The identifier is that of the article.
public struct Bookmark: CacheEntity {
    public static let entityType = "bookmark"
    public var id: Int
}

/// What the backend knows about the person. It sends it with `no-store`, so Larder never writes it to the disk.
public struct Me: Codable, Sendable, Equatable {
    public var name: String
    public var card: String
}
