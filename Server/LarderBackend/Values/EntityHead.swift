import LarderCoding
import LarderTime

/// The version of an entity and the time of that version.
struct EntityVersion: Sendable, Hashable {
    let number: Int64
    let updated: WallTime

    init(_ number: Int64, _ updated: WallTime) {
        self.number = number
        self.updated = updated
    }
}

/// The part of an entity's JSON that seldom changes, stored in the form that is sent: an object without its closing brace.
///
/// Counters, version and times are appended when it is sent, so that a like updates two integers and no JSON.
enum EntityHead {
    static func encode(_ members: JSONObject) -> [UInt8] {
        Array(JSONValue.object(members).encoded.dropLast())
    }

    static func decode(_ head: [UInt8]) throws(JSONError) -> JSONObject {
        guard case .object(let members) = try JSONParser.parse(head + [UInt8(ascii: "}")]) else {
            preconditionFailure("A head is written by encode(_:) alone, and so is an object.")
        }
        return members
    }
}
