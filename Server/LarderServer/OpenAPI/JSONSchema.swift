import LarderCoding

/// Checks values against schemas of an OpenAPI description: JSON Schema, with `nullable` and the exclusive bounds of OpenAPI 3.0.
///
/// `format`, `$dynamicRef`, `unevaluatedProperties`, `if` and `dependentSchemas` are not checked.
struct JSONSchema {
    /// Which members are left out: `readOnly` ones of requests, `writeOnly` ones of replies.
    enum Direction: String {
        case request = "readOnly"
        case reply = "writeOnly"
    }

    private static let depthMaximum = 64
    static let findingsMaximum = 8

    private let document: OpenAPIDocument
    private let direction: Direction
    /// A sentence each, without values: they may be secret.
    private(set) var findings: [String] = []

    init(_ document: OpenAPIDocument, _ direction: Direction) {
        self.document = document
        self.direction = direction
    }

    mutating func check(_ value: JSONValue, _ schema: JSONValue, at path: String, depth: Int = 0) {
        guard depth < Self.depthMaximum, findings.count < Self.findingsMaximum else { return }
        let schema = document.resolved(schema)
        // `false` allows nothing; `true` and an unknown reference allow everything.
        if schema == .bool(false) { return note(path, "is not allowed") }
        guard let members = schema.object else { return }
        if value == .null, schema["nullable"] == .bool(true) { return }
        guard checkType(value, schema, path) else { return }
        if let allowed = schema["enum"]?.array, !allowed.contains(where: { Self.isEqual($0, value) }) {
            let names = allowed.prefix(8).map { String(decoding: $0.encoded, as: UTF8.self) }.joined(separator: ", ")
            return note(path, "must be one of \(names)")
        }
        if let constant = schema["const"], !Self.isEqual(constant, value) {
            return note(path, "must be \(String(decoding: constant.encoded, as: UTF8.self))")
        }
        switch value {
        case .string(let text): checkText(text, schema, path)
        case .integer, .number: checkNumber(value.double ?? 0, schema, path)
        case .array(let elements): checkElements(elements, schema, path, depth)
        case .object(let object): checkMembers(object, schema, path, depth)
        case .null, .bool: break
        }
        for part in members["allOf"]?.array ?? [] { check(value, part, at: path, depth: depth + 1) }
        if let parts = members["anyOf"]?.array, !parts.contains(where: { isValid(value, $0, depth) }) {
            note(path, "matches no schema of `anyOf`")
        }
        if let parts = members["oneOf"]?.array {
            let count = parts.count { isValid(value, $0, depth) }
            if count != 1 { note(path, "must match one schema of `oneOf`, and matches \(count)") }
        }
        if let part = members["not"], isValid(value, part, depth) { note(path, "matches the schema of `not`") }
    }

    private func isValid(_ value: JSONValue, _ schema: JSONValue, _ depth: Int) -> Bool {
        var inner = JSONSchema(document, direction)
        inner.check(value, schema, at: "", depth: depth + 1)
        return inner.findings.isEmpty
    }

    private mutating func note(_ path: String, _ detail: String) {
        if findings.count < Self.findingsMaximum { findings.append("\(path.isEmpty ? "the body" : path) \(detail)") }
    }

    // MARK: Types

    private mutating func checkType(_ value: JSONValue, _ schema: JSONValue, _ path: String) -> Bool {
        let names = schema.schemaTypes
        guard !names.isEmpty, !names.contains(where: { Self.isType($0, of: value) }) else { return true }
        note(
            path,
            "must be \(names.map(Self.described).joined(separator: " or ")), not \(Self.described(Self.type(of: value)))"
        )
        return false
    }

    private static func isType(_ name: String, of value: JSONValue) -> Bool {
        switch (name, value) {
        case ("number", .integer): true
        case ("integer", .number(let number)): number == number.rounded()
        default: name == type(of: value)
        }
    }

    private static func type(of value: JSONValue) -> String {
        switch value {
        case .null: "null"
        case .bool: "boolean"
        case .integer: "integer"
        case .number: "number"
        case .string: "string"
        case .array: "array"
        case .object: "object"
        }
    }

    private static func described(_ type: String) -> String {
        switch type {
        case "null": "null"
        case "integer", "array", "object": "an \(type)"
        default: "a \(type)"
        }
    }

    /// `1` and `1.0` are equal.
    private static func isEqual(_ left: JSONValue, _ right: JSONValue) -> Bool {
        if left == right { return true }
        guard let left = left.double, let right = right.double else { return false }
        return left == right
    }

    // MARK: Values

    private mutating func checkText(_ text: String, _ schema: JSONValue, _ path: String) {
        let count = text.unicodeScalars.count
        if let least = schema["minLength"]?.integer, count < least { note(path, "is shorter than \(least) characters") }
        if let most = schema["maxLength"]?.integer, count > most { note(path, "is longer than \(most) characters") }
        // What is no expression was told when the description was loaded.
        if let source = schema["pattern"]?.string, let pattern = try? TextPattern(source), !pattern.matches(text) {
            note(path, "does not match the pattern \(source)")
        }
    }

    private mutating func checkNumber(_ number: Double, _ schema: JSONValue, _ path: String) {
        // A flag beside the bound in OpenAPI 3.0, a number of its own in 3.1.
        let (excludesLeast, excludesMost) = (
            schema["exclusiveMinimum"] == .bool(true), schema["exclusiveMaximum"] == .bool(true)
        )
        let rules: [(name: String, text: String, isBroken: (Double) -> Bool)] = [
            ("minimum", "is below the minimum", { number < $0 || excludesLeast && number == $0 }),
            ("maximum", "is above the maximum", { number > $0 || excludesMost && number == $0 }),
            ("exclusiveMinimum", "must be above", { number <= $0 }),
            ("exclusiveMaximum", "must be below", { number >= $0 }),
            ("multipleOf", "is not a multiple of", { $0 > 0 && !Self.isWhole(number / $0) }),
        ]
        for rule in rules {
            if let bound = schema[rule.name]?.double, rule.isBroken(bound) {
                note(path, "\(rule.text) \(Self.text(bound))")
            }
        }
    }

    /// Whether a quotient is a whole number but for its rounding, and that of decimals such as 0.35 and 0.01.
    private static func isWhole(_ quotient: Double) -> Bool {
        abs(quotient - quotient.rounded()) <= 4 * quotient.ulp
    }

    private static func text(_ number: Double) -> String {
        Int64(exactly: number).map { String($0) } ?? String(number)
    }

    private mutating func checkElements(_ elements: [JSONValue], _ schema: JSONValue, _ path: String, _ depth: Int) {
        if let least = schema["minItems"]?.integer, elements.count < least {
            note(path, "has fewer than \(least) elements")
        }
        if let most = schema["maxItems"]?.integer, elements.count > most {
            note(path, "has more than \(most) elements")
        }
        if schema["uniqueItems"] == .bool(true), Set(elements).count < elements.count {
            note(path, "has the same element twice")
        }
        let first = schema["prefixItems"]?.array ?? []
        for (index, element) in elements.enumerated() {
            guard let inner = index < first.count ? first[index] : schema["items"] else { continue }
            check(element, inner, at: "\(path)/\(index)", depth: depth + 1)
        }
    }

    private mutating func checkMembers(_ object: JSONObject, _ schema: JSONValue, _ path: String, _ depth: Int) {
        let properties = schema["properties"]?.object ?? JSONObject()
        for name in schema["required"]?.array?.compactMap(\.string) ?? [] where object[name] == nil {
            if properties[name].map({ document.resolved($0)[direction.rawValue] }) != .bool(true) {
                note("\(path)/\(JSONPointer.escape(name))", "is missing")
            }
        }
        let others = schema["additionalProperties"]
        for member in object.members {
            let place = "\(path)/\(JSONPointer.escape(member.name))"
            if let inner = properties[member.name] {
                check(member.value, inner, at: place, depth: depth + 1)
            } else if schema["patternProperties"] != nil {
                continue
            } else if others == .bool(false) {
                note(place, "is not described, and the schema allows no other members")
            } else if let others {
                check(member.value, others, at: place, depth: depth + 1)
            }
        }
    }
}
