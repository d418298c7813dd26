import LarderCoding

/// The documents that pass the filters of a query, in its order.
///
/// Each request decodes the collection: collections of files are small, and repeated requests are answered from the response cache. It
/// is not done by SQL, because SQLite compares neither mixed types nor Unicode letters as the filters do.
struct CollectionList {
    struct Item {
        let row: DocumentRow
        let keys: [JSONValue]
    }

    let items: [Item]
    private let query: CollectionQuery

    /// - Throws: `invalid-parameter` if a text is compared with a number.
    init(_ query: CollectionQuery, in store: Store) throws {
        self.query = query
        var items = try store.documents.documents(query.collection).compactMap { row -> Item? in
            // Neither filters nor keys: the documents stay as they are stored.
            if query.isWhole { return Item(row: row, keys: []) }
            let document = try JSONParser.parse(row.json)
            return try query.includes(document) ? Item(row: row, keys: query.keys(of: document)) : nil
        }
        if !query.keys.isEmpty { items.sort { Self.precedes($0.keys, $0.row.place, $1, query) } }
        self.items = items
    }

    /// The index of the first document behind a position.
    func index(after cursor: CollectionCursor) -> Int {
        items.firstIndex { Self.precedes(cursor.keys, cursor.place, $0, query) } ?? items.count
    }

    private static func precedes(_ keys: [JSONValue], _ place: Int64, _ other: Item, _ query: CollectionQuery) -> Bool {
        for (index, key) in query.keys.enumerated() {
            let order = DocumentJSON.order(keys[index], other.keys[index])
            if order != 0 { return key.isDescending ? order > 0 : order < 0 }
        }
        return place < other.row.place
    }
}
