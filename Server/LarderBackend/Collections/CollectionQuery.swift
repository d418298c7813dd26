import LarderCoding
import LarderEngine
import LarderHTTP

/// The filters, the order and the page that a request for a list asks for.
struct CollectionQuery: Sendable {
    static let limitMaximum = 1_000

    struct Filter: Sendable {
        /// What a filter does with a value and its texts, as the end of a parameter's name: `price:gte`.
        enum Test: String {
            case eq, ne, gt, gte, lt, lte, `in`, like, contains, startsWith, endsWith
        }

        let parameter: String
        let path: JSONPath
        let test: Test
        var texts: [String]
    }

    /// A condition of `_where`.
    indirect enum Condition: Sendable {
        case all([Condition])
        case any([Condition])
        case not(Condition)
        case test(Filter)
    }

    struct Key: Sendable {
        let path: JSONPath
        var isDescending: Bool
    }

    enum Page: Sendable {
        case offset(start: Int, limit: Int)
        case cursor(CollectionCursor?, limit: Int)
    }

    let collection: String
    private(set) var filters: [Filter] = []
    private(set) var condition: Condition?
    /// The names of `_embed`.
    private(set) var embedded: [String] = []
    /// Whether the page is an object that says the numbers of pages and items.
    private(set) var hasEnvelope = false
    /// The lowercase text of `q`.
    private(set) var text: String?
    private(set) var keys: [Key] = []
    private(set) var page = Page.offset(start: 0, limit: limitMaximum)
    /// Whether `_start` says where the page begins, instead of `_page`.
    private(set) var usesStart = false
    /// Whether the request has a parameter of paging.
    private(set) var isPaged = false
    /// The parameters that select and sort.
    private(set) var others: [QueryString.Item] = []

    /// Identifies the list in its cursors. Positive and exact in every reader of JSON.
    var digest: Int64 {
        // As JSON, so that the ends of names and values are part of the text.
        let texts = ([collection] + others.flatMap { [$0.name, $0.value] }).map { JSONValue.string($0) }
        return Int64(ContentHash.hash64(JSONValue.array(texts).encoded.span) >> 12)
    }

    var isWhole: Bool { filters.isEmpty && condition == nil && text == nil && keys.isEmpty }

    private static let pageParameters = ["_page", "_start", "_end", "_limit", "_per_page", "cursor", "limit"]

    /// - Parameter key: a member that must have the text `id`.
    init(_ call: Call, of collection: String, where key: String? = nil, is id: String = "") throws(Problem) {
        self.collection = collection
        if let key, let path = JSONPath(key) {
            filters = [Filter(parameter: key, path: path, test: .eq, texts: [id])]
        }
        var orders: [Substring] = []
        for item in call.query.items {
            switch item.name {
            case _ where Self.pageParameters.contains(item.name):
                guard call.query.items.count(where: { $0.name == item.name }) == 1 else {
                    throw call.invalid(item.name, "must be given once")
                }
                isPaged = true
                continue
            case "q": text = item.value.lowercased()
            case "_embed": embedded += item.value.split(separator: ",").map { String($0) }
            case "_where":
                guard let value = try? JSONParser.parse(Array(item.value.utf8), maximumDepth: 16),
                    let condition = Self.condition(value, at: [])
                else {
                    throw call.invalid(
                        "_where",
                        "must be JSON such as {\"or\":[{\"views\":{\"gt\":100}},{\"title\":{\"eq\":\"x\"}}]}"
                    )
                }
                self.condition = condition
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
            default: try addFilter(item, call)
            }
            others.append(item)
        }
        guard orders.count <= keys.count else { throw call.invalid("_order", "has more entries than `_sort`") }
        for (index, order) in orders.enumerated() where order == "desc" { keys[index].isDescending = true }
        guard filters.count <= 32, keys.count <= 8 else {
            throw ProblemType.invalidParameter("A list takes at most 32 filters and 8 fields of `_sort`.")
        }
        try readPage(call)
    }

    // MARK: Filters

    /// These also follow an underscore; others could be the ends of names, such as `logged_in`.
    private static let afterUnderscore: [Filter.Test] = [.ne, .gt, .gte, .lt, .lte, .like]

    private mutating func addFilter(_ item: QueryString.Item, _ call: Call) throws(Problem) {
        guard !item.name.hasPrefix("_") else { throw call.invalid(item.name, "is not a parameter of lists") }
        var (name, test) = (item.name[...], Filter.Test.eq)
        if let end = item.name.lastIndex(where: { $0 == "_" || $0 == ":" }),
            let word = Filter.Test(rawValue: String(item.name[end...].dropFirst())), end > item.name.startIndex,
            item.name[end] == ":" || Self.afterUnderscore.contains(word)
        {
            (name, test) = (item.name[..<end], word)
        }
        let path = try Self.path(name, item.name, call)
        if [.gt, .gte, .lt, .lte].contains(test), item.value.isEmpty {
            throw call.invalid(item.name, "must not be empty")
        }
        let texts = test == .in ? item.value.split(separator: ",").map { String($0) } : [item.value]
        // A repeated parameter means any of its values, and with `_ne` none of them.
        if [.eq, .ne, .in].contains(test), let known = filters.firstIndex(where: { $0.parameter == item.name }) {
            filters[known].texts += texts
        } else {
            filters.append(Filter(parameter: item.name, path: path, test: test, texts: texts))
        }
    }

    /// The condition that a value of `_where` says; nil if it says none.
    private static func condition(_ value: JSONValue, at path: [String]) -> Condition? {
        func test(_ test: Filter.Test, _ values: [JSONValue]) -> Condition? {
            let texts = values.map { RouteTemplate.text($0) }
            return JSONPath(path.joined(separator: ".")).map {
                .test(Filter(parameter: "_where", path: $0, test: test, texts: texts))
            }
        }
        func parts(_ parts: [Condition?]) -> [Condition]? {
            parts.contains { $0 == nil } ? nil : parts.compactMap { $0 }
        }
        guard let object = value.object else { return test(.eq, [value]) }
        return parts(
            object.members.map { member in
                let elements = member.value.array
                switch member.name {
                case "or": return parts(elements?.map { condition($0, at: path) } ?? [nil]).map { .any($0) }
                case "and": return parts(elements?.map { condition($0, at: path) } ?? [nil]).map { .all($0) }
                case "not": return condition(member.value, at: path).map { .not($0) }
                default:
                    guard !path.isEmpty, let word = Filter.Test(rawValue: member.name) else {
                        return condition(member.value, at: path + [member.name])
                    }
                    return test(word, word == .in ? elements ?? [member.value] : [member.value])
                }
            }
        ).map { .all($0) }
    }

    private static func path(_ name: Substring, _ parameter: String, _ call: Call) throws(Problem) -> JSONPath {
        guard let path = JSONPath(name) else {
            throw call.invalid(parameter, "must name a field, such as `title` or `author.name`")
        }
        return path
    }

    // MARK: The page

    private mutating func readPage(_ call: Call) throws(Problem) {
        let positions = 1_000_000_000
        let number = try call.integer("_page", in: 1...positions)
        let start = try call.integer("_start", in: 0...positions)
        let perPage = try call.integer("_per_page", in: 1...Self.limitMaximum)
        let end = try call.integer("_end", in: 0...positions)
        hasEnvelope = perPage != nil
        var size = try call.integer("_limit", in: 1...Self.limitMaximum) ?? perPage
        if let end { size = min(Self.limitMaximum, max(1, end - (start ?? 0))) }
        let limit = try call.integer("limit", in: 1...Self.limitMaximum)
        let cursor = call.query.first("cursor")
        if number != nil, start != nil { throw call.invalid("_start", "cannot be given together with `_page`") }
        usesStart = start != nil
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

    /// Whether a document is in the list.
    ///
    /// - Throws: `invalid-parameter` if a text is compared with a number.
    func includes(_ document: JSONValue) throws(Problem) -> Bool {
        if let text, !DocumentJSON.contains(text, in: document) { return false }
        if let condition, try !condition.holds(for: document) { return false }
        for filter in filters where try !filter.passes(document) { return false }
        return true
    }

    /// The keys to sort a document by.
    func keys(of document: JSONValue) -> [JSONValue] {
        keys.map { DocumentJSON.key($0.path.values(in: document).first) }
    }
}

extension CollectionQuery.Condition {
    fileprivate func holds(for document: JSONValue) throws(Problem) -> Bool {
        switch self {
        case .all(let parts):
            for part in parts where try !part.holds(for: document) { return false }
            return true
        case .any(let parts):
            for part in parts where try part.holds(for: document) { return true }
            return false
        case .not(let part): return try !part.holds(for: document)
        case .test(let filter): return try filter.passes(document)
        }
    }
}

extension CollectionQuery.Filter {
    fileprivate func passes(_ document: JSONValue) throws(Problem) -> Bool {
        for value in path.values(in: document) where try matches(value) { return test != .ne }
        return test == .ne
    }

    private func matches(_ value: JSONValue) throws(Problem) -> Bool {
        let text = texts.first?.lowercased() ?? ""
        switch test {
        case .eq, .ne, .in: return texts.contains { DocumentJSON.isEqual(value, to: $0) }
        case .gt: return try order(value).map { $0 > 0 } ?? false
        case .gte: return try order(value).map { $0 >= 0 } ?? false
        case .lt: return try order(value).map { $0 < 0 } ?? false
        case .lte: return try order(value).map { $0 <= 0 } ?? false
        case .like, .contains: return DocumentJSON.contains(text, in: value)
        case .startsWith: return value.string?.lowercased().hasPrefix(text) ?? false
        case .endsWith: return value.string?.lowercased().hasSuffix(text) ?? false
        }
    }

    private func order(_ value: JSONValue) throws(Problem) -> Int? {
        let text = texts.first ?? ""
        switch value {
        case .string: return DocumentJSON.order(value, .string(text))
        case .integer, .number: break
        default: return nil
        }
        if let integer = Int64(text) { return DocumentJSON.order(value, .integer(integer)) }
        guard let bound = Double(text), bound.isFinite else {
            throw ProblemType.invalidParameter(
                "`\(parameter)` must be a number, as the field is.",
                errors: [Problem.FieldError(pointer: parameter, detail: "must be a number")]
            )
        }
        return DocumentJSON.order(value, .number(bound))
    }
}

/// A keyset position in a list: the sort keys and the place of a document. It stays valid when the document is deleted.
struct CollectionCursor: Sendable {
    let keys: [JSONValue]
    let place: Int64

    init(keys: [JSONValue], place: Int64) { (self.keys, self.place) = (keys, place) }

    /// Nil for text that was not issued for this list.
    init?(parsing text: String, digest: Int64, keyCount: Int) {
        guard let bytes = Base64.decode(text) else { return nil }
        let issued: JSONValue
        do { issued = try JSONParser.parse(bytes) } catch { return nil }
        guard let parts = issued.array, parts.count == keyCount + 2, parts[0].integer == digest,
            let place = parts[1].integer
        else { return nil }
        self.init(keys: Array(parts[2...]), place: place)
    }

    func text(digest: Int64) -> String {
        Base64.encode(JSONValue.array([.integer(digest), .integer(place)] + keys).encoded)
    }
}
