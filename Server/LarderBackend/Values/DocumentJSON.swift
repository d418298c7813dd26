import LarderCoding

/// Documents of collections as JSON.
enum DocumentJSON {
    /// A JSON merge patch (RFC 7396). Members keep their order, and new ones follow.
    ///
    /// - Complexity: O(members of both).
    static func merge(_ patch: JSONObject, into target: JSONObject) -> JSONObject {
        var members: [JSONObject.Member?] = target.members
        var indices: [String: Int] = [:]
        for (index, member) in target.members.enumerated() { indices[member.name] = index }
        for member in patch.members {
            let index = indices[member.name]
            var value = member.value
            if case .null = value {
                if let index { members[index] = nil }
                continue
            }
            if case .object(let inner) = value {
                let old = index.flatMap { members[$0]?.value.object } ?? JSONObject()
                value = .object(merge(inner, into: old))
            }
            if let index {
                members[index]?.value = value
            } else {
                members.append(JSONObject.Member(name: member.name, value: value))
            }
        }
        return JSONObject(members.compactMap { $0 })
    }

    /// Whether a scalar is written as the text in a query.
    static func isEqual(_ value: JSONValue, to text: String) -> Bool {
        switch value {
        case .null: text == "null"
        case .bool(let bool): text == (bool ? "true" : "false")
        case .integer(let integer): Int64(text) == integer || (Int64(text) == nil && Double(text) == Double(integer))
        case .number(let number): Double(text) == number
        case .string(let string): string == text
        case .array(let elements): elements.contains { isEqual($0, to: text) }
        case .object: false
        }
    }

    /// Whether a text or number in the value contains the text, which is lowercase.
    static func contains(_ text: String, in value: JSONValue) -> Bool {
        switch value {
        case .null, .bool: false
        case .integer(let integer): String(integer).contains(text)
        case .number(let number): String(number).contains(text)
        case .string(let string): string.lowercased().contains(text)
        case .array(let elements): elements.contains { contains(text, in: $0) }
        case .object(let object): object.members.contains { contains(text, in: $0.value) }
        }
    }

    /// The maximum length of a text in a sort key, in bytes of JSON. The eight keys of a cursor in base64 then take at most a third
    /// of the 8,192 bytes of a request's target.
    private static let keyBytesMaximum = 256

    /// The value as a key to sort by: texts are cut at `keyBytesMaximum`, between two code points, and arrays and objects are
    /// equal.
    static func key(_ value: JSONValue?) -> JSONValue {
        switch value {
        case nil: .null
        case .string(let text): .string(prefix(of: text))
        case .array, .object: .array([])
        case let value?: value
        }
    }

    private static func prefix(of text: String) -> String {
        // A byte takes at most six as JSON (a control character).
        guard text.utf8.count > keyBytesMaximum / 6 else { return text }
        var left = keyBytesMaximum
        let scalars = text.unicodeScalars
        let end = scalars.firstIndex { scalar in
            switch scalar {
            case "\t", "\n", "\r", "\"", "\\": left -= 2
            case ..<" ": left -= 6
            default: left -= UTF8.width(scalar)
            }
            return left < 0
        }
        return String(scalars[..<(end ?? scalars.endIndex)])
    }

    /// The order of two keys: null, booleans, numbers, texts by code point, others. Negative if the first one comes first.
    static func order(_ left: JSONValue, _ right: JSONValue) -> Int {
        switch (left, right) {
        case (.bool(let left), .bool(let right)): (left ? 1 : 0) - (right ? 1 : 0)
        case (.integer(let left), .integer(let right)): sign(left, right)
        case (.number(let left), .number(let right)): sign(left, right)
        case (.integer(let left), .number(let right)): order(left, right)
        case (.number(let left), .integer(let right)): -order(right, left)
        case (.string(let left), .string(let right)):
            // UTF-8 has the order of code points.
            left.utf8.elementsEqual(right.utf8) ? 0 : left.utf8.lexicographicallyPrecedes(right.utf8) ? -1 : 1
        default: rank(left) - rank(right)
        }
    }

    private static func sign<Value: Comparable>(_ left: Value, _ right: Value) -> Int {
        left < right ? -1 : left > right ? 1 : 0
    }

    /// Exact: a list has one order also where doubles cannot tell integers apart.
    private static func order(_ integer: Int64, _ number: Double) -> Int {
        guard number < 0x1p63 else { return -1 }
        guard number >= -0x1p63 else { return 1 }
        let whole = number.rounded(.down)
        guard integer == Int64(whole) else { return sign(integer, Int64(whole)) }
        return whole < number ? -1 : 0
    }

    private static func rank(_ value: JSONValue) -> Int {
        switch value {
        case .null: 0
        case .bool: 1
        case .integer, .number: 2
        case .string: 3
        case .array, .object: 4
        }
    }
}
