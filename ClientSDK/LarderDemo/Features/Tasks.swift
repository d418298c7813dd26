public import Larder
public import LarderModels

/// The tasks of the team, in lists by filter.
///
/// An edited task moves between the lists at once, offline too. Changes are stored when the call returns, and are sent in order. An edit
/// sends the changed fields only, so that edits of different fields by different people do not conflict.
public struct Tasks: Sendable {
    static let localPrefix = "local-task-"
    static let titleLengthMaximum = 200

    private let cache: LarderCache
    private let source: HTTPSource
    private let session: BearerSession
    private let isCached: @Sendable () -> Bool
    /// The operation of changes, to edit a rejected one (`Outbox.edit`) or to decode a queued one (`Outbox.Entry.input`).
    public let operation: WriteBehind<TaskWrite, WorkItem?>

    init(
        _ cache: LarderCache,
        _ source: HTTPSource,
        _ session: BearerSession,
        isCached: @escaping @Sendable () -> Bool
    ) {
        self.cache = cache
        self.isCached = isCached
        self.source = source
        self.session = session
        operation = Self.operation(source, cache)
    }

    // MARK: Reading

    /// Lists are not fetched while the change feed has caught up within two minutes.
    private static let freshness = Freshness.Demand.rule(
        Freshness.Rule(.any([.timeToLive(.seconds(30)), .feed("larder", within: .seconds(120))]))
    )

    /// The first hundred tasks of a list.
    public func list(_ filter: TaskFilter = TaskFilter()) -> Resource<EntityList<WorkItem>> {
        let (source, query) = (source, filter.query)
        var parameters: [String: String] = [:]
        for (name, value) in query { parameters[name] = value }
        var list = Resource<EntityList<WorkItem>>.list(
            "tasks",
            parameters,
            of: WorkItem.self,
            where: { filter.contains($0) },
            sortedBy: { filter.areInIncreasingOrder($0, $1) },
            temporaryID: { $0.isPending ? nil : $0.clientID.map { Self.localPrefix + $0 } },
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
        list.isCached = isCached
        return list
    }

    /// A task by its ID.
    public func task(_ id: String) -> Resource<WorkItem> {
        let source = source
        var task = Resource<WorkItem>.entity(id, freshness: Self.freshness) { context in
            try await source.fetch(Self.path(id), context: context)
        }
        task.isCached = isCached
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
        guard let creator = session.userID else {
            throw LarderError(.unauthorized, "No user is signed in. Sign in before creating tasks.")
        }
        let clientID = cache.configuration.makeIdempotencyKey()
        let now = cache.configuration.wallClock.now.rfc3339()
        let task = WorkItem(
            id: Self.localPrefix + clientID,
            creatorID: creator,
            clientID: clientID,
            title: title,
            createdAt: now,
            assigneeID: assignee,
            due: due,
            version: 0,
            updatedAt: now
        )
        return (try cache.enqueue(.create(task), operation), task)
    }

    /// Edits fields of a task: the edit is durable and shown when this returns.
    ///
    /// - Returns: the queued operation.
    /// - Throws: `.invalidArgument` for an invalid title; `.storage` if it could not be stored.
    @discardableResult
    public func edit(_ id: String, _ edit: TaskEdit) throws(LarderError) -> OperationID? {
        if let title = edit.title { try check(title) }
        let id = LocalID.current(id, in: cache)
        let base = cache.stored(task(id))?.value
        return try cache.enqueue(.edit(id: id, edit, base: base), operation)
    }

    /// Deletes a task: it is hidden when this returns.
    ///
    /// - Returns: the queued operation.
    /// - Throws: `.storage` if it could not be stored.
    @discardableResult
    public func delete(_ id: String) throws(LarderError) -> OperationID? {
        try cache.enqueue(.delete(id: LocalID.current(id, in: cache)), operation)
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

    static func operation(_ source: HTTPSource, _ cache: LarderCache) -> WriteBehind<TaskWrite, WorkItem?> {
        var operation = WriteBehind<TaskWrite, WorkItem?>(
            "task",
            // One scope for all tasks: a change under a local ID and a later one under the server's ID keep their order.
            scope: { _ in "tasks" },
            changes: { write, changes in
                switch write {
                case .create(let task): changes.create(task)
                case .edit(let id, let edit, _): changes.modify(WorkItem.self, id) { edit.apply(to: &$0) }
                case .delete(let id): changes.remove(WorkItem.self, id)
                }
            },
            send: { [weak cache] attempts in
                guard let attempt = attempts.first else { return [] }
                var write = attempt.input
                if case .create = write {
                } else {
                    // To the server a local ID is unknown, as one that was deleted.
                    guard let id = LocalID.serverID(write.id, in: cache) else {
                        return [.rejected(LocalID.notCreated(write.id))]
                    }
                    write = write.replacing([write.id: id])
                }
                return [.accepted(try await send(write, attempt.idempotencyKey, source))]
            }
        )
        operation.coalescingKey = { $0.id }
        operation.coalesce = { earlier, later in earlier.merged(with: later).map { .replace($0) } ?? .keepBoth }
        operation.acknowledge = { write, task, update in
            if let task { update.put(task) }
            if case .create(let local) = write, let task { LocalID.remember(local.id, as: task.id, in: &update) }
            if case .delete(let id) = write { update.remove(WorkItem.self, id) }
        }
        operation.serverIDs = { write, task in
            guard case .create(let local) = write, let task else { return [:] }
            return [local.id: task.id]
        }
        operation.replacingIDs = { $0.replacing($1) }
        operation.conflicts = Outbox.ConflictRule(
            base: { if case .edit(_, _, let base) = $0 { base } else { nil } },
            resolve: { write, wanted, theirs, _ in
                let edit = TaskEdit(from: theirs, to: wanted)
                return edit == TaskEdit() ? nil : .edit(id: write.id, edit, base: theirs)
            }
        )
        return operation
    }

    private struct Request: Encodable, Sendable {
        var title: String
        var clientID: String?
        var status: WorkItem.Status
        var assigneeID: String?
        var due: String?

        private enum CodingKeys: String, CodingKey {
            case title, status, due
            case clientID = "clientId"
            case assigneeID = "assigneeId"
        }
    }

    /// - Returns: the task as the server has it; nil after a deletion.
    private static func send(
        _ write: TaskWrite,
        _ key: String,
        _ source: HTTPSource
    ) async throws(LarderError) -> WorkItem? {
        switch write {
        case .create(let task):
            let body = Request(
                title: task.title,
                clientID: task.clientID,
                status: task.status,
                assigneeID: task.assigneeID,
                due: task.due
            )
            return try await source.send(.post, "/v1/tasks", body, [.idempotencyKey: key], as: WorkItem.self).value
        case .edit(let id, let edit, _):
            // The patch has changed fields only: it applies to any version that exists.
            let fields: Fields = [
                .ifMatch: "*", .idempotencyKey: key, .contentType: "application/merge-patch+json",
            ]
            return try await source.send(.patch, path(id), TaskEdit.Patch(edit: edit), fields, as: WorkItem.self).value
        case .delete(let id):
            do { try await source.send(.delete, path(id)) } catch {
                // Deleted already, perhaps by an attempt whose reply was lost.
                guard error.saysDeleted else { throw error }
            }
            return nil
        }
    }
}
