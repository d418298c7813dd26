import Foundation
import LarderCoding
import LarderStorage

extension CacheEntity {
    /// The names of the members that differ from an earlier value, as in the entity's JSON encoding: what an app can highlight.
    ///
    /// A member that one of the two does not have counts as changed. Members of members are not compared one by one. Cost: two encodings
    /// unless the values are equal; nothing is compared unless this is called.
    ///
    /// - Throws: `.encoding` if one of the values cannot be encoded as a JSON object.
    public func changedFields(since earlier: Self) throws(LarderError) -> Set<String> {
        guard self != earlier else { return [] }
        let (old, new) = (try earlier.jsonMembers(), try jsonMembers())
        return Set(old.keys).union(new.keys).filter { old[$0] != new[$0] }
    }

    func jsonMembers() throws(LarderError) -> [String: JSONValue] {
        let encoder = JSONEncoder()
        // Members of members are compared in order.
        encoder.outputFormatting = .sortedKeys
        let value: JSONValue
        do { value = try JSONParser.parse(Array(try encoder.encode(self))) } catch {
            throw LarderError(
                .encoding,
                "\(entityKey) cannot be encoded as JSON, so its fields cannot be compared: \(error)",
                cause: error
            )
        }
        guard let object = value.object else {
            throw LarderError(
                .encoding,
                "\(entityKey) is not encoded as a JSON object, so it has no fields to compare."
            )
        }
        return Dictionary(object.members.map { ($0.name, $0.value) }, uniquingKeysWith: { _, last in last })
    }
}

extension Sequence where Element: CacheEntity {
    /// The fields that differ from an earlier list, by item: see `CacheEntity.changedFields(since:)`.
    ///
    /// Items that are equal, or are in one of the lists only, are left out. Cost: O(n), and two encodings for each item that has changed.
    ///
    /// - Throws: `.encoding` if an item cannot be encoded as a JSON object.
    public func changedFields(
        since earlier: some Sequence<Element>
    ) throws(LarderError) -> [Element.ID: Set<String>] {
        let old = Dictionary(earlier.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
        var changed: [Element.ID: Set<String>] = [:]
        for item in self {
            guard changed[item.id] == nil, let before = old[item.id], before != item else { continue }
            changed[item.id] = try item.changedFields(since: before)
        }
        return changed
    }
}
