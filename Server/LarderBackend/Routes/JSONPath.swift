import LarderCoding

/// A path into a JSON document: member names, indices and `*`, as in `$.items[0].name`, `items.0.name` and `$.items[*].id` (a part of
/// RFC 9535; `$.` may be omitted).
struct JSONPath: Sendable {
    /// Names and indices; `*` is each of them.
    private var steps: [String] = []

    /// Nil for text that is not such a path.
    init?(_ text: some StringProtocol) {
        var rest = Substring(text)
        if rest.hasPrefix("$") { rest.removeFirst() } else if !rest.hasPrefix("[") { rest = "." + rest }
        while let first = rest.popFirst() {
            let isBracket = first == "["
            let step = rest.prefix { isBracket ? $0 != "]" : $0 != "." && $0 != "[" }
            rest = rest.dropFirst(step.count)
            if isBracket {
                guard rest.popFirst() == "]", step == "*" || Int(step) != nil else { return nil }
            }
            guard isBracket || first == ".", !step.isEmpty else { return nil }
            steps.append(String(step))
        }
    }

    /// The values at the path: at most one without `*`.
    func values(in document: JSONValue) -> [JSONValue] {
        steps.reduce([document]) { values, step in values.flatMap { Self.values(at: step, in: $0) } }
    }

    private static func values(at step: String, in value: JSONValue) -> [JSONValue] {
        if let object = value.object {
            return step == "*" ? object.members.map(\.value) : object[step].map { [$0] } ?? []
        }
        guard let array = value.array, step != "*" else { return value.array ?? [] }
        guard let index = Int(step), array.indices.contains(index) else { return [] }
        return [array[index]]
    }
}
