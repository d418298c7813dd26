import LarderCoding
import LarderHTTP

/// One page of a list: its documents, and the field lines that lead to the other pages.
struct CollectionPage {
    private var items: [[UInt8]] = []
    private(set) var lines: [UInt8] = []

    /// - Parameter list: the name of the collection.
    init(_ list: String, _ query: CollectionQuery, in store: Store) throws {
        switch query.page {
        case .offset(let start, let limit):
            let total: Int
            if query.isWhole {
                total = try store.documents.count(list)
                items = try store.documents.slice(list, from: start, limit: limit).map(\.json)
            } else {
                let all = try Self.selected(list, query, in: store)
                total = all.count
                items = all.dropFirst(start).prefix(limit).map(\.row.json)
            }
            lines.append("X-Total-Count: ")
            lines.append(decimal: Int64(total))
            lines.append("\r\n")
            if query.isPaged || total > limit { appendLinks(query, start: start, limit: limit, total: total) }
        case .cursor(let cursor, let limit):
            let rest: [Selected]
            if query.isWhole {
                let rows = try store.documents.documents(list, after: cursor?.place ?? 0, limit: limit + 1)
                rest = rows.map { Selected(row: $0, keys: []) }
            } else {
                let all = try Self.selected(list, query, in: store)
                rest =
                    cursor.map { cursor in
                        all.filter { Self.order(cursor.keys, cursor.place, $0.keys, $0.row.place, query) < 0 }
                    } ?? all
            }
            items = rest.prefix(limit).map(\.row.json)
            if rest.count > limit, let last = rest.prefix(limit).last {
                let next = CollectionCursor(keys: last.keys, place: last.row.place).text(digest: query.list.digest)
                appendLinks([("next", Self.target(query, [("cursor", next), ("limit", String(limit))]))])
            }
        }
    }

    var body: [UInt8] {
        var body: [UInt8] = []
        body.append("[")
        body.append(items: items)
        body.append("]")
        return body
    }

    // MARK: Selection

    private struct Selected {
        let row: DocumentRow
        let keys: [JSONValue]
    }

    /// The documents that pass the filters, in the order of the list. Cost: reads the whole collection.
    private static func selected(_ list: String, _ query: CollectionQuery, in store: Store) throws -> [Selected] {
        var all: [Selected] = []
        for row in try store.documents.documents(list) {
            let document = try JSONParser.parse(row.json)
            guard try query.includes(document) else { continue }
            let keys = query.keys.map { DocumentJSON.key(DocumentJSON.value($0.path, in: document)) }
            all.append(Selected(row: row, keys: keys))
        }
        guard !query.keys.isEmpty else { return all }
        return all.sorted { order($0.keys, $0.row.place, $1.keys, $1.row.place, query) < 0 }
    }

    private static func order(
        _ left: [JSONValue],
        _ leftPlace: Int64,
        _ right: [JSONValue],
        _ rightPlace: Int64,
        _ query: CollectionQuery
    ) -> Int {
        for (index, key) in query.keys.enumerated() {
            let order = DocumentJSON.order(left[index], right[index])
            if order != 0 { return key.isDescending ? -order : order }
        }
        return leftPlace < rightPlace ? -1 : leftPlace > rightPlace ? 1 : 0
    }

    // MARK: Links

    private mutating func appendLinks(_ query: CollectionQuery, start: Int, limit: Int, total: Int) {
        func target(_ start: Int) -> String {
            let position = query.usesStart ? ("_start", String(start)) : ("_page", String(start / limit + 1))
            return Self.target(query, [position, ("_limit", String(limit))])
        }
        let last = max(0, (total - 1) / limit * limit)
        var links = [("first", target(0))]
        if start > 0 { links.append(("prev", target(max(0, min(start - limit, last))))) }
        if start + limit < total { links.append(("next", target(start + limit))) }
        links.append(("last", target(last)))
        appendLinks(links)
    }

    /// Appends a `Link` (RFC 8288) with references relative to the list, which are right under every prefix of a world.
    private mutating func appendLinks(_ links: [(relation: String, target: String)]) {
        lines.append("Link: ")
        let text = links.map { "<\($0.target)>; rel=\"\($0.relation)\"" }.joined(separator: ", ")
        lines.append(contentsOf: text.utf8)
        lines.append("\r\n")
    }

    private static func target(_ query: CollectionQuery, _ page: [(String, String)]) -> String {
        let items = query.others.map { ($0.name, $0.value) } + page
        return "?" + items.map { "\(encoded($0.0))=\(encoded($0.1))" }.joined(separator: "&")
    }

    /// Percent-encodes all but the unreserved characters (RFC 3986 §2.3).
    static func encoded(_ text: String) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var bytes: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."),
                UInt8(ascii: "~"):
                bytes.append(byte)
            default: bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
