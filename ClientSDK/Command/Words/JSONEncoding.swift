import Foundation
import LarderCoding

extension JSONValue {
    /// Any encodable value as a tree.
    init(encoding value: some Encodable) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        self = try JSONParser.parse(Array(try encoder.encode(value)))
    }

    /// An object from its members, in their order.
    static func members(_ members: [(String, JSONValue?)]) -> JSONValue {
        .object(
            JSONObject(members.compactMap { name, value in value.map { JSONObject.Member(name: name, value: $0) } })
        )
    }
}
