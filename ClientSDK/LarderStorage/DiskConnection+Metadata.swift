import LarderSQLite

/// Metadata values and change tokens.
extension DiskConnection {
    /// Metadata does not count in the budget.
    private static let metadataBytesMaximum = 1 << 20

    /// The owner of a metadata value.
    enum MetadataKind: Int64 {
        /// A value of the caller.
        case value = 0
        /// A change token.
        case token = 1
        /// A value of the store itself.
        case own = 2
    }

    package func metadata(_ key: String) throws(DiskError) -> [UInt8]? { try metadata(.value, key) }

    /// A value that any payload transform and key can read, because it is stored as it is. Damage to the file may lose it.
    package func plainMetadata(_ key: String) throws(DiskError) -> [UInt8]? { try metadata(.own, key) }

    package func setPlainMetadata(_ value: [UInt8], for key: String) throws(DiskError) {
        try setMetadata(.own, key, value)
    }

    /// The change token of a feed.
    package func token(_ feed: String) throws(DiskError) -> String? {
        try metadata(.token, feed).map { String(decoding: $0, as: UTF8.self) }
    }

    /// Stores a metadata value; nil removes it. At most 1 MiB; never evicted.
    package func setMetadata(_ value: [UInt8]?, for key: String) throws(DiskError) {
        try setMetadata(.value, key, value)
    }

    /// Stores a feed's change token; nil removes it.
    package func setToken(_ token: String?, for feed: String) throws(DiskError) {
        try setMetadata(.token, feed, token.map { Array($0.utf8) })
    }

    func metadata(_ kind: MetadataKind, _ key: String) throws(DiskError) -> [UInt8]? {
        try first(.findMetadata, kind.rawValue, key) { value(of: key, kind, $0.bytes(0), sum: $0.int64(1)) } ?? nil
    }

    /// The decoded value; nil if it is damaged, or encoded with another transform or key.
    func value(of key: String, _ kind: MetadataKind, _ stored: [UInt8], sum: Int64) -> [UInt8]? {
        let plain = DiskChecksum.plain([key], [kind.rawValue], stored)
        if sum == plain { return stored }
        // The inverted sum says that the value is encoded.
        guard sum == ~plain, context.seal.transform != nil else { return nil }
        do {
            return try context.seal.open(stored, DiskChecksum.place(DiskSeal.metadataKind + kind.rawValue, "", key))
        } catch {
            return nil
        }
    }

    /// Whether there is a metadata value that cannot be read, and that may not be taken for none: it is damaged, or it is encoded with
    /// another transform or key, as is an operation that waits for its key.
    package func isUnreadable(_ key: String) throws(DiskError) -> Bool {
        let kind = MetadataKind.value
        let isIntact =
            try first(.findMetadata, kind.rawValue, key) { row -> Bool? in
                let (stored, sum) = (row.bytes(0), row.int64(1))
                guard value(of: key, kind, stored, sum: sum) == nil else { return nil }
                return sum == ~DiskChecksum.plain([key], [kind.rawValue], stored)
            } ?? nil
        guard isIntact == true else { return isIntact != nil }
        return try outbox(after: 0, limit: .max).contains { $0.operation == DiskOutboxRow.unreadableName }
    }

    func setMetadata(_ kind: MetadataKind, _ key: String, _ value: [UInt8]?) throws(DiskError) {
        try checkKey(key)
        if let value, value.count > Self.metadataBytesMaximum {
            throw DiskError(
                .tooLarge,
                "A metadata value of \(value.count) bytes: at most \(Self.metadataBytesMaximum) are taken. Store a record."
            )
        }
        guard let value else { return try store(nil, sum: 0, kind, key) }
        // The store's own values are read before it is known whether the transform is the right one.
        guard kind != .own, context.seal.transform != nil else {
            return try store(value, sum: DiskChecksum.plain([key], [kind.rawValue], value), kind, key)
        }
        let place = DiskChecksum.place(DiskSeal.metadataKind + kind.rawValue, "", key)
        let stored = try context.seal.close(value, place)
        try store(stored, sum: ~DiskChecksum.plain([key], [kind.rawValue], stored), kind, key)
    }

    /// Stores a metadata value as it is; nil removes it.
    func store(_ stored: [UInt8]?, sum: Int64, _ kind: MetadataKind, _ key: String) throws(DiskError) {
        guard let stored else { return try run(.dropMetadata, kind.rawValue, key) }
        try run(.putMetadata, kind.rawValue, key, stored, sum)
    }
}
