import Foundation
import LarderCoding

extension JSONValue {
    /// Encodes a value with `JSONEncoder`.
    init(encoding value: some Encodable) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        self = try JSONParser.parse(Array(try encoder.encode(value)))
    }

    /// An object with the members that have a value, in the given order.
    static func members(_ members: [(String, JSONValue?)]) -> JSONValue {
        .object(
            JSONObject(members.compactMap { name, value in value.map { JSONObject.Member(name: name, value: $0) } })
        )
    }
}
