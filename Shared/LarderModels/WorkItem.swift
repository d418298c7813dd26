/// A task of the team. Not called `Task`, which is the concurrency library's.
public struct WorkItem: Codable, Sendable, Hashable, Identifiable {
    /// The progress of a task.
    public enum Status: String, Codable, Sendable, Hashable, CaseIterable {
        case open, started, done
    }

    /// The server's ID; a local one until the server has confirmed the task.
    public var id: String
    /// The user ID of the person who has created it.
    public var creatorID: String
    /// The ID that the creating client has given, by which repeated creations are recognised.
    public var clientID: String?
    public var title: String
    /// The creation time, RFC 3339.
    public var createdAt: String
    public var status: Status
    /// The user ID of the person who has to do it; nil for nobody.
    public var assigneeID: String?
    /// The due date, `YYYY-MM-DD`; nil for a task without one.
    public var due: String?
    /// Increases with every change; 0 until the server has confirmed the task.
    public var version: Int64
    /// The time of the last change, RFC 3339.
    public var updatedAt: String

    /// A task with the given fields.
    public init(
        id: String,
        creatorID: String,
        clientID: String?,
        title: String,
        createdAt: String,
        status: Status = .open,
        assigneeID: String? = nil,
        due: String? = nil,
        version: Int64,
        updatedAt: String
    ) {
        self.id = id
        self.creatorID = creatorID
        self.clientID = clientID
        self.title = title
        self.createdAt = createdAt
        self.status = status
        self.assigneeID = assigneeID
        self.due = due
        self.version = version
        self.updatedAt = updatedAt
    }

    private enum CodingKeys: String, CodingKey {
        case id, title, createdAt, status, due, version, updatedAt
        case creatorID = "creatorId"
        case clientID = "clientId"
        case assigneeID = "assigneeId"
    }
}
