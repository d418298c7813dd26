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
