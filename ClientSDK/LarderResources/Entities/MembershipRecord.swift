import LarderCoding
import LarderStorage

/// Which entities have changed since the source returned a declared list: only these may be in another place of the list
/// than the source said.
struct MembershipRecord: Sendable, Equatable {
    struct Change: Sendable, Equatable {
        /// The stamp of the change.
        var order: UInt64
        /// Whether the entity must not be written to the disk, its identifier included.
        var isOffDisk: Bool
    }

    /// The maximum number of recorded changes. Beyond, the oldest is forgotten and the list becomes stale.
    static let changesMaximum = 256
    /// The maximum size of the stored form. Beyond it the stored form says that changes were forgotten.
    private static let bytesMaximum = 256 << 10

    /// The entity type of the list.
    let type: String
    /// The changes by the entity's identifier.
    private(set) var changes: [String: Change] = [:]
    /// The order of the latest change that was forgotten.
    private(set) var forgottenAt: UInt64?
    /// The order of the latest answer.
    private(set) var answeredAt: UInt64 = 0
    var isOffDisk = false

    init(type: String) { self.type = type }

    mutating func note(_ id: String, _ change: Change) {
        // The answer of an older request may come after an event.
        changes[id] = Change(order: max(change.order, changes[id]?.order ?? 0), isOffDisk: change.isOffDisk)
        guard changes.count > Self.changesMaximum,
            let oldest = changes.min(by: { ($0.value.order, $0.key) < ($1.value.order, $1.key) })
        else { return }
        changes[oldest.key] = nil
        forgottenAt = max(oldest.value.order, forgottenAt ?? 0)
    }

    mutating func remove(_ id: String) { changes[id] = nil }

    /// The source has returned or confirmed the list: earlier changes are contained in it.
    mutating func answered(_ order: UInt64) {
        answeredAt = order
        changes = changes.filter { $0.value.order > order }
        if let forgotten = forgottenAt, forgotten <= order { forgottenAt = nil }
    }

    // MARK: Storing

    /// The stored form: an array of whether changes were forgotten, and the identifiers.
    var encoded: [UInt8] {
        var items: [JSONValue] = [.bool(forgottenAt != nil)]
        for id in changes.filter({ !$0.value.isOffDisk }).keys.sorted() { items.append(.string(id)) }
        var writer = JSONWriter()
        writer.value(.array(items))
        guard writer.bytes.count > Self.bytesMaximum else { return writer.bytes }
        writer = JSONWriter()
        writer.value(.array([.bool(true)]))
        return writer.bytes
    }

    /// Decodes a stored record. A record that cannot be decoded counts as one whose changes were forgotten.
    ///
    /// - Parameter order: the order of the changes.
    init(type: String, stored bytes: [UInt8]?, order: UInt64) {
        self.type = type
        let items = bytes.flatMap { try? JSONParser.parse($0) }?.array
        if items?.first != .bool(false) { forgottenAt = order }
        for id in items?.dropFirst() ?? [] {
            guard let id = id.string else { continue }
            changes[id] = Change(order: order, isOffDisk: false)
        }
    }
}
