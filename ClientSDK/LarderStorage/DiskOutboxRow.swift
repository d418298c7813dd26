/// A row of the outbox table.
///
/// Rows are never evicted, and are salvaged first from a damaged database.
package struct DiskOutboxRow: Sendable, Hashable {
    /// The position in the order of insertion, set by the store; 0 before. Never used twice.
    package var sequence: Int64 = 0
    /// The kind of operation.
    package var operation: String
    /// The ordering scope.
    package var scope: String
    /// The coalescing key: operations with the same one may be merged.
    package var coalescingKey: String?
    package var idempotencyKey: String
    /// The state, in the outbox's own numbers.
    package var state: Int64 = 0
    package var attempts: Int64 = 0
    /// When it was enqueued, in nanoseconds since the epoch.
    package var enqueued: Int64 = 0
    package var payload: [UInt8]
    /// What the outbox notes about the last attempt. It is metadata, and read by `DiskStore.outbox(since:)` only.
    package var note: [UInt8]?
    /// The stored bytes of a row that this process cannot decode; nil if it is readable. Set by the store.
    package var sealed: [UInt8]?

    package init(
        operation: String,
        scope: String = "",
        coalescingKey: String? = nil,
        idempotencyKey: String,
        payload: [UInt8]
    ) {
        self.operation = operation
        self.scope = scope
        self.coalescingKey = coalescingKey
        self.idempotencyKey = idempotencyKey
        self.payload = payload
    }

    private static let notePrefix = "larder.rejection "

    /// The metadata key of an operation's note.
    package static func noteKey(_ sequence: Int64) -> String { notePrefix + "\(sequence)" }

    /// The operation that a metadata value belongs to; nil for any other value.
    static func sequence(ofNote key: String) -> Int64? {
        key.hasPrefix(notePrefix) ? Int64(key.dropFirst(notePrefix.count)) : nil
    }
}
