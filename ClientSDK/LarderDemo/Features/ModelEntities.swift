public import Larder
public import LarderModels

extension Profile: @retroactive CacheEntity {
    /// `profile`, as the change feed calls it.
    public static var entityType: String { "profile" }
    /// The server's version.
    public var entityVersion: Int64? { version }
}

extension Post: @retroactive CacheEntity {
    /// `post`, as the change feed calls it.
    public static var entityType: String { "post" }
    /// The server's version; nil until the server has confirmed the post.
    public var entityVersion: Int64? { version > 0 ? version : nil }
    /// Whether the server has not confirmed the post yet.
    public var isPending: Bool { version == 0 }
}

extension Account: @retroactive CacheEntity {
    /// `account`, as the change feed calls it.
    public static var entityType: String { "account" }
    /// The server's version.
    public var entityVersion: Int64? { version }
}

extension Transaction: @retroactive CacheEntity {
    /// `transaction`, as the change feed calls it.
    public static var entityType: String { "transaction" }
    /// The server's version.
    public var entityVersion: Int64? { version }
}

extension Conversation: @retroactive CacheEntity {
    /// `conversation`, as the change feed calls it.
    public static var entityType: String { "conversation" }
    /// The server's version.
    public var entityVersion: Int64? { version }
}

extension Message: @retroactive CacheEntity {
    /// `message`, as the change feed calls it.
    public static var entityType: String { "message" }
    /// The server's version; nil until the server has confirmed the message.
    public var entityVersion: Int64? { version > 0 ? version : nil }
    /// Whether the server has not confirmed the message yet.
    public var isPending: Bool { version == 0 }
}

extension WorkItem: @retroactive CacheEntity {
    /// `task`, as the change feed calls it.
    public static var entityType: String { "task" }
    /// The server's version; nil until the server has confirmed the task.
    public var entityVersion: Int64? { version > 0 ? version : nil }
    /// Whether the server has not confirmed the task yet.
    public var isPending: Bool { version == 0 }
}
