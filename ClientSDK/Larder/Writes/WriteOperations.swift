import LarderCoding
import LarderEvents
import LarderHTTP
import LarderResources
import LarderStorage
import LarderTransport

/// The operations that send writes of a client.
struct WriteOperations: Sendable {
    /// Sent by the outbox.
    let later: WriteBehind<StoredWrite, TransportResponse>
    /// Those with a file, which may take long.
    let uploads: WriteBehind<StoredWrite, TransportResponse>
    /// Sent while a caller waits.
    let awaited: WriteThrough<StoredWrite, TransportResponse>

    private static let laterName = "larder.write"
    private static let awaitedName = "larder.commit"
    static let uploadName = "larder.upload"
    /// The names of the operations in the store.
    static let names = [laterName, awaitedName, uploadName]

    /// - Parameter isComing: as `LarderCache.isComing`.
    init(_ source: HTTPSource, _ uploading: Uploading, isComing: @escaping @Sendable (String, _ scope: String) -> Bool)
    {
        later = Self.operation(Self.laterName, source) { attempt throws(LarderError) in
            try Self.check(attempt.input, isComing)
            return try await Self.send(attempt, source)
        }
        var uploads = Self.operation(Self.uploadName, source) { attempt throws(LarderError) in
            try Self.check(attempt.input, isComing)
            return try await uploading.send(attempt, source)
        }
        // What its time limit cuts off goes on where it was.
        uploads.isLong = true
        uploads.timeout = .seconds(3_600)
        uploads.coalescingKey = { _ in nil }
        self.uploads = uploads
        var awaited = WriteThrough<StoredWrite, TransportResponse>(Self.awaitedName, scope: { $0.scope }) { attempt in
            try Self.check(attempt.input, isComing)
            return .accepted(try await Self.send(attempt, source))
        }
        awaited.changes = later.changes
        awaited.acknowledge = later.acknowledge
        self.awaited = awaited
    }

    private static func operation(
        _ name: String,
        _ source: HTTPSource,
        _ send:
            @escaping @Sendable (Outbox.Attempt<StoredWrite>) async throws(LarderError) -> TransportResponse
    ) -> WriteBehind<StoredWrite, TransportResponse> {
        var operation = WriteBehind<StoredWrite, TransportResponse>(
            name,
            scope: { $0.scope },
            changes: { write, local in
                for change in write.changes { change.show(in: &local) }
                for edit in write.edits { local.edit(edit.list) { edit.apply(to: &$0) } }
            },
            send: { attempts in
                var outcomes: [Outbox.Outcome<TransportResponse>] = []
                for attempt in attempts { outcomes.append(.accepted(try await send(attempt))) }
                return outcomes
            }
        )
        operation.coalescingKey = { $0.coalescingKey }
        operation.coalesce = { StoredWrite.coalesce($0, $1) }
        operation.acknowledge = { write, response, update in WriteReply(write, response, source).store(in: &update) }
        operation.serverIDs = { write, response in WriteReply(write, response, source).serverIDs }
        operation.replacingIDs = { $0.replacingIDs($1) }
        operation.conflicts = Outbox.ConflictRule(
            anyBase: { $0.edited },
            resolve: { try $0.resolved(to: $1, over: $2, validator: $3) }
        )
        return operation
    }

    /// - Throws: `.invalidArgument` for a write that depends on what was not created; `.offline` while that is still to be created, by an
    ///   operation of another scope.
    private static func check(_ write: StoredWrite, _ isComing: (String, String) -> Bool) throws(LarderError) {
        for unknown in write.unknownIDs {
            guard !isComing(unknown, write.scope) else {
                throw LarderError(.offline, "\(write.path) is sent when \(unknown) has been created on the server.")
                    .marked(isUnsent: true)
            }
            throw LarderError(
                .invalidArgument,
                "\(unknown) was not created on the server, so \(write.path) does not exist. Send its creation again (Outbox.retry), "
                    + "or drop both."
            )
        }
    }

    private static func send(
        _ attempt: Outbox.Attempt<StoredWrite>,
        _ source: HTTPSource
    ) async throws(LarderError) -> TransportResponse {
        let request = attempt.input.request(to: source, key: attempt.idempotencyKey)
        return try await accepted(try await source.send(request), attempt, source)
    }

    /// The reply to a write, if the server has carried it out.
    ///
    /// - Throws: the error of the reply; its cause is the server's state after a conflict, if it is known.
    static func accepted(
        _ response: TransportResponse,
        _ attempt: Outbox.Attempt<StoredWrite>,
        _ source: HTTPSource
    ) async throws(LarderError) -> TransportResponse {
        let write = attempt.input
        // What an earlier attempt or somebody else has deleted needs no deletion.
        if write.method == "DELETE", source.isGone(response) { return response }
        // A captive portal may reply with any status.
        guard (200..<300).contains(response.status.code), !HTTPSource.isForeign(response) else {
            let error = source.error(for: response, source.url(write.path))
            guard [409, 412].contains(response.status.code) else { throw error }
            // A copy of this attempt that was lost is an earlier one, too.
            let isAgain = attempt.isInDoubt || !(LostCopies.current?.isEmpty ?? true)
            return try await Conflict(write, source).resolve(response, error, isAgain: isAgain)
        }
        return response
    }
}

/// The accepting reply to a write, and what it says about the entity of the write's first change.
private struct WriteReply {
    let write: StoredWrite
    let response: TransportResponse
    let source: HTTPSource

    init(_ write: StoredWrite, _ response: TransportResponse, _ source: HTTPSource) {
        (self.write, self.response, self.source) = (write, response, source)
    }

    /// The server's ID of the created entity by its local one, or what became of the validator of an edit.
    var serverIDs: [String: String] {
        if let successor { return successor }
        guard let first = write.changes.first, first.kind == .create, let id = createdID, id != first.id else {
            return [:]
        }
        return [first.id: id]
    }

    /// After an edit under `If-Match`, the new validator by the old one: the edits that wait behind it were made of what it shows, and are
    /// conditional on what the server has made of it (RFC 9110 §13.1.1).
    private var successor: [String: String]? {
        guard ["PATCH", "PUT"].contains(write.method), let old = write.condition,
            let new = response.fields[.etag].flatMap({ EntityTag(parsing: $0) })
        else { return nil }
        return [old.opaque: write.successor(new)]
    }

    /// The ID in the reply to a creation: that of the returned entity, its `id` member, or the end of `Location` (RFC 9110 §10.2.2).
    private var createdID: String? {
        guard let first = write.changes.first else { return nil }
        if let type = first.entityType, let id = id(type) { return id }
        // A reply that is no JSON names no ID; `Location` may.
        if source.isAccepted(response), let content = try? JSONParser.parse(response.body) {
            if let id = content["id"]?.string { return id }
            if let id = content["id"]?.integer { return String(id) }
        }
        guard response.status == .created else { return nil }
        return response.fields[.location]?.split(separator: "?").first?.split(separator: "/").last.map(String.init)
    }

    private func id<E: CacheEntity>(_ type: E.Type) -> String? { entity(type)?.value?.entityKey.id }

    /// The entity in the reply, with the facts that a read would have; nil if the reply is something else. The write was carried out all the
    /// same: the stored values then keep its changes and are stale, so that the next read asks for them.
    private func entity<E: CacheEntity>(_ type: E.Type) -> Fetched<E>? {
        guard let value = try? source.decode(type, response, TransportRequest(url: source.url(write.path))).value else {
            return nil
        }
        var fetched = Fetched.value(value, validator: source.validator(of: response.fields))
        source.apply(response, to: &fetched)
        return fetched
    }

    func store(in update: inout CacheUpdate) {
        for (index, change) in write.changes.enumerated() {
            if index == 0, let type = change.entityType, store(change, as: type, in: &update) { continue }
            // Nothing is shown under a key.
            var local = Outbox.LocalChanges(idempotencyKey: "")
            change.show(in: &local)
            update.keep(local)
        }
        let ids = serverIDs
        for edit in write.edits { update.edit(edit.list) { edit.apply(to: &$0, as: ids[edit.id]) } }
    }

    /// - Returns: false if the reply does not say what the entity is.
    private func store<E: CacheEntity>(_ change: StoredChange, as type: E.Type, in update: inout CacheUpdate) -> Bool {
        if change.kind == .remove { return false }
        // A reply with `no-store` is not stored, and the stored value with the change stays where it is.
        if let fetched = entity(type), fetched.mayStore, let value = fetched.value,
            change.kind == .create || value.entityKey == change.key
        {
            do { try update.put(value, as: fetched) } catch { return false }
            return true
        }
        guard change.kind == .create, case .object(var content)? = change.document, let id = createdID ?? keptID else {
            return false
        }
        // Nobody knows more than that the entity exists: it is shown as it was sent, and is stale.
        if id != change.id {
            let isNumber = content["id"]?.integer != nil
            content["id"] = isNumber ? Int64(id).map { JSONValue.integer($0) } : JSONValue.string(id)
        }
        // A type that does not take the server's kind of ID keeps what was sent.
        guard let value = try? MergePatch.value(type, .object(content)), value.entityKey.id == id else { return false }
        update.put(value)
        update.invalidate(value.entityKey)
        return true
    }

    /// The ID that the client has chosen and the server has accepted.
    private var keptID: String? {
        write.changes.first.flatMap { StoredWrite.isLocalID($0.id) ? nil : $0.id }
    }
}
