import LarderCoding
import LarderSQLite

/// The stored form of an operation.
///
/// Under a payload transform all texts of a row are encoded with its payload; the number, the state, the attempts and the time stay
/// readable.
extension DiskOutboxRow {
    /// The name of an operation whose row cannot be decoded. No operation is registered under it, so it is neither shown nor sent.
    package static let unreadableName = "larder.unreadable"

    private static var place: UInt64 { DiskChecksum.place(DiskSeal.outboxKind, "", "") }

    /// The current row of a statement; nil if its checksum is wrong.
    init?(_ statement: Statement, _ seal: DiskSeal) {
        self.init(
            operation: statement.text(1),
            scope: statement.text(2),
            coalescingKey: statement.isNull(3) ? nil : statement.text(3),
            idempotencyKey: statement.text(4),
            payload: statement.bytes(8)
        )
        sequence = statement.int64(0)
        state = statement.int64(5)
        attempts = statement.int64(6)
        enqueued = statement.int64(7)
        guard sum == statement.int64(9) else { return nil }
        // An operation has a name and a key, so empty ones say that they are encoded.
        if operation.isEmpty, idempotencyKey.isEmpty { open(seal) }
    }

    /// Excludes the row's number, which is not known when the sum is stored.
    var sum: Int64 {
        DiskChecksum.plain([operation, scope, coalescingKey, idempotencyKey], [state, attempts, enqueued], payload)
    }

    /// The row as it is stored. A row that could not be decoded is stored as it was found.
    func stored(_ seal: DiskSeal) throws(DiskError) -> DiskOutboxRow {
        if sealed == nil, seal.transform == nil { return self }
        let bytes: [UInt8]
        if let sealed { bytes = sealed } else { bytes = try seal.close(packed, Self.place) }
        var row = self
        row.operation = ""
        row.scope = ""
        row.coalescingKey = nil
        row.idempotencyKey = ""
        row.payload = bytes
        return row
    }

    private mutating func open(_ seal: DiskSeal) {
        let bytes = payload
        do {
            if seal.transform != nil, try unpack(seal.open(bytes, Self.place)) { return }
        } catch {
            // The key may be the right one again when the store is opened the next time.
        }
        sealed = bytes
        operation = Self.unreadableName
        // A scope of its own: it blocks no other operation, and the real one is not known.
        scope = "\(Self.unreadableName) \(sequence)"
        idempotencyKey = scope
        payload = []
    }

    // MARK: Encoding

    /// Four texts, each with its length, and the payload.
    var packed: [UInt8] {
        var bytes: [UInt8] = [coalescingKey == nil ? 0 : 1]
        for text in [operation, scope, coalescingKey ?? "", idempotencyKey] { bytes.append(part: text.utf8) }
        return bytes + payload
    }

    mutating func unpack(_ bytes: [UInt8]) -> Bool {
        var rest = bytes[...]
        guard let hasCoalescingKey = rest.popFirst(), let operation = rest.takeText(), let scope = rest.takeText(),
            let coalescingKey = rest.takeText(), let idempotencyKey = rest.takeText()
        else { return false }
        (self.operation, self.scope, self.idempotencyKey) = (operation, scope, idempotencyKey)
        self.coalescingKey = hasCoalescingKey == 1 ? coalescingKey : nil
        payload = Array(rest)
        return true
    }
}
