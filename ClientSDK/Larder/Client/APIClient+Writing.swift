import Foundation
public import LarderHTTP
public import LarderResources
import LarderStorage
import LarderTransport

extension APIClient {
    /// An identifier for an entity that the server does not have yet: unique, and replaced by the server's in waiting writes.
    public static func localID() -> String { StoredWrite.localPrefix + RandomKey.make() }

    /// Stores a write, shows its local changes, and sends it when the network allows, once in effect.
    ///
    /// The reply is stored as that of a read is if it is an entity of the first change's type, with the same ID or as the created one, and
    /// without `no-store`. Otherwise the stored values keep the changes and are stale.
    ///
    /// - Returns: the operation (`Outbox.entries`, `rejected`); nil if it and an older one cancelled each other.
    /// - Throws: `.invalidArgument`, `.encoding`, `.storage`, `.outboxFull`, `.closed`. Then nothing has changed.
    @discardableResult
    public func write(_ write: Write) throws(LarderError) -> OperationID? {
        try cache.enqueue(try stored(write), writing.later)
    }

    /// Writes a request without a local change.
    @discardableResult
    public func write(
        _ method: LarderHTTP.Method,
        _ path: String,
        _ body: (any Encodable & Sendable)? = nil
    ) throws(LarderError) -> OperationID? {
        try write(Write(method, path, body))
    }

    /// Writes a request that changes a stored entity.
    ///
    ///     try client.write(.patch, "/articles/7", ["isStarred": true], changing: Article.self, "7") { $0.isStarred = true }
    @discardableResult
    public func write<E: CacheEntity>(
        _ method: LarderHTTP.Method,
        _ path: String,
        _ body: (any Encodable & Sendable)? = nil,
        changing type: E.Type,
        _ id: E.ID,
        _ change: @escaping @Sendable (inout E) -> Void
    ) throws(LarderError) -> OperationID? {
        var write = Write(method, path, body)
        write.modify(type, id, change)
        return try self.write(write)
    }

    /// Writes a request that creates an entity.
    ///
    ///     let comment = Comment(id: APIClient.localID(), text: "First")
    ///     try client.write(.post, "/comments", comment, creating: comment)
    @discardableResult
    public func write(
        _ method: LarderHTTP.Method,
        _ path: String,
        _ body: (any Encodable & Sendable)? = nil,
        creating entity: some CacheEntity
    ) throws(LarderError) -> OperationID? {
        var write = Write(method, path, body)
        write.create(entity)
        return try self.write(write)
    }

    /// Writes a request that removes an entity.
    @discardableResult
    public func write<E: CacheEntity>(
        _ method: LarderHTTP.Method,
        _ path: String,
        removing type: E.Type,
        _ id: E.ID
    ) throws(LarderError) -> OperationID? {
        var write = Write(method, path)
        write.remove(type, id)
        return try self.write(write)
    }

    /// Sends a write and waits for the reply. Its local changes are stored once the server has carried it out.
    ///
    /// - Throws: as `LarderCache.commit`; `.unexpectedReply` with a 2xx status if the server has carried it out and the reply cannot be decoded.
    public func commit<Value: Decodable & Sendable>(
        _ write: Write,
        as type: Value.Type = Value.self
    ) async throws(LarderError) -> HTTPSource.Reply<Value> {
        let response = try await cache.commit(try stored(write), writing.awaited)
        return try source.decode(type, response, TransportRequest(url: source.url(write.path)))
    }

    /// Sends a write and waits until the server has carried it out.
    ///
    /// - Throws: as `LarderCache.commit`.
    public func commit(_ write: Write) async throws(LarderError) {
        _ = try await cache.commit(try stored(write), writing.awaited)
    }

    /// Stores a write whose content is a file, such as a photo, with a copy of the file; see `write(_: Write)`.
    ///
    /// The file is sent in pieces, and goes on where the server has it, also after a restart; `HTTPSource.Configuration.uploads` says by which
    /// protocol. One upload is sent at a time, beside other writes. `uploads` has the progress; `Outbox.drop` cancels an upload that is not
    /// being sent.
    ///
    /// - Parameters:
    ///   - write: the request, without a body, and its local changes. Its coalescing key is not used.
    ///   - path: the path of a regular file.
    ///   - contentType: its media type.
    /// - Throws: as `write(_: Write)`; `.invalidArgument` if the write has a body, or the file cannot be read, is empty or does not fit
    ///   (`Configuration.uploadBytesMaximum`); `.cancelled`. Then nothing has changed.
    @discardableResult
    public func upload(_ write: Write, file path: String, contentType: String) async throws(LarderError) -> OperationID
    {
        guard write.body == nil else {
            throw LarderError(
                .invalidArgument,
                "The write to \(write.path) has a body, and its content is the file \(path). Nothing was written."
            )
        }
        guard let files = uploading.files else {
            throw LarderError(
                .invalidArgument,
                "The client has no directory for the file \(path). Nothing was written."
            )
        }
        let (request, cache, operation) = (try stored(write), cache, writing.uploads)
        return try await files.add(path) { (name, length) throws(LarderError) in
            var stored = request
            stored.file = StoredWrite.File(name: name, length: length, contentType: contentType)
            guard let id = try cache.enqueue(stored, operation) else {
                throw LarderError(.closed, "The outbox has kept nothing.")
            }
            return id
        }
    }

    private func stored(_ write: Write) throws(LarderError) -> StoredWrite {
        // Changes, scopes and server IDs depend on the writes of other processes, too.
        try cache.outbox.readRows()
        var changes: [StoredChange] = []
        for make in write.changes {
            if let change = try make(cache).get() { StoredChange.add(change, to: &changes) }
        }
        var stored = StoredWrite(
            method: write.method.rawValue,
            path: write.path,
            fields: write.fields.map { [$0.name.description, $0.value] },
            keyField: write.keyField?.description,
            scope: "",
            coalescingKey: write.coalescingKey,
            changes: changes,
            edits: write.edits
        )
        if let body = write.body {
            do { stored.body = String(decoding: try source.configuration.encoder.encode(body), as: UTF8.self) } catch {
                throw LarderError(.encoding, "The body for \(write.path) could not be encoded: \(error)", cause: error)
            }
        }
        let known = stored.localIDs.reduce(into: [String: String]()) { $0[$1] = cache.serverID(of: $1) }
        if !known.isEmpty { stored = stored.replacingIDs(known) }
        stored.scope = write.scope ?? scope(of: stored)
        return stored
    }

    private func scope(of write: StoredWrite) -> String {
        let entity = write.changes.first?.key
        let unknown = write.unknownIDs
        return entity.flatMap { cache.pendingScope(of: $0) }
            ?? (unknown.isEmpty ? nil : cache.pendingScope(ofAny: unknown))
            ?? entity?.description ?? write.path
    }
}
