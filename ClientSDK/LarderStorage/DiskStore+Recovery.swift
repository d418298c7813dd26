extension DiskStore {
    /// The report of a damaged or missing database, and of what was saved from it.
    ///
    /// The first call that finds the damage replaces the database and is repeated on the new one. `DiskStore.Event.recovered`
    /// reports it once, in the process that opens the new database first, also after a crash in between. The last two damaged files
    /// are kept beside the new one (`setAside`). Each row has a checksum, so only stored data is ever returned.
    ///
    /// Operations and metadata are kept as follows. Content is fetched again, and change tokens are dropped with what they cover.
    ///
    /// | damage | while the store is open | when it is opened | reported |
    /// | --- | --- | --- | --- |
    /// | database overwritten or cut off | every operation that this process has written or read, and all others that are readable | all that are readable | `notADatabase` or `corrupt` |
    /// | database emptied | as above | the content of the log | `vanished` |
    /// | database removed or renamed, log left | everything | the content of the log | `vanished` |
    /// | database and log removed | everything | nothing; without an index (`-shm`) the store counts as new, and nothing is reported | `vanished` |
    /// | log removed | everything | the state of the last checkpoint; if its index is missing too, nothing is reported | `corrupt` |
    /// | replaced by another process | every operation that this process has written or read, unless the other process knew it and has sent or removed it | – | `replaced`, if operations were added |
    /// | directory removed, or erased by another process | nothing: it counts as erased. Writes throw `cannotOpen`; pending operations are neither sent nor restored | a new store | – |
    /// | disk full | everything; new operations fail until there is room. Pending ones are sent from `DiskStore.Configuration.outboxReserveBytes`, and cached content is evicted for them | the same | `DiskError.code` `full`; `evicted` |
    /// | directory not writable | writes throw `readOnly`, reads continue | it cannot be opened: `readOnly` | – |
    ///
    /// Operations keep their number, idempotency key, order and state; one that was in flight is in doubt after a restart. New
    /// numbers are above all used ones. An operation enqueued by another process and not read by this one is in the new database if
    /// it was readable in the damaged one, or as soon as the other process uses the store again. One that another process has
    /// finished may be sent again with the same key.
    public struct Recovery: Sendable, Hashable {
        /// The kind of damage.
        package enum Reason: Sendable, Hashable {
            /// The file is not an SQLite database.
            case notADatabase
            /// The file's structure is damaged.
            case corrupt
            /// The file is missing or empty.
            case vanished
            /// Another process has replaced the file, and this process's outbox rows were added to it.
            case replaced
        }

        /// The kind of damage.
        package let reason: Reason
        /// SQLite's description of the damage.
        public let description: String
        /// The path of the damaged file; nil if there was none.
        public let setAside: String?
        /// The number of outbox operations in the new database: read from the damaged one, or known to this process.
        public let outboxSaved: Int
        /// Whether the whole outbox was readable. If not, operations that this process did not know may be missing, and only the
        /// damaged file has them.
        public let isOutboxWhole: Bool
    }
}

extension DiskStore.Recovery {
    /// The key of the stored report, until it has been reported.
    static let key = "recovery"

    private static let separator: Character = "\u{1F}"

    /// The stored form.
    var encoded: [UInt8] {
        let reason =
            switch reason {
            case .notADatabase: "notADatabase"
            case .corrupt: "corrupt"
            case .vanished: "vanished"
            case .replaced: "replaced"
            }
        let parts = [
            reason, "\(outboxSaved)", "\(isOutboxWhole)", setAside ?? "", description,
        ]
        return Array(parts.joined(separator: String(Self.separator)).utf8)
    }

    /// Decodes the stored form.
    init?(encoded: [UInt8]) {
        let parts = String(decoding: encoded, as: UTF8.self)
            .split(separator: Self.separator, maxSplits: 4, omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 5, let outboxSaved = Int(parts[1]) else { return nil }
        self.init(
            reason: parts[0] == "notADatabase" ? .notADatabase : parts[0] == "vanished" ? .vanished : .corrupt,
            description: parts[4],
            setAside: parts[3].isEmpty ? nil : parts[3],
            outboxSaved: outboxSaved,
            isOutboxWhole: parts[2] == "true"
        )
    }
}
