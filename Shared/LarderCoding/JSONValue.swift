/// A JSON document as a tree (RFC 8259). Integers are exact: money never passes through floating point.
package enum JSONValue: Sendable, Hashable {
    case null
    case bool(Bool)
    /// A number written without fraction or exponent that fits 64 bits.
    case integer(Int64)
    /// Any other number.
    case number(Double)
    case string(String)
    case array([JSONValue])
    case object(JSONObject)

    package var string: String? { if case .string(let value) = self { value } else { nil } }
    package var integer: Int64? { if case .integer(let value) = self { value } else { nil } }
    package var bool: Bool? { if case .bool(let value) = self { value } else { nil } }
    package var array: [JSONValue]? { if case .array(let value) = self { value } else { nil } }
    package var object: JSONObject? { if case .object(let value) = self { value } else { nil } }

    package subscript(name: String) -> JSONValue? { object?[name] }
    package subscript(index: Int) -> JSONValue? {
        guard let array, array.indices.contains(index) else { return nil }
        return array[index]
    }

    /// An object of the members that are not nil.
    package static func members(_ members: KeyValuePairs<String, JSONValue?>) -> JSONValue {
        self.members(members.map { ($0.key, $0.value) })
    }

    package static func members(_ members: [(String, JSONValue?)]) -> JSONValue {
        .object(
            JSONObject(members.compactMap { name, value in value.map { JSONObject.Member(name: name, value: $0) } })
        )
    }

    /// A string itself, and other values as compact JSON.
    package var text: String { string ?? String(decoding: encoded, as: UTF8.self) }

    /// The same value with the members of each object in the order of their names, so that documents which say the same are equal.
    package var sorted: JSONValue {
        switch self {
        case .array(let values): .array(values.map(\.sorted))
        case .object(let object):
            .members(object.members.sorted { $0.name < $1.name }.map { ($0.name, $0.value.sorted) })
        default: self
        }
    }

    /// Compact JSON.
    package var encoded: [UInt8] {
        var writer = JSONWriter(capacity: 512)
        writer.value(self)
        return writer.bytes
    }
}

/// The members of a JSON object in source order. Lookup is a linear scan: objects are small.
package struct JSONObject: Sendable, Hashable {
    package struct Member: Sendable, Hashable {
        package var name: String
        package var value: JSONValue

        package init(name: String, value: JSONValue) {
            self.name = name
            self.value = value
        }
    }

    package private(set) var members: [Member]

    package init(_ members: [Member] = []) { self.members = members }

    /// The value of a member; setting nil removes the member, setting a new one appends it.
    package subscript(name: String) -> JSONValue? {
        get { members.first { $0.name == name }?.value }
        set {
            let index = members.firstIndex { $0.name == name }
            switch (index, newValue) {
            case (let index?, let value?): members[index].value = value
            case (let index?, nil): members.remove(at: index)
            case (nil, let value?): members.append(Member(name: name, value: value))
            case (nil, nil): break
            }
        }
    }
}

/// JSON pointers (RFC 6901).
package enum JSONPointer {
    /// A reference token with `~` and `/` escaped.
    package static func escape(_ token: String) -> String {
        guard token.utf8.contains(where: { $0 == UInt8(ascii: "~") || $0 == UInt8(ascii: "/") }) else { return token }
        // By scalars: a combining character must not hide one of the two.
        return token.unicodeScalars.reduce(into: "") { result, scalar in
            switch scalar {
            case "~": result += "~0"
            case "/": result += "~1"
            default: result.unicodeScalars.append(scalar)
            }
        }
    }
}
