public import Larder
public import LarderModels

/// The tasks of the team, in lists by filter.
///
/// An edited task moves between the lists at once, offline too. Changes are stored when the call returns, and are sent in order. An edit
/// sends the changed fields only, so that edits of different fields by different people do not conflict.
public struct Tasks: Sendable {
    static let titleLengthMaximum = 200

    private let client: APIClient

    init(_ client: APIClient) { self.client = client }

    // MARK: Reading

    /// Lists are not fetched while the change feed has caught up within two minutes.
    private static let freshness = Freshness.Demand.rule(
        Freshness.Rule(.any([.timeToLive(.seconds(30)), .feed("larder", within: .seconds(120))]))
    )

    /// The first hundred tasks of a list.
    public func list(_ filter: TaskFilter = TaskFilter()) -> Resource<EntityList<WorkItem>> {
        let (source, query) = (client.source, filter.query)
        var parameters: [String: String] = [:]
        for (name, value) in query { parameters[name] = value }
        var list = Resource<EntityList<WorkItem>>.list(
            "tasks",
            parameters,
            of: WorkItem.self,
            where: { filter.contains($0) },
            sortedBy: { filter.areInIncreasingOrder($0, $1) },
            temporaryID: { $0.clientID.map { LocalID.prefix + $0 } },
            freshness: Self.freshness
        ) { context in
            try await source.page(
                "/v1/tasks",
                query: query,
                PageRequest(context, limit: 100),
                by: .demo(itemsAt: "/v1/tasks")
            )
        }
        list.tags = [LarderClient.everything]
        list.isCached = client.isCached("tasks")
        return list
    }

    /// A task by its ID.
    public func task(_ id: String) -> Resource<WorkItem> {
        let source = client.source
        var task = Resource<WorkItem>.entity(id, freshness: Self.freshness) { context in
            try await source.fetch(Self.path(id), context: context)
        }
        task.isCached = client.isCached("tasks")
        return task
    }

    private static func path(_ id: String) -> String { "/v1/tasks/\(HTTPSource.escape(id))" }

    // MARK: Writing

    /// Creates a task: it is durable and shown when this returns.
    ///
    /// - Parameters:
    ///   - title: 1 to 200 Unicode scalars.
    ///   - assignee: the user ID of the person who has to do it.
    ///   - due: the due date, `YYYY-MM-DD`.
    /// - Returns: the queued operation, and the task under its local ID.
    /// - Throws: `.invalidArgument` for a title of another length; `.unauthorized` if no user is signed in; `.storage` if it could not be
    ///   stored.
    @discardableResult
    public func add(
        _ title: String,
        assignee: String? = nil,
        due: String? = nil
    ) throws(LarderError) -> (operation: OperationID?, task: WorkItem) {
        try check(title)
        guard let creator = client.session.userID else {
            throw LarderError(.unauthorized, "No user is signed in. Sign in before creating tasks.")
        }
        let id = APIClient.localID()
        let clientID = String(id.dropFirst(LocalID.prefix.count))
        let now = client.cache.configuration.wallClock.now.rfc3339()
        let task = WorkItem(
            id: id,
            creatorID: creator,
            clientID: clientID,
            title: title,
            createdAt: now,
            assigneeID: assignee,
            due: due,
            version: 0,
            updatedAt: now
        )
        let body = ["title": title, "clientId": clientID, "assigneeId": assignee, "due": due]
        var write = write(.post, "/v1/tasks", body.filter { $0.value != nil }, of: id)
        write.create(task)
        return (try client.write(write), task)
    }

    /// Edits the title, the status, the assignee or the due date of a stored task: the edit is durable and shown when this returns.
    ///
    /// - Returns: the queued operation; nil if nothing needs to be sent.
    /// - Throws: `.invalidArgument` for an invalid title, and for a task that is not stored; `.storage` if the edit could not be stored.
    @discardableResult
    public func edit(
        _ id: String,
        _ change: @escaping @Sendable (inout WorkItem) -> Void
    ) throws(LarderError) -> OperationID? {
        let id = LocalID.current(id, in: client.cache)
        guard let old = client.cache.stored(task(id))?.value else {
            throw LarderError(.invalidArgument, "The task \(id) is not stored, so it cannot be edited. Read it first.")
        }
        var new = old
        change(&new)
        try check(new.title)
        // A merge patch (RFC 7396) of what was changed applies to any version that exists.
        var patch: [String: String?] = [:]
        if old.title != new.title { patch["title"] = new.title }
        if old.status != new.status { patch["status"] = new.status.rawValue }
        if old.assigneeID != new.assigneeID { patch.updateValue(new.assigneeID, forKey: "assigneeId") }
        if old.due != new.due { patch.updateValue(new.due, forKey: "due") }
        guard !patch.isEmpty else { return nil }
        var write = write(.patch, Self.path(id), patch, of: id)
        write.fields = [.ifMatch: "*", .contentType: "application/merge-patch+json"]
        write.modify(WorkItem.self, id, change)
        return try client.write(write)
    }

    /// Deletes a task: it is hidden when this returns.
    ///
    /// - Returns: the queued operation; nil if nothing needs to be sent.
    /// - Throws: `.storage` if it could not be stored.
    @discardableResult
    public func delete(_ id: String) throws(LarderError) -> OperationID? {
        let id = LocalID.current(id, in: client.cache)
        var write = write(.delete, Self.path(id), nil, of: id)
        write.remove(WorkItem.self, id)
        return try client.write(write)
    }

    private func write(
        _ method: LarderHTTP.Method,
        _ path: String,
        _ body: [String: String?]?,
        of id: String
    ) -> APIClient.Write {
        var write = APIClient.Write(method, path, body)
        // One scope for all tasks: a change under a local ID and a later one under the server's ID keep their order.
        write.scope = "tasks"
        write.coalescingKey = id
        return write
    }

    private func check(_ title: String) throws(LarderError) {
        let length = title.unicodeScalars.count
        guard (1...Self.titleLengthMaximum).contains(length) else {
            throw LarderError(
                .invalidArgument,
                "The title has \(length) Unicode scalars; 1 to \(Self.titleLengthMaximum) are allowed. Change it."
            )
        }
    }
}
