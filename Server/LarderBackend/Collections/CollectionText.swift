import LarderCoding

/// A collection as the text of its file: a document on each line.
package struct CollectionText: Sendable, Hashable {
    package let name: String
    package let text: String

    init(_ name: String, _ documents: [JSONObject], isSingular: Bool) {
        let lines = documents.map { String(decoding: JSONValue.object($0).encoded, as: UTF8.self) }
        self.name = name
        text =
            isSingular
            ? lines.first ?? "{}" : lines.isEmpty ? "[]" : "[\n  \(lines.joined(separator: ",\n  "))\n]"
    }
}

extension World {
    /// The collections with their present documents.
    package func collectionTexts() throws -> [CollectionText] {
        try read { store in
            try store.collections.names().map { name in
                let isSingular = try store.collections.find(name)?.isSingular ?? false
                return CollectionText(
                    name,
                    try store.collections.documents(name).map(\.members),
                    isSingular: isSingular
                )
            }
        }
    }
}
