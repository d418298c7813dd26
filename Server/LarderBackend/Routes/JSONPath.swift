import LarderCoding

/// A path into a JSON document: member names, indices and `*`, as in `$.items[0].name`, `items.0.name` and `$.items[*].id` (a part of
/// RFC 9535; `$.` may be omitted).
struct JSONPath: Sendable {
    private enum Step: Sendable {
        case name(String)
        case index(Int)
        case any
    }

    private static let stepsMaximum = 32
    private var steps: [Step] = []

    /// Nil for text that is not such a path.
    init?(_ text: some StringProtocol) {
        var rest = Substring(text)
        if rest.hasPrefix("$") { rest.removeFirst() } else if !rest.hasPrefix("[") { rest = "." + rest }
        while let first = rest.popFirst() {
            switch first {
            case ".":
                let name = rest.prefix { $0 != "." && $0 != "[" }
                guard !name.isEmpty else { return nil }
                steps.append(name == "*" ? .any : .name(String(name)))
                rest = rest.dropFirst(name.count)
            case "[":
                guard let end = rest.firstIndex(of: "]") else { return nil }
                let inner = rest[..<end]
                rest = rest[rest.index(after: end)...]
                if inner == "*" {
                    steps.append(.any)
                } else if let index = Int(inner) {
                    steps.append(.index(index))
                } else if inner.count > 2, let quote = inner.first, quote == "'" || quote == "\"", inner.last == quote {
                    steps.append(.name(String(inner.dropFirst().dropLast())))
                } else {
                    return nil
                }
            default: return nil
            }
        }
        guard steps.count <= Self.stepsMaximum else { return nil }
    }

    /// The values at the path: at most one without `*`.
    func values(in document: JSONValue) -> [JSONValue] {
        var values = [document]
        for step in steps {
            values = values.flatMap { value -> [JSONValue] in
                switch step {
                case .name(let name):
                    if let array = value.array { return Int(name).flatMap { element($0, of: array) } ?? [] }
                    return value[name].map { [$0] } ?? []
                case .index(let index): return value.array.flatMap { element(index, of: $0) } ?? []
                case .any: return value.array ?? value.object?.members.map(\.value) ?? []
                }
            }
        }
        return values
    }

    /// A negative index counts from the end.
    private func element(_ index: Int, of array: [JSONValue]) -> [JSONValue]? {
        let place = index < 0 ? array.count + index : index
        return array.indices.contains(place) ? [array[place]] : nil
    }
}
