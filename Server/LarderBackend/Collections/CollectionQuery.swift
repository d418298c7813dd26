import LarderCoding
import LarderEngine
import LarderHTTP

/// The filters, the order and the page that a request for a list asks for.
struct CollectionQuery: Sendable {
    static let limitMaximum = 1_000

    struct Key: Sendable {
        let path: JSONPath
        var isDescending: Bool
    }

    enum Page: Sendable {
        case offset(start: Int, limit: Int)
        case cursor(CollectionCursor?, limit: Int)
    }

    let collection: String
    /// Only the documents that belong to this one are in the list.
    let parent: (collection: String, id: String)?
    /// The filters and `_where` and `q`, of which each must hold.
    private(set) var conditions: [CollectionCondition] = []
    /// The names of `_embed`.
    let embedded: [String]
    /// Whether the page is an object that says the numbers of pages and items.
    private(set) var hasEnvelope = false
    private(set) var keys: [Key] = []
    private(set) var page = Page.offset(start: 0, limit: limitMaximum)
    /// The parameters that select and sort.
    private(set) var others: [QueryString.Item] = []

    /// Identifies the list in its cursors. Positive and exact in every reader of JSON.
    var digest: Int64 {
        // As JSON, so that the ends of names and values are part of the text.
        let names = [collection, parent?.collection ?? "", parent?.id ?? ""]
        let texts = (names + others.flatMap { [$0.name, $0.value] }).map { JSONValue.string($0) }
        return Int64(ContentHash.hash64(JSONValue.array(texts).encoded.span) >> 12)
    }

    private static let pageParameters = ["_page", "_start", "_end", "_limit", "_per_page", "cursor", "limit"]

    init(_ call: Call, of collection: String, below parent: (collection: String, id: String)? = nil) throws(Problem) {
        (self.collection, self.parent) = (collection, parent)
        embedded = try CollectionEndpoints.names(in: "_embed", "_expand", of: call)
        var filters: [CollectionCondition.Filter] = []
        var orders: [Substring] = []
        for item in call.query.items {
            switch item.name {
            case _ where Self.pageParameters.contains(item.name):
                guard call.query.items.count(where: { $0.name == item.name }) == 1 else {
                    throw call.invalid(item.name, "must be given once")
                }
                continue
            case "q": conditions.append(.contains(item.value.lowercased()))
            case "_embed", "_expand": break
            case "_where":
                guard let value = try? JSONParser.parse(Array(item.value.utf8), maximumDepth: 16),
                    let condition = CollectionCondition(value)
                else {
                    let form = "{\"or\":[{\"views\":{\"gt\":100}},{\"title\":{\"eq\":\"x\"}}]}"
                    throw call.invalid("_where", "must be JSON such as \(form)")
                }
                conditions.append(condition)
            case "_sort":
                for name in item.value.split(separator: ",", omittingEmptySubsequences: false) {
                    let isDescending = name.hasPrefix("-")
                    let path = try Self.path(isDescending ? name.dropFirst() : name, item.name, call)
                    keys.append(Key(path: path, isDescending: isDescending))
                }
            case "_order":
                orders = item.value.split(separator: ",", omittingEmptySubsequences: false)
                guard orders.allSatisfy({ $0 == "asc" || $0 == "desc" }) else {
                    throw call.invalid("_order", "must be `asc` or `desc` for each field of `_sort`")
                }
            default:
                let filter = try Self.filter(item, call)
                // A repeated parameter means any of its values, and with `_ne` none of them.
                if [.eq, .ne, .in].contains(filter.test),
                    let known = filters.firstIndex(where: { $0.parameter == item.name })
                {
                    filters[known].texts += filter.texts
                } else {
                    filters.append(filter)
                }
            }
            others.append(item)
        }
        guard orders.count <= keys.count else { throw call.invalid("_order", "has more entries than `_sort`") }
        for (index, order) in orders.enumerated() where order == "desc" { keys[index].isDescending = true }
        guard filters.count <= 32, keys.count <= 8 else {
            throw ProblemType.invalidParameter("A list takes at most 32 filters and 8 fields of `_sort`.")
        }
        conditions += filters.map { .test($0) }
        try readPage(call)
    }

    // MARK: Filters

    /// These also follow an underscore; others could be the ends of names, such as `logged_in`.
    private static let afterUnderscore: [CollectionCondition.Filter.Test] = [.ne, .gt, .gte, .lt, .lte, .like]

    private static func filter(_ item: QueryString.Item, _ call: Call) throws(Problem) -> CollectionCondition.Filter {
        guard !item.name.hasPrefix("_") else { throw call.invalid(item.name, "is not a parameter of lists") }
        var (name, test) = (item.name[...], CollectionCondition.Filter.Test.eq)
        if let end = item.name.lastIndex(where: { $0 == "_" || $0 == ":" }),
            let word = CollectionCondition.Filter.Test(rawValue: String(item.name[end...].dropFirst())),
            end > item.name.startIndex, item.name[end] == ":" || afterUnderscore.contains(word)
        {
            (name, test) = (item.name[..<end], word)
        } else if let colon = item.name.lastIndex(of: ":") {
            let word = item.name[colon...].dropFirst()
            let known = CollectionCondition.Filter.Test.allCases.map(\.rawValue)
            let similar = NearestName.similar(to: String(word), in: known).first.map { "; did you mean :\($0)?" } ?? ""
            throw call.invalid(item.name, "ends with none of :\(known.joined(separator: ", :"))\(similar)")
        }
        let texts = test == .in ? item.value.split(separator: ",").map { String($0) } : [item.value]
        let path = try path(name, item.name, call)
        return CollectionCondition.Filter(parameter: item.name, path: path, test: test, texts: texts)
    }

    private static func path(_ name: Substring, _ parameter: String, _ call: Call) throws(Problem) -> JSONPath {
        guard let path = JSONPath(name) else {
            throw call.invalid(parameter, "must name a field, such as `title` or `author.name`")
        }
        return path
    }

    // MARK: The page

    private mutating func readPage(_ call: Call) throws(Problem) {
        let (positions, limits) = (1_000_000_000, 1...Self.limitMaximum)
        let number = try call.integer("_page", in: 1...positions)
        let start = try call.integer("_start", in: 0...positions)
        let end = try call.integer("_end", in: 0...positions)
        let perPage = try call.integer("_per_page", in: limits)
        hasEnvelope = perPage != nil
        var size = try call.integer("_limit", in: limits) ?? perPage
        if let end { size = min(Self.limitMaximum, max(1, end - (start ?? 0))) }
        let limit = try call.integer("limit", in: limits)
        let cursor = call.query.first("cursor")
        if number != nil, start != nil { throw call.invalid("_start", "cannot be given together with `_page`") }
        guard cursor != nil || limit != nil else {
            let count = size ?? (number == nil ? Self.limitMaximum : 10)
            page = .offset(start: start ?? ((number ?? 1) - 1) * count, limit: count)
            return
        }
        for name in Self.pageParameters where name.hasPrefix("_") && call.query.first(name) != nil {
            throw call.invalid(name, "cannot be given together with `cursor` or `limit`")
        }
        var place: CollectionCursor?
        if let cursor, !cursor.isEmpty {
            place = CollectionCursor(parsing: cursor, digest: digest, keyCount: keys.count)
            guard place != nil else { throw call.invalidCursor("cursor") }
        }
        page = .cursor(place, limit: limit ?? 20)
    }

    // MARK: Documents

    struct Item {
        let position: CollectionCursor
        let document: EntityRow
    }

    /// The documents of the list, in its order.
    ///
    /// Each request decodes the collection: collections of files are small, and repeated requests are answered from the response cache. It
    /// is not done by SQL, because SQLite compares neither mixed types nor Unicode letters as the filters do.
    ///
    /// - Throws: `invalid-parameter` if a text is compared with a number.
    func items(in store: Store) throws -> [Item] {
        let rows =
            try parent.map { try CollectionRelations.children(collection, of: $0.collection, $0.id, in: store) }
            ?? store.collections.documents(collection)
        let items = try rows.compactMap { row -> Item? in
            let document = JSONValue.object(row.members)
            guard try conditions.allSatisfy({ try $0.holds(for: document) }) else { return nil }
            let keys = keys.map { DocumentJSON.key($0.path.values(in: document).first) }
            return Item(position: CollectionCursor(keys: keys, place: row.id.row), document: row)
        }
        return keys.isEmpty ? items : items.sorted { precedes($0.position, $1.position) }
    }

    func precedes(_ position: CollectionCursor, _ other: CollectionCursor) -> Bool {
        for (index, key) in keys.enumerated() {
            let order = DocumentJSON.order(position.keys[index], other.keys[index])
            if order != 0 { return key.isDescending ? order > 0 : order < 0 }
        }
        return position.place < other.place
    }
}

/// A keyset position in a list: the sort keys and the place of a document. It stays valid when the document is deleted.
struct CollectionCursor: Sendable {
    let keys: [JSONValue]
    let place: Int64
}

extension CollectionCursor {
    /// Nil for text that was not issued for this list.
    init?(parsing text: String, digest: Int64, keyCount: Int) {
        guard let bytes = Base64.decode(text) else { return nil }
        let value: JSONValue
        do { value = try JSONParser.parse(bytes) } catch {
            // It was not issued here: the caller answers with a problem that names the parameter.
            return nil
        }
        guard let parts = value.array, parts.count == keyCount + 2, parts[0].integer == digest,
            let place = parts[1].integer
        else { return nil }
        self.init(keys: Array(parts[2...]), place: place)
    }

    func text(digest: Int64) -> String {
        Base64.encode(JSONValue.array([.integer(digest), .integer(place)] + keys).encoded)
    }
}
