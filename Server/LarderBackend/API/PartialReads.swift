import LarderCoding
import LarderEngine
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

    /// The reply to a batch read, `{"items":[…],"missingIds":[…]}`: the entities that `ids` names, in its order and without duplicates; nil
    /// without `ids`.
    ///
    /// - Parameter others: the parameters of the same path that select a page.
    func batch(_ kind: EntityKind, insteadOf others: [String]) throws(Problem) -> Reply? {
        guard let text = query.first("ids") else { return nil }
        for name in others where query.first(name) != nil {
            throw invalid("ids", "cannot be given together with `\(name)`")
        }
        var ids: [EntityID] = []
        var known = Set<EntityID>()
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            guard let id = EntityID(kind, parsing: part) else {
                throw invalid("ids", "must be a comma-separated list of identifiers such as `\(kind.prefix)1`")
            }
            if known.insert(id).inserted { ids.append(id) }
            guard ids.count <= Self.batchMaximum else {
                throw invalid("ids", "can have at most \(Self.batchMaximum) identifiers")
            }
        }
        let wanted = ids
        return try reply { store in
            let items = try wanted.map { try store.json(kind, $0.row, viewer: viewer) }
            let missing = zip(wanted, items).filter { $0.1.isEmpty }.map { $0.0.json }
            let names = String(decoding: JSONValue.array(missing).encoded, as: UTF8.self)
            let body = [UInt8](items: items.filter { !$0.isEmpty }, ",\"missingIds\":\(names)")
            return Representation(body: body, cacheControl: CachePolicy.revalidate)
        }
    }
}
