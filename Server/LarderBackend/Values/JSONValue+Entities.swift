import LarderCoding
import LarderTime

extension JSONValue {
    /// An amount as the API states it: integer minor units and an ISO 4217 code.
    static func money(_ minorUnits: Int64, _ currency: String) -> JSONValue {
        .members(["minorUnits": .integer(minorUnits), "currency": .string(currency)])
    }
}

extension WallTime {
    var json: JSONValue { .string(rfc3339()) }
}

extension EntityID {
    var json: JSONValue { .string(text) }
}
