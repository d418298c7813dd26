import LarderCoding

/// Makes values of schemas for the replies of routes: an example where the schema has one, otherwise a template with invented values that
/// keep the schema's bounds. A `pattern` is not kept, because no text follows from it.
struct SchemaSample {
    private static let depthMaximum = 12
    /// The lengths of all invented words.
    private static let wordLengths: ClosedRange<Int64> = 4...6
    private static let lengthMaximum: Int64 = 2_000
    let document: OpenAPIDocument

    /// A value; null for a schema that says nothing.
    ///
    /// - Parameter schema: may be a reference.
    func value(_ schema: JSONValue) -> JSONValue { value(schema, Within()) ?? .null }

    /// What a value is a part of.
    private struct Within {
        var depth = 0
        var references: Set<String> = []
    }

    /// Nil for a schema that contains itself, and for one that is too deep: what need not be there is left out.
    private func value(_ schema: JSONValue, _ outer: Within) -> JSONValue? {
        var within = outer
        within.depth += 1
        if let reference = schema["$ref"]?.string, !within.references.insert(reference).inserted { return nil }
        let schema = document.resolved(schema)
        if let value = schema["example"] ?? schema["examples"]?[0] ?? schema["const"] ?? schema["default"]
            ?? schema["enum"]?[0]
        {
            return value
        }
        guard outer.depth < Self.depthMaximum else { return nil }
        if let parts = schema["allOf"]?.array, var own = schema.object {
            own["allOf"] = nil
            let values = (parts + [.object(own)]).compactMap { value($0, within) }
            // A reference with a description of its own may be one to a text.
            guard values.contains(where: { $0.object != nil }) else { return values.first { $0 != .null } ?? .null }
            let members = values.flatMap { $0.object?.members ?? [] }
            return .object(members.reduce(into: JSONObject()) { $0[$1.name] = $1.value })
        }
        if let first = schema["oneOf"]?[0] ?? schema["anyOf"]?[0] { return value(first, within) }
        let type = schema.schemaTypes.first { $0 != "null" }
        switch type ?? (schema["properties"] == nil && schema["required"] == nil ? "" : "object") {
        case "object": return object(schema, within)
        case "array": return array(schema, within)
        case "integer": return number(schema) ?? .string("{{number 1 1000}}")
        case "number": return number(schema) ?? .string("{{fake price}}")
        case "boolean": return .string("{{fake bool}}")
        case "string": return .string(text(schema))
        default: return .null
        }
    }

    private func object(_ schema: JSONValue, _ within: Within) -> JSONValue {
        let properties = schema["properties"]?.object ?? JSONObject()
        var object = JSONObject()
        for property in properties.members { object[property.name] = value(property.value, within) }
        for name in schema["required"]?.array?.compactMap(\.string) ?? [] where object[name] == nil {
            object[name] = .string("{{fake word}}")
        }
        return .object(object)
    }

    private func array(_ schema: JSONValue, _ within: Within) -> JSONValue {
        guard let items = schema["items"], schema["maxItems"]?.integer != 0, let item = value(items, within) else {
            return .array([])
        }
        let count = min(1_000, schema["minItems"]?.integer ?? 1)
        return count > 1 ? .members(["{{repeat \(count)}}": item]) : .array([item])
    }

    /// An integer between the bounds, or the lower bound if there is none; nil without bounds.
    private func number(_ schema: JSONValue) -> JSONValue? {
        /// A bound is excluded by a flag beside it in OpenAPI 3.0, and in 3.1 is one of its own.
        func bound(_ name: String, _ other: String, _ rule: FloatingPointRoundingRule, _ step: Double) -> Double? {
            let excluded = schema[other] == .bool(true) ? schema[name]?.double : schema[other]?.double
            return excluded.map { ($0 + step / 2).rounded(rule) } ?? schema[name]?.double?.rounded(rule)
        }
        let (least, most) = (
            bound("minimum", "exclusiveMinimum", .up, 1), bound("maximum", "exclusiveMaximum", .down, -1)
        )
        guard least != nil || most != nil else { return nil }
        // Templates take numbers that are exact in every reader of JSON.
        let low = max(-0x1p53, least ?? min(1, most ?? 1))
        let high = min(0x1p53, most ?? low + 999)
        guard low <= high, let first = Int64(exactly: low), let last = Int64(exactly: high) else {
            return schema["minimum"] ?? schema["maximum"]
        }
        return .string("{{number \(first) \(last)}}")
    }

    private func text(_ schema: JSONValue) -> String {
        switch schema["format"]?.string {
        case "date-time": return "{{now}}"
        case "date": return "2026-01-01"
        case "uuid": return "{{uuid}}"
        case "email": return "{{fake email}}"
        case "uri", "url": return "https://example.com/{{fake word}}"
        default: break
        }
        let (least, most) = (schema["minLength"]?.integer ?? 0, schema["maxLength"]?.integer ?? .max)
        if least <= Self.wordLengths.lowerBound, most >= Self.wordLengths.upperBound { return "{{fake word}}" }
        let length = Int(min(Self.lengthMaximum, max(0, least > 0 ? least : most)))
        return String(String(repeating: "text", count: length / 4 + 1).prefix(length))
    }
}
