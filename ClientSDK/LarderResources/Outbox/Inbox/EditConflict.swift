import Foundation
import LarderCoding

extension Outbox {
    /// Two edits of one entity that were made from the same version: one of this device, which the server has rejected, and what the server
    /// has now.
    public struct EditConflict<Value: CacheEntity>: Error, Sendable {
        /// The version that both edits started from.
        public let base: Value
        /// The edit of this device.
        public let mine: Value
        /// The current value of the server, as far as this device knows it.
        public let theirs: Value
        /// The ETag of `theirs`, to save the merged value with; nil if it is not known.
        public let validator: String?
        /// The rejected operation that waits for a decision; nil if the write was awaited.
        public let operation: OperationID?

        public init(base: Value, mine: Value, theirs: Value, validator: String?, operation: OperationID? = nil) {
            (self.base, self.mine, self.theirs) = (base, mine, theirs)
            (self.validator, self.operation) = (validator, operation)
        }

        /// The fields that this device has changed; see `CacheEntity.changedFields`.
        public var myFields: Set<String> {
            get throws(LarderError) { try mine.changedFields(since: base) }
        }

        /// The fields that the server has changed.
        public var theirFields: Set<String> {
            get throws(LarderError) { try theirs.changedFields(since: base) }
        }

        /// Merges both edits by top-level field.
        ///
        /// - Parameter isMinePreferred: whether the edit of this device wins for a field that both have changed; otherwise the server's value.
        /// - Returns: the merged value, and the fields that both edits have changed to different values; `value` has the preferred ones.
        /// - Throws: `.encoding` if the value is not encoded as a JSON object.
        public func merged(
            preferringMine isMinePreferred: Bool
        ) throws(LarderError) -> (value: Value, conflicts: Set<String>) {
            let (base, mine) = (try base.jsonMembers(), try mine.jsonMembers())
            let theirs = try theirs.jsonMembers()
            var merged = theirs
            var conflicts = Set<String>()
            for name in Set(base.keys).union(mine.keys) where mine[name] != base[name] {
                if theirs[name] == base[name] || theirs[name] == mine[name] {
                    merged[name] = mine[name]
                    continue
                }
                conflicts.insert(name)
                if isMinePreferred { merged[name] = mine[name] }
            }
            var object = JSONObject()
            for (name, value) in merged { object[name] = value }
            var writer = JSONWriter()
            writer.value(.object(object))
            do {
                let value = try JSONDecoder().decode(Value.self, from: Data(writer.bytes))
                return (value, conflicts)
            } catch {
                throw LarderError(.encoding, "The edits cannot be merged by field: \(error)", cause: error)
            }
        }
    }
}
