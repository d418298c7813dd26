import Foundation

/// Two changes of one thing that were made from the same version.
public struct EditConflict<Value: Codable & Sendable & Equatable>: Error, Sendable {
    /// What both were made from.
    public let base: Value
    /// The change that was made here.
    public let mine: Value
    /// What the server has now.
    public let theirs: Value
    /// The ETag of what the server has now: what the merged value is to be saved with.
    public let validator: String

    /// A merge of two changes.
    public struct Merge: Sendable {
        /// Both changes in one.
        public let value: Value
        /// The fields that both have changed, each otherwise; of them `value` has what was preferred.
        public let conflicts: Set<String>
    }

    /// Whose change counts where both have changed a field.
    public enum Preference: Sendable, Hashable {
        /// The change that was made here.
        case mine
        /// The change that the server has.
        case theirs
    }

    /// Puts both changes together, field by field.
    ///
    /// - Throws: `.encoding` where the value cannot be taken apart into fields.
    public func merged(preferring preference: Preference) throws(LarderError) -> Merge {
        do {
            let (base, mine, theirs) = (try Self.fields(base), try Self.fields(mine), try Self.fields(theirs))
            var merged = theirs
            var conflicts = Set<String>()
            for name in Set(base.keys).union(mine.keys) where mine[name] != base[name] {
                if theirs[name] == base[name] || theirs[name] == mine[name] {
                    merged[name] = mine[name]
                    continue
                }
                conflicts.insert(name)
                if preference == .mine { merged[name] = mine[name] }
            }
            let data = try JSONSerialization.data(withJSONObject: merged)
            return Merge(value: try JSONDecoder().decode(Value.self, from: data), conflicts: conflicts)
        } catch {
            throw LarderError(.encoding, "The versions cannot be merged by field: \(error)", cause: error)
        }
    }

    private static func fields(_ value: Value) throws -> [String: NSObject] {
        let object = try JSONSerialization.jsonObject(with: JSONEncoder().encode(value))
        guard let fields = object as? [String: Any] else {
            throw LarderError(.encoding, "\(Value.self) is not an object with fields.")
        }
        return fields.compactMapValues { $0 as? NSObject }
    }
}
