import LarderStorage

extension PageRequest {
    /// A page by identifiers and versions only.
    package struct Index: Sendable, Hashable {
        /// An item of the page.
        package struct Entry: Sendable, Hashable {
            /// The description of its identifier.
            package let id: String
            /// Its version at the source (`CacheEntity.entityVersion`).
            package let version: Int64

            package init(id: String, version: Int64) {
                self.id = id
                self.version = version
            }
        }

        /// The items in order.
        package var entries: [Entry]
        /// As `EntityList.nextCursor`.
        package var nextCursor: String?
        /// As `EntityList.previousCursor`.
        package var previousCursor: String?

        package init(_ entries: [Entry], nextCursor: String? = nil, previousCursor: String? = nil) {
            self.entries = entries
            self.nextCursor = nextCursor
            self.previousCursor = previousCursor
        }
    }

    /// Distinguishes the validators of indexes from those of whole pages, which belong to another representation.
    private static let indexMark = "index "

    /// The validator of the index, if the stored page was fetched by one.
    var indexValidator: String? {
        guard let validator, validator.hasPrefix(Self.indexMark) else { return nil }
        return String(validator.dropFirst(Self.indexMark.count))
    }

    /// The same request for the whole page: the validator of an index does not apply to it.
    package var forWholePage: PageRequest {
        var request = self
        request.stored = nil
        if indexValidator != nil { request.validator = nil }
        return request
    }

    /// Answers a request by an index if most of the page is stored: asks the source for identifiers and versions, and fetches only the
    /// items that are missing, older or invalidated.
    ///
    /// It costs an index, and a request for each `batchMaximum` items to fetch. An item that the source does not return is left out of
    /// the page, which is then fetched whole the next time. An item may be newer than the index says; an older one is
    /// `.unexpectedReply`. If a request fails, the page fails, and nothing is changed. The lifetime is the shortest that a reply has stated.
    ///
    /// The whole page is requested if less than half of it is stored, if the list has fewer than ten items, and if the page was confirmed
    /// within two hours, because its own validator then saves more. A page that was fetched by an index is always refreshed by its index. Items need an `entityVersion`.
    ///
    /// - Parameters:
    ///   - type: the type of the items; it need not be stated where the result says it.
    ///   - batchMaximum: the maximum number of identifiers of one call of `items`; at least 1.
    ///   - index: fetches the index of the page. The validator of its request is that of an index.
    ///   - items: fetches items by identifiers, in any order, without those that do not exist.
    ///   - whole: fetches the whole page.
    package func page<Item: CacheEntity>(
        of type: Item.Type = Item.self,
        batchMaximum: Int = 100,
        index: @Sendable (PageRequest) async throws(LarderError) -> Fetched<Index>,
        items: @Sendable ([String]) async throws(LarderError) -> Fetched<[Item]>,
        whole: @Sendable (PageRequest) async throws(LarderError) -> Fetched<EntityList<Item>>
    ) async throws(LarderError) -> Fetched<EntityList<Item>> {
        guard let stored, indexValidator != nil || stored.pays(limit: limit) else {
            return try await whole(forWholePage)
        }
        var request = forWholePage
        request.validator = indexValidator
        let fetched = try await index(request)
        guard let index = fetched.value else { return fetched.map { _ in EntityList([]) } }
        func versions(_ entries: [Index.Entry]) -> [StoredItems.Version] {
            entries.map { StoredItems.Version(key: EntityKey(Item.self, $0.id), version: $0.version) }
        }
        let values = await stored.values(versions(index.entries), { try Item.codec.decode($0) })
        var known = values.compactMapValues { $0 as? Item }
        let needed = index.entries.filter { known[$0.id] == nil }
        var terms = fetched
        for start in stride(from: 0, to: needed.count, by: max(1, batchMaximum)) {
            let batch = needed[start..<min(needed.count, start + max(1, batchMaximum))]
            let reply = try await items(batch.map(\.id))
            guard let found = reply.value else {
                throw LarderError(
                    .unexpectedReply,
                    "A request for \(batch.count) items by identifiers was not answered by items."
                )
            }
            terms.mayStore = terms.mayStore && reply.mayStore
            terms.mustRevalidate = terms.mustRevalidate || reply.mustRevalidate
            terms.lifetime = [terms.lifetime, reply.lifetime].compactMap { $0 }.min()
            terms.age = max(terms.age, reply.age)
            let wanted = Dictionary(batch.map { ($0.id, $0.version) }, uniquingKeysWith: max)
            for item in found {
                guard let version = wanted[item.entityID] else { continue }
                if let has = item.entityVersion, has < version {
                    throw LarderError(
                        .unexpectedReply,
                        "The item \(item.entityID) is older than version \(version), which the index of its page has."
                    )
                }
                known[item.entityID] = item
            }
        }
        // An item that is missing may be deleted, or unknown to the replica that has answered: it is left out, and the page is not
        // confirmed by its validator.
        let isWhole = needed.allSatisfy { known[$0.id] != nil }
        var page = terms.map { index in
            EntityList(
                index.entries.compactMap { known[$0.id] },
                nextCursor: index.nextCursor,
                previousCursor: index.previousCursor
            )
        }
        page.validator = isWhole ? fetched.validator.map { Self.indexMark + $0 } : nil
        return page
    }
}
