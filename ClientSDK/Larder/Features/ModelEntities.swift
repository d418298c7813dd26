public import LarderModels

extension Profile: Entity {
    /// `profile`, as the change feed calls it.
    public static var entityType: String { "profile" }
    /// The server's version.
    public var entityVersion: Int64? { version }
}

extension Post: Entity {
    /// `post`, as the change feed calls it.
    public static var entityType: String { "post" }
    /// The server's version.
    public var entityVersion: Int64? { version }
}

extension Account: Entity {
    /// `account`, as the change feed calls it.
    public static var entityType: String { "account" }
    /// The server's version.
    public var entityVersion: Int64? { version }
    /// What the server marks `no-store` never touches the disk.
    public static var isMemoryOnly: Bool { true }
}

extension Transaction: Entity {
    /// `transaction`, as the change feed calls it.
    public static var entityType: String { "transaction" }
    /// The server's version.
    public var entityVersion: Int64? { version }
    /// What the server marks `no-store` never touches the disk.
    public static var isMemoryOnly: Bool { true }
}

extension Conversation: Entity {
    /// `conversation`, as the change feed calls it.
    public static var entityType: String { "conversation" }
    /// The server's version.
    public var entityVersion: Int64? { version }
}

extension Message: Entity {
    /// `message`, as the change feed calls it.
    public static var entityType: String { "message" }
    /// The server's version; none where the server does not have it yet.
    public var entityVersion: Int64? { version > 0 ? version : nil }
    /// Whether the server does not have it yet.
    public var isPending: Bool { version == 0 }
}
