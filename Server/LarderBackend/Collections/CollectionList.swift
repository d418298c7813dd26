import LarderCoding

/// The documents that pass the filters of a query, in its order.
///
/// The first request for a list decodes the whole collection. Later ones only decode the documents that have changed since, some
/// O(log n) for each of them and for the position of a cursor, and those of the page. It is not done by SQL: SQLite compares
/// neither mixed types nor Unicode letters as the filters do, and the total of a list has to be counted as well.
struct CollectionList {
    private let query: CollectionQuery
    private let store: Store
    private let entries: [DocumentLists.Entry]

    /// - Throws: `invalid-parameter` if a text is compared with a number.
    init(_ query: CollectionQuery, in store: Store) throws {
        (self.query, self.store) = (query, store)
        let key = query.list
        let newest = try store.changes.newestPosition()
        let known = store.lists.take(key)
        // A lagging replica reads an earlier state, which the known list does not describe.
        if let known, known.position > newest {
            entries = try Self.all(query, in: store)
            store.lists.keep(known, for: key)
            return
        }
        entries = try known.flatMap { try Self.updated($0, query, in: store) } ?? Self.all(query, in: store)
        store.lists.keep(DocumentLists.List(position: newest, entries: entries), for: key)
    }

    var count: Int { entries.count }

    /// A part of the list. Cost: follows the number of documents.
    func documents(from start: Int, limit: Int) throws -> [DocumentRow] {
        try entries.dropFirst(start).prefix(limit).compactMap { entry in
            try store.documents.find(entry.number, in: query.collection)
        }
    }

    /// The index of the first document behind a position.
    func index(after cursor: CollectionCursor) throws -> Int {
        try Self.index(after: Sortable(keys: cursor.keys, place: cursor.place), in: entries, query, store)
    }

    /// The sort keys of a document.
    func keys(of row: DocumentRow) throws -> [JSONValue] { query.keys(of: try Self.decode(row, store)) }

    // MARK: Making

    private struct Sortable {
        let keys: [JSONValue]
        let place: Int64
    }

    private static func decode(_ row: DocumentRow, _ store: Store) throws -> JSONValue {
        store.lists.decodedCount += 1
        return try JSONParser.parse(row.json)
    }

    private static func all(_ query: CollectionQuery, in store: Store) throws -> [DocumentLists.Entry] {
        var found: [(entry: DocumentLists.Entry, keys: [JSONValue])] = []
        for row in try store.documents.documents(query.collection) {
            let document = try decode(row, store)
            guard try query.includes(document) else { continue }
            found.append((DocumentLists.Entry(number: row.number, place: row.place), query.keys(of: document)))
        }
        guard !query.keys.isEmpty else { return found.map(\.entry) }
        return found.sorted { left, right in
            precedes(Sortable(keys: left.keys, place: left.entry.place), right.keys, right.entry.place, query)
        }.map(\.entry)
    }

    /// The list with the changes since; nil if it must be made again.
    private static func updated(
        _ known: DocumentLists.List,
        _ query: CollectionQuery,
        in store: Store
    ) throws -> [DocumentLists.Entry]? {
        // Deletions after the position may have been forgotten.
        guard try store.meta.integer(.tombstoneHorizon) ?? 0 <= known.position else { return nil }
        // The position of a changed document takes a binary search, which decodes a document in each step. Measured with 20,000
        // documents: changes of 1/32 of them cost three quarters of a new list, of 1/16 as much as a new list.
        let countMaximum = max(16, known.entries.count / 32)
        let changes = try store.changes.rows(after: known.position, limit: countMaximum + 1)
        guard changes.count <= countMaximum else { return nil }
        let numbers = Set(changes.filter { $0.entity.kind == .document }.map(\.entity.row))
        guard !numbers.isEmpty else { return known.entries }
        var entries = known.entries
        entries.removeAll { numbers.contains($0.number) }
        for number in numbers.sorted() {
            guard let row = try store.documents.find(number, in: query.collection) else { continue }
            let document = try decode(row, store)
            guard try query.includes(document) else { continue }
            let sortable = Sortable(keys: query.keys(of: document), place: row.place)
            let index = try index(after: sortable, in: entries, query, store)
            entries.insert(DocumentLists.Entry(number: number, place: row.place), at: index)
        }
        return entries
    }

    private static func index(
        after position: Sortable,
        in entries: [DocumentLists.Entry],
        _ query: CollectionQuery,
        _ store: Store
    ) throws -> Int {
        var (low, high) = (0, entries.count)
        while low < high {
            let middle = (low + high) / 2
            let entry = entries[middle]
            var keys: [JSONValue] = []
            if !query.keys.isEmpty {
                guard let row = try store.documents.find(entry.number, in: query.collection) else {
                    preconditionFailure("a list has only documents that exist")
                }
                keys = query.keys(of: try decode(row, store))
            }
            if precedes(position, keys, entry.place, query) { high = middle } else { low = middle + 1 }
        }
        return low
    }

    private static func precedes(_ left: Sortable, _ keys: [JSONValue], _ place: Int64, _ query: CollectionQuery)
        -> Bool
    {
        for (index, key) in query.keys.enumerated() {
            let order = DocumentJSON.order(left.keys[index], keys[index])
            if order != 0 { return key.isDescending ? order > 0 : order < 0 }
        }
        return left.place < place
    }
}
