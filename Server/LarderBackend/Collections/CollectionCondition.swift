import LarderCoding
import LarderHTTP

/// What a document must be like to be in a list.
indirect enum CollectionCondition: Sendable {
    case all([CollectionCondition])
    case any([CollectionCondition])
    case not(CollectionCondition)
    /// A text or number in it contains the lowercase text.
    case contains(String)
    case test(Filter)

    struct Filter: Sendable {
        /// What a filter does with a value and its texts, as the end of a parameter's name: `price:gte`.
        enum Test: String, CaseIterable {
            case eq, ne, gt, gte, lt, lte, `in`, like, contains, startsWith, endsWith
        }

        let parameter: String
        let path: JSONPath
        let test: Test
        var texts: [String]
    }

    /// The condition that a value of `_where` says; nil if it says none.
    init?(_ value: JSONValue, at path: [String] = []) {
        guard let object = value.object else {
            self.init(.eq, [value], at: path)
            return
        }
        func parts(_ values: [JSONValue]?) -> [CollectionCondition]? {
            let parts = values?.compactMap { CollectionCondition($0, at: path) }
            return parts?.count == values?.count ? parts : nil
        }
        let members = object.members.compactMap { member -> CollectionCondition? in
            switch member.name {
            case "or": return parts(member.value.array).map { .any($0) }
            case "and": return parts(member.value.array).map { .all($0) }
            case "not": return CollectionCondition(member.value, at: path).map { .not($0) }
            default:
                guard !path.isEmpty, let test = Filter.Test(rawValue: member.name) else {
                    return CollectionCondition(member.value, at: path + [member.name])
                }
                return CollectionCondition(
                    test,
                    test == .in ? member.value.array ?? [member.value] : [member.value],
                    at: path
                )
            }
        }
        guard members.count == object.members.count else { return nil }
        self = .all(members)
    }

    private init?(_ test: Filter.Test, _ values: [JSONValue], at path: [String]) {
        guard let path = JSONPath(path.joined(separator: ".")) else { return nil }
        let texts = values.map(\.text)
        self = .test(Filter(parameter: "_where", path: path, test: test, texts: texts))
    }

    /// - Throws: `invalid-parameter` if a text is compared with a number.
    func holds(for document: JSONValue) throws -> Bool {
        switch self {
        case .all(let parts): try parts.allSatisfy { try $0.holds(for: document) }
        case .any(let parts): try parts.contains { try $0.holds(for: document) }
        case .not(let part): try !part.holds(for: document)
        case .contains(let text): DocumentJSON.contains(text, in: document)
        case .test(let filter):
            try filter.path.values(in: document).contains { try filter.matches($0) } != (filter.test == .ne)
        }
    }
}

extension CollectionCondition.Filter {
    fileprivate func matches(_ value: JSONValue) throws(Problem) -> Bool {
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
                at: parameter,
                "must be a number"
            )
        }
        return DocumentJSON.order(value, .number(bound))
    }
}
