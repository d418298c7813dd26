import Foundation
import LarderCoding

extension JSONValue {
    /// Encodes a value with `JSONEncoder`.
    init(encoding value: some Encodable) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        self = try JSONParser.parse(Array(try encoder.encode(value)))
    }

    /// The value as one line of text.
    var line: String { String(decoding: encoded, as: UTF8.self) }
}
