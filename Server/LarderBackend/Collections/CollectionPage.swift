import LarderCoding
import LarderHTTP

/// One page of a list: its documents, and the field lines that lead to the other pages.
struct CollectionPage {
    private(set) var lines = Fields()
    private(set) var body: [UInt8] = []

    init(_ query: CollectionQuery, in store: Store) throws {
        let all = try query.items(in: store)
        let total = all.count
        let items: ArraySlice<CollectionQuery.Item>
        var (begin, end) = ("", "")
        switch query.page {
        case .offset(let start, let limit):
            items = all.dropFirst(start).prefix(limit)
            lines.add("X-Total-Count", String(total))
            if query.hasEnvelope {
                let pages = max(1, (total + limit - 1) / limit)
                (begin, end) = (Self.envelope(page: start / limit + 1, of: pages, total), "}")
            } else if start > 0 || total > limit {
                appendLinks(query, start: start, limit: limit, total: total)
            }
        case .cursor(let cursor, let limit):
            let rest = all.drop { item in cursor.map { !query.precedes($0, item.position) } ?? false }
            items = rest.prefix(limit)
            if rest.count > limit, let last = items.last {
                let next = last.position.text(digest: query.digest)
                appendLinks([("next", Self.target(query, [("cursor", next), ("limit", String(limit))]))])
            }
        }
        let related = try RelatedDocuments(query.embedded, of: query.collection, in: store)
        let documents = try items.map { item in
            var document = item.document
            try related.embed(in: &document)
            return document.document
        }
        body = Array(begin.utf8) + [UInt8](list: documents) + end.utf8
    }

    /// What json-server has before the documents for `_per_page`.
    private static func envelope(page: Int, of pages: Int, _ total: Int) -> String {
        let members: [(String, Int?)] = [
            ("first", 1), ("prev", page > 1 ? min(page - 1, pages) : nil), ("next", page < pages ? page + 1 : nil),
            ("last", pages), ("pages", pages), ("items", total),
        ]
        let numbers = members.map { "\"\($0)\":\($1.map { String($0) } ?? "null")" }.joined(separator: ",")
        return "{\(numbers),\"data\":"
    }

    // MARK: Links

    private mutating func appendLinks(_ query: CollectionQuery, start: Int, limit: Int, total: Int) {
        func target(_ start: Int, _ count: Int? = nil) -> String {
            let isPage = start % limit == 0 && count == nil
            let position = isPage ? ("_page", String(start / limit + 1)) : ("_start", String(start))
            return Self.target(query, [position, ("_limit", String(count ?? limit))])
        }
        let last = max(0, (total - 1) / limit * limit)
        var links = [("first", target(0))]
        if start > 0 {
            // Fewer items than a page can be before this one.
            links.append(("prev", start < limit ? target(0, min(start, total)) : target(min(start - limit, last))))
        }
        if start + limit < total { links.append(("next", target(start + limit))) }
        links.append(("last", target(last)))
        appendLinks(links)
    }

    /// Appends a `Link` (RFC 8288) with references relative to the list, which are right under every prefix of a world.
    private mutating func appendLinks(_ links: [(relation: String, target: String)]) {
        lines.add("Link", links.map { "<\($0.target)>; rel=\"\($0.relation)\"" }.joined(separator: ", "))
    }

    private static func target(_ query: CollectionQuery, _ page: [(String, String)]) -> String {
        let items = query.others.map { ($0.name, $0.value) } + page
        return "?"
            + items.map { "\(QueryString.percentEncoded($0.0))=\(QueryString.percentEncoded($0.1))" }.joined(
                separator: "&"
            )
    }
}
