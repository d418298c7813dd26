import LarderCoding
import LarderTime

extension JSONValue {
    /// An amount as the API states it: integer minor units and an ISO 4217 code.
    static func money(_ minorUnits: Int64, _ currency: String) -> JSONValue {
        .members(["minorUnits": .integer(minorUnits), "currency": .string(currency)])
    }
}

extension JSONObject {
    /// The members that are not nil.
    init(_ members: KeyValuePairs<String, JSONValue?>) {
        self.init(members.compactMap { name, value in value.map { Member(name: name, value: $0) } })
    }
}

extension WallTime {
    var json: JSONValue { .string(rfc3339()) }
}

extension EntityID {
    var json: JSONValue { .string(text) }
}
