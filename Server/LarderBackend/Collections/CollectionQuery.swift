import LarderCoding
import LarderEngine
import LarderHTTP

/// The filters, the order and the page that a request for a list asks for.
struct CollectionQuery: Sendable {
    static let limitMaximum = 1_000

    enum Test: Sendable {
        /// Equal to one of the texts.
        case equal([String])
        case unequal([String])
        /// Compared with the text; negative, 0 or positive.
        case order(String, @Sendable (Int) -> Bool)
        /// A text that has the lowercase text somewhere, at its beginning, or at its end.
        case contains(String)
        case starts(String)
        case ends(String)
    }

    /// A condition of `_where`.
    indirect enum Condition: Sendable {
        case all([Condition])
        case any([Condition])
        case not(Condition)
        case test(Filter)
    }

    struct Filter: Sendable {
        let parameter: String
        let path: [String]
        var test: Test
    }

    struct Key: Sendable {
        let path: [String]
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

    /// Identifies the list in its cursors.
    var digest: UInt64 {
        // As JSON, so that the ends of names and values are part of the text.
        let texts = ([collection] + others.flatMap { [$0.name, $0.value] }).map { JSONValue.string($0) }
        return ContentHash.hash64(DocumentJSON.encode(.array(texts)).span)
    }

    var isWhole: Bool { filters.isEmpty && condition == nil && text == nil && keys.isEmpty }

    /// - Parameter key: a member that must have the text `id`.
    init(_ call: Call, of collection: String, where key: String? = nil, is id: String = "") throws(Problem) {
        self.collection = collection
        if let key { filters = [Filter(parameter: key, path: [key], test: .equal([id]))] }
        guard let query = QueryString(parsing: Array(call.request.query ?? [])) else {
            throw ProblemType.invalidParameter("The query is not valid percent-encoded UTF-8.")
        }
        var orders: [Substring] = []
        for item in query.items {
            switch item.name {
            case "_page", "_limit", "_per_page", "_start", "_end", "cursor", "limit":
                guard query.items.count(where: { $0.name == item.name }) == 1 else {
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
                    let path = try Self.path(String(isDescending ? name.dropFirst() : name), item.name, call)
                    keys.append(Key(path: path, isDescending: isDescending))
                }
            case "_order":
                orders = item.value.split(separator: ",", omittingEmptySubsequences: false)
                guard orders.allSatisfy({ $0 == "asc" || $0 == "desc" }) else {
                    throw call.invalid("_order", "must be `asc` or `desc` for each field of `_sort`")
                }
            default: try add(item, call)
            }
            others.append(item)
        }
        guard orders.count <= keys.count else { throw call.invalid("_order", "has more entries than `_sort`") }
        for (index, order) in orders.enumerated() where order == "desc" { keys[index].isDescending = true }
        guard filters.count <= 32, keys.count <= 8 else {
            throw ProblemType.invalidParameter("A list takes at most 32 filters and 8 fields of `_sort`.")
        }
        try readPage(query, call)
    }

    /// The operators, as the end of a parameter's name: `price:gte`.
    private static let operators = [
        "eq", "ne", "gt", "gte", "lt", "lte", "in", "like", "contains", "startsWith", "endsWith",
    ]

    private mutating func add(_ item: QueryString.Item, _ call: Call) throws(Problem) {
        for name in Self.operators {
            // Other operators after `_` could be the ends of names, such as `logged_in`.
            let isOld = ["ne", "gt", "gte", "lt", "lte", "like"].contains(name)
            for suffix in isOld ? ["_" + name, ":" + name] : [":" + name]
            where item.name.hasSuffix(suffix) && item.name.count > suffix.count {
                let path = try Self.path(String(item.name.dropLast(suffix.count)), item.name, call)
                if ["gt", "gte", "lt", "lte"].contains(name), item.value.isEmpty {
                    throw call.invalid(item.name, "must not be empty")
                }
                return merge(Filter(parameter: item.name, path: path, test: Self.test(name, item.value)))
            }
        }
        guard !item.name.hasPrefix("_") else { throw call.invalid(item.name, "is not a parameter of lists") }
        merge(Filter(parameter: item.name, path: try Self.path(item.name, item.name, call), test: .equal([item.value])))
    }

    private static func test(_ name: String, _ value: String) -> Test {
        switch name {
        case "ne": .unequal([value])
        case "gt": .order(value) { $0 > 0 }
        case "gte": .order(value) { $0 >= 0 }
        case "lt": .order(value) { $0 < 0 }
        case "lte": .order(value) { $0 <= 0 }
        case "in": .equal(value.split(separator: ",").map { String($0) })
        case "like", "contains": .contains(value.lowercased())
        case "startsWith": .starts(value.lowercased())
        case "endsWith": .ends(value.lowercased())
        default: .equal([value])
        }
    }

    /// The condition that a value of `_where` says; nil if it says none.
    private static func condition(_ value: JSONValue, at path: [String]) -> Condition? {
        guard let object = value.object else {
            return .test(Filter(parameter: "_where", path: path, test: .equal([RouteTemplate.text(value)])))
        }
        let conditions = object.members.map { member -> Condition? in
            let name = member.name
            switch name {
            case "or", "and":
                let parts = member.value.array?.map { condition($0, at: path) } ?? [nil]
                let all = parts.compactMap { $0 }
                return all.count == parts.count ? name == "or" ? .any(all) : .all(all) : nil
            case "not": return condition(member.value, at: path).map { .not($0) }
            case _ where !path.isEmpty && operators.contains(name):
                if name == "in", let values = member.value.array {
                    let texts = values.map { RouteTemplate.text($0) }
                    return .test(Filter(parameter: "_where", path: path, test: .equal(texts)))
                }
                return .test(
                    Filter(parameter: "_where", path: path, test: test(name, RouteTemplate.text(member.value)))
                )
            default: return condition(member.value, at: path + name.split(separator: ".").map { String($0) })
            }
        }
        return conditions.contains { $0 == nil } ? nil : .all(conditions.compactMap { $0 })
    }

    private static func holds(_ condition: Condition, _ document: JSONValue) throws(Problem) -> Bool {
        switch condition {
        case .all(let parts):
            for part in parts where try !holds(part, document) { return false }
            return true
        case .any(let parts):
            for part in parts where try holds(part, document) { return true }
            return false
        case .not(let part): return try !holds(part, document)
        case .test(let filter): return try passes(DocumentJSON.value(filter.path, in: document), filter)
        }
    }

    /// A repeated parameter means any of its values, and with `_ne` none of them.
    private mutating func merge(_ filter: Filter) {
        guard let index = filters.firstIndex(where: { $0.parameter == filter.parameter }) else {
            return filters.append(filter)
        }
        switch (filters[index].test, filter.test) {
        case (.equal(let known), .equal(let more)): filters[index].test = .equal(known + more)
        case (.unequal(let known), .unequal(let more)): filters[index].test = .unequal(known + more)
        default: filters.append(filter)
        }
    }

    private static func path(_ name: String, _ parameter: String, _ call: Call) throws(Problem) -> [String] {
        let path = name.split(separator: ".", omittingEmptySubsequences: false).map { String($0) }
        guard path.allSatisfy({ !$0.isEmpty }), path.count <= 16 else {
            throw call.invalid(parameter, "must name a field, such as `title` or `author.name`")
        }
        return path
    }

    private mutating func readPage(_ query: QueryString, _ call: Call) throws(Problem) {
        func integer(_ name: String, _ range: ClosedRange<Int>) throws(Problem) -> Int? {
            guard let text = query.first(name) else { return nil }
            guard let value = Int(text), range.contains(value), !text.hasPrefix("+") else {
                throw call.invalid(name, "must be an integer from \(range.lowerBound) to \(range.upperBound)")
            }
            return value
        }
        let positions = 1_000_000_000
        let number = try integer("_page", 1...positions)
        let start = try integer("_start", 0...positions)
        let perPage = try integer("_per_page", 1...Self.limitMaximum)
        let end = try integer("_end", 0...positions)
        hasEnvelope = perPage != nil
        var size = try integer("_limit", 1...Self.limitMaximum) ?? perPage
        if let end { size = min(Self.limitMaximum, max(1, end - (start ?? 0))) }
        let limit = try integer("limit", 1...Self.limitMaximum)
        let cursor = query.first("cursor")
        if number != nil, start != nil { throw call.invalid("_start", "cannot be given together with `_page`") }
        usesStart = start != nil
        guard cursor != nil || limit != nil else {
            let count = size ?? (number == nil ? Self.limitMaximum : 10)
            page = .offset(start: start ?? ((number ?? 1) - 1) * count, limit: count)
            return
        }
        for name in ["_page", "_start", "_end", "_limit", "_per_page"] where query.first(name) != nil {
            throw call.invalid(name, "cannot be given together with `cursor` or `limit`")
        }
        var place: CollectionCursor?
        if let cursor, !cursor.isEmpty {
            place = CollectionCursor(parsing: cursor, digest: digest, keyCount: keys.count)
            guard place != nil else {
                throw ProblemType.invalidCursor(
                    "`cursor` is not a cursor of this list.",
                    errors: [Problem.FieldError(pointer: "cursor", detail: "is not a cursor of this list")]
                )
            }
        }
        page = .cursor(place, limit: limit ?? 20)
    }

    /// Whether a document is in the list.
    ///
    /// - Throws: `invalid-parameter` if a text is compared with a number.
    func includes(_ document: JSONValue) throws(Problem) -> Bool {
        if let text, !DocumentJSON.contains(text, in: document) { return false }
        if let condition, try !Self.holds(condition, document) { return false }
        for filter in filters where try !Self.passes(DocumentJSON.value(filter.path, in: document), filter) {
            return false
        }
        return true
    }

    /// The keys to sort a document by.
    func keys(of document: JSONValue) -> [JSONValue] {
        keys.map { DocumentJSON.key(DocumentJSON.value($0.path, in: document)) }
    }

    private static func passes(_ value: JSONValue?, _ filter: Filter) throws(Problem) -> Bool {
        switch filter.test {
        case .equal(let texts):
            return value.map { value in texts.contains { DocumentJSON.isEqual(value, to: $0) } } ?? false
        case .unequal(let texts):
            return value.map { value in !texts.contains { DocumentJSON.isEqual(value, to: $0) } } ?? true
        case .order(let bound, let holds): return try order(value, bound, filter).map(holds) ?? false
        case .contains(let text): return value.map { DocumentJSON.contains(text, in: $0) } ?? false
        case .starts(let text): return value?.string?.lowercased().hasPrefix(text) ?? false
        case .ends(let text): return value?.string?.lowercased().hasSuffix(text) ?? false
        }
    }

    private static func order(_ value: JSONValue?, _ bound: String, _ filter: Filter) throws(Problem) -> Int? {
        switch value {
        case .string(let text)?: return DocumentJSON.order(.string(text), .string(bound))
        case .integer(let integer)?:
            if let bound = Int64(bound) { return DocumentJSON.order(.integer(integer), .integer(bound)) }
        case .number?: break
        default: return nil
        }
        guard let value, let bound = Double(bound), bound.isFinite else {
            throw ProblemType.invalidParameter(
                "`\(filter.parameter)` must be a number, as the field is.",
                errors: [Problem.FieldError(pointer: filter.parameter, detail: "must be a number")]
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
    init?(parsing text: String, digest: UInt64, keyCount: Int) {
        let count = text.utf8.count
        let bytes = unsafe withUnsafeTemporaryAllocation(of: UInt8.self, capacity: count) { buffer -> [UInt8]? in
            guard let length = unsafe Base64.readURL(text, to: buffer) else { return nil }
            return unsafe Array(buffer[..<length])
        }
        guard let bytes, let parts = try? JSONParser.parse(bytes).array, parts.count == keyCount + 2,
            let place = parts[1].integer
        else { return nil }
        keys = Array(parts[2...])
        self.place = place
        guard parts[0].integer == check(digest) else { return nil }
    }

    func text(digest: UInt64) -> String {
        Base64.encodeURL(DocumentJSON.encode(.array([.integer(check(digest)), .integer(place)] + keys)))
    }

    /// Covers the list and the position.
    private func check(_ digest: UInt64) -> Int64 {
        let hash = ContentHash.hash64(DocumentJSON.encode(.array([.integer(place)] + keys)).span, seed: digest)
        // Positive and exact in every reader of JSON.
        return Int64(hash >> 12)
    }
}
