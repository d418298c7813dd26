public import LarderHTTP
public import LarderResources
public import LarderStorage

extension APIClient {
    /// A request that changes something, with the local changes that are shown until the server has carried it out. All of it is stored
    /// as data: nothing is registered, and after a restart the changes are shown and the request is sent.
    ///
    /// The shorter forms are `client.write(_:_:_:changing:_:_:)`, `creating` and `removing`.
    ///
    /// ```swift
    /// var write = APIClient.Write(.put, "/articles/7/star")
    /// write.coalescingKey = "star/7"                               // of several taps the last is sent
    /// write.modify(Article.self, "7") { $0.isStarred = true }
    /// try client.write(write)                                      // on disk and shown when this returns
    /// ```
    public struct Write: Sendable {
        public let method: LarderHTTP.Method
        /// The path and query of the request; they are not escaped. Identifiers that `APIClient.localID` has made are replaced by the
        /// server's in the path, and in the body where they are whole strings.
        public let path: String
        /// Fields of this request.
        public var fields = Fields()
        /// The field of the idempotency key, which is the same for every attempt, also after a restart. Nil: no field. It is left out if
        /// the path or the body contains `keyPlaceholder`.
        public var keyField: FieldName? = "Idempotency-Key"
        /// The ordering scope: writes of one scope are sent one after another. Nil: that of a pending change of the same entity or of an
        /// entity whose local ID is in the path, otherwise the first entity that is changed, otherwise the path.
        public var scope: String?
        /// The coalescing key: of two unsent writes of one scope with the same key the later one is sent, and the local changes of both are
        /// shown. Two `PATCH` requests of one path become one with the members of both. A `POST` that creates an entity is kept, unless
        /// the later write removes the entity: then nothing is sent. Nil: every write is sent.
        public var coalescingKey: String?

        /// Stands for the idempotency key in a path or a body, for a server that expects it there.
        public static let keyPlaceholder = StoredWrite.keyPlaceholder

        let body: (any Encodable & Sendable)?
        private(set) var changes: [@Sendable (LarderCache) -> Result<StoredChange?, LarderError>] = []
        private(set) var edits: [StoredListEdit] = []

        /// A request; `HTTPSource.Configuration.encoder` encodes the body when it is written.
        public init(_ method: LarderHTTP.Method, _ path: String, _ body: (any Encodable & Sendable)? = nil) {
            self.method = method
            self.path = path
            self.body = body
        }

        /// Changes a stored entity. The members of its JSON that differ afterwards are stored and are applied to whatever value the server
        /// returns meanwhile. The write fails with `.invalidArgument` if the entity is not stored.
        public mutating func modify<E: CacheEntity>(
            _ type: E.Type,
            _ id: E.ID,
            _ change: @escaping @Sendable (inout E) -> Void
        ) {
            changes.append { StoredChange.modifying(type, id, in: $0, change) }
        }

        /// Shows an entity that the server does not have. Give it an ID of `APIClient.localID` if the server makes the IDs. The type must not
        /// be private or declared within a function: it is found by its name after a restart.
        public mutating func create<E: CacheEntity>(_ entity: E) {
            changes.append { _ in StoredChange.creating(entity) }
        }

        /// Hides an entity. A `DELETE` that is answered with 404 or 410 of the API counts as carried out.
        public mutating func remove<E: CacheEntity>(_ type: E.Type, _ id: E.ID) {
            changes.append { _ in .success(StoredChange(.remove, type, id)) }
        }

        /// Adds an entity to the beginning or the end of a list that is stored, unless it is in the list.
        public mutating func insert<E: CacheEntity>(_ type: E.Type, _ id: E.ID, in list: QueryKey, atEnd: Bool = false)
        {
            edits.append(StoredListEdit(list, E.key(id), atEnd ? .last : .first))
        }

        /// Takes an entity out of a list.
        public mutating func take<E: CacheEntity>(_ type: E.Type, _ id: E.ID, outOf list: QueryKey) {
            edits.append(StoredListEdit(list, E.key(id), .nowhere))
        }
    }
}

extension StoredChange {
    /// The difference that a closure makes to an entity; nil if it makes none.
    fileprivate static func modifying<E: CacheEntity>(
        _ type: E.Type,
        _ id: E.ID,
        in cache: LarderCache,
        _ change: @Sendable (inout E) -> Void
    ) -> Result<StoredChange?, LarderError> {
        let key = E.key(id)
        // A view may still have the local ID of what has got one of the server.
        let newKey = cache.serverID(of: key.id).map { EntityKey(type: key.type, id: $0) }
        guard let old = cache.visible(type, key) ?? newKey.flatMap({ cache.visible(type, $0) }) else {
            let text = "\(key) is not stored, so it cannot be changed. Read it first. Nothing was written."
            return .failure(LarderError(.invalidArgument, text))
        }
        var new = old
        change(&new)
        do {
            let base = try MergePatch.document(old)
            let patch = MergePatch.difference(from: base, to: try MergePatch.document(new))
            guard let patch else { return .success(nil) }
            guard try MergePatch.apply(patch, to: old) == new else {
                let text = "The change of \(key) cannot be written as JSON: its coding does not return an equal value."
                return .failure(LarderError(.encoding, text))
            }
            return .success(StoredChange(.modify, type, old.id, patch, base: base))
        } catch {
            return .failure(LarderError(.encoding, "\(key) cannot be encoded as JSON: \(error)", cause: error))
        }
    }

    fileprivate static func creating<E: CacheEntity>(_ entity: E) -> Result<StoredChange?, LarderError> {
        guard name(of: E.self) != nil else {
            let text =
                "\(E.self) cannot be found by its name after a restart, so a new one could not be shown. Declare it outside of functions "
                + "and not as private. Nothing was written."
            return .failure(LarderError(.invalidArgument, text))
        }
        do { return .success(StoredChange(.create, E.self, entity.id, try MergePatch.document(entity))) } catch {
            let text = "\(entity.entityKey) cannot be encoded as JSON: \(error)"
            return .failure(LarderError(.encoding, text, cause: error))
        }
    }
}
