import LarderCoding
import LarderHTTP

/// One page of a list: its documents, and the field lines that lead to the other pages.
struct CollectionPage {
    private var items: [[UInt8]] = []
    private(set) var lines: [UInt8] = []

    init(_ query: CollectionQuery, in store: Store) throws {
        let documents = store.documents
        switch query.page {
        case .offset(let start, let limit):
            let total: Int
            if query.isWhole {
                total = try documents.count(query.collection)
                items = try documents.slice(query.collection, from: start, limit: limit).map(\.json)
            } else {
                let list = try CollectionList(query, in: store)
                total = list.count
                items = try list.documents(from: start, limit: limit).map(\.json)
            }
            lines.append("X-Total-Count: ")
            lines.append(decimal: Int64(total))
            lines.append("\r\n")
            if query.isPaged || total > limit { appendLinks(query, start: start, limit: limit, total: total) }
        case .cursor(let cursor, let limit):
            let list = query.isWhole ? nil : try CollectionList(query, in: store)
            // One more than the page, to see whether there is a next one.
            let rows =
                if let list {
                    try list.documents(from: try cursor.map { try list.index(after: $0) } ?? 0, limit: limit + 1)
                } else { try documents.documents(query.collection, after: cursor?.place ?? 0, limit: limit + 1) }
            items = rows.prefix(limit).map(\.json)
            if rows.count > limit, let last = rows.prefix(limit).last {
                let keys = try list?.keys(of: last) ?? []
                let next = CollectionCursor(keys: keys, place: last.place).text(digest: query.digest)
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
