/// A row of the table that is reserved for the outbox: what was promised to be sent.
///
/// Rows are never evicted, and the first that are saved from a damaged database.
package struct DiskOutboxRow: Sendable, Hashable {
    /// Its place in the order of insertion, given by the store; 0 before that. Never used twice.
    package var sequence: Int64 = 0
    /// Which kind of operation.
    package var operation: String
    /// Within which operations are in order.
    package var scope: String
    /// Operations with one coalescing key may become one.
    package var coalescingKey: String?
    package var idempotencyKey: String
    /// Where it stands; the outbox's own numbers.
    package var state: Int64 = 0
    package var attempts: Int64 = 0
    /// When it was put there, in nanoseconds since the epoch.
    package var enqueued: Int64 = 0
    package var payload: [UInt8]

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

    private static let notePrefix = "larder.refusal "

    /// Under which key the metadata value is kept that belongs to an operation: why it was refused.
    package static func noteKey(_ sequence: Int64) -> String { notePrefix + "\(sequence)" }

    /// To which operation a metadata value belongs; nil for any other value.
    static func sequence(ofNote key: String) -> Int64? {
        key.hasPrefix(notePrefix) ? Int64(key.dropFirst(notePrefix.count)) : nil
    }
}
