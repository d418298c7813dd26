import LarderHTTP

/// Reads of a part of a list, for clients that have most of it.
extension Call {
    /// The maximum number of items of a batch read.
    static let batchMaximum = 100

    /// The form that `fields` requests.
    func itemForm() throws(Problem) -> ItemForm {
        switch query.first("fields") {
        case nil: return .whole
        case "id,version": return .index
        default: throw invalid("fields", "can only be `id,version`")
        }
    }

    /// The rows that `ids` requests, in its order and without duplicates; nil without `ids`.
    ///
    /// - Parameter others: the parameters of the same path that select a page.
    func batch(_ kind: EntityKind, insteadOf others: [StaticString]) throws(Problem) -> [Int64]? {
        guard let text = query.first("ids") else { return nil }
        for name in others where query.first(name.description) != nil {
            throw invalid("ids", "cannot be given together with `\(name)`")
        }
        var rows: [Int64] = []
        var known = Set<Int64>()
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            guard let id = EntityID(kind, parsing: part) else {
                throw invalid("ids", "must be a comma-separated list of identifiers such as `\(kind.prefix)1`")
            }
            if known.insert(id.row).inserted { rows.append(id.row) }
            guard rows.count <= Self.batchMaximum else {
                throw invalid("ids", "can have at most \(Self.batchMaximum) identifiers")
            }
        }
        return rows
    }
}

/// The reply to a batch read: `{"items":[…],"missingIds":[…]}`.
enum BatchReply {
    /// - Parameter append: appends the item of a row; false if there is none.
    static func representation(
        _ rows: [Int64],
        _ kind: EntityKind,
        append: (Int64, inout [UInt8]) throws -> Bool
    ) throws -> Representation {
        var body: [UInt8] = []
        body.reserveCapacity(rows.count * 400 + 64)
        body.append("{\"items\":[")
        var missing: [Int64] = []
        for (index, row) in rows.enumerated() {
            let length = body.count
            // Items before this one have no comma behind them.
            if missing.count < index { body.append(UInt8(ascii: ",")) }
            if try !append(row, &body) {
                body.removeLast(body.count - length)
                missing.append(row)
            }
        }
        body.append("],\"missingIds\":[")
        for (index, row) in missing.enumerated() {
            if index > 0 { body.append(UInt8(ascii: ",")) }
            body.append(identifier: EntityID(kind, row))
        }
        body.append("]}")
        return Representation(body: body, cacheControl: CachePolicy.revalidate)
    }
}
