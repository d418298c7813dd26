import LarderCoding

/// The entities with all words of a search.
struct Found {
    /// In the order of the list.
    var rows: [Int64] = []
    /// The last row that was looked at, if there are others behind it.
    var rest: Int64?

    /// Looks at entities until the page is full, or as many were seen as one request may look at.
    ///
    /// - Parameter next: the next entity and its texts; nil at the end.
    init(
        _ words: [String],
        limit: Int,
        scanning maximum: Int,
        next: () throws -> (row: Int64, texts: [JSONValue?])?
    ) rethrows {
        var seen = 0
        while let (row, texts) = try next() {
            // One more than the page, so that a full page knows whether it is the last.
            if rows.count == limit || seen == maximum { return }
            seen += 1
            rest = row
            let text = texts.compactMap { $0?.string?.lowercased() }.joined(separator: "\n")
            if words.allSatisfy({ text.contains($0) }) { rows.append(row) }
        }
        rest = nil
    }
}
