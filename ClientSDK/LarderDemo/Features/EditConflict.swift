import Foundation
public import Larder

/// Two edits of one value that were made from the same version.
public struct EditConflict<Value: Codable & Sendable & Equatable>: Error, Sendable {
    /// The version that both edits started from.
    public let base: Value
    /// The edit of this device.
    public let mine: Value
    /// The current value of the server.
    public let theirs: Value
    /// The ETag of `theirs`, to save the merged value with.
    public let validator: String

    /// The result of a merge.
    public struct Merge: Sendable {
        /// The merged value.
        public let value: Value
        /// The fields that both edits have changed to different values; `value` has the preferred ones.
        public let conflicts: Set<String>
    }

    /// Which edit wins for a field that both have changed.
    public enum Preference: Sendable, Hashable {
        /// The edit of this device.
        case mine
        /// The value of the server.
        case theirs
    }

    /// Merges both edits by top-level field.
    ///
    /// - Throws: `.encoding` if the value is not encoded as a JSON object.
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
            throw LarderError(.encoding, "The edits cannot be merged by field: \(error)", cause: error)
        }
    }

    private static func fields(_ value: Value) throws -> [String: NSObject] {
        let object = try JSONSerialization.jsonObject(with: JSONEncoder().encode(value))
        guard let fields = object as? [String: Any] else {
            throw LarderError(.encoding, "\(Value.self) is not encoded as a JSON object.")
        }
        return fields.compactMapValues { $0 as? NSObject }
    }
}
