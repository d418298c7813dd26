import LarderCoding

extension DiskStore {
    /// The report of a damaged or missing database, and of what was saved from it.
    ///
    /// The first call that finds the damage replaces the database and is repeated on the new one. `DiskStore.Event.recovered`
    /// reports it once, in the process that opens the new database first, also after a crash in between. The last damaged file
    /// is kept beside the new one (`setAside`). Each row has a checksum, so only stored data is ever returned.
    ///
    /// Operations and metadata are kept as follows. Content is fetched again, and change tokens are dropped with what they cover.
    ///
    /// | damage | while the store is open | when it is opened | reported |
    /// | --- | --- | --- | --- |
    /// | database overwritten or cut off | every operation that is readable or that this process knows | all that are readable | `notADatabase` or `corrupt` |
    /// | database emptied | as above | nothing | `vanished` |
    /// | database removed or renamed | everything | nothing; without its log and index the store counts as new, and nothing is reported | `vanished` |
    /// | directory removed, or erased by another process, also if a client has made a store in its place since | nothing: it counts as erased. Writes throw `cannotOpen`; pending operations are neither sent nor restored | a new store | – |
    /// | disk full | everything; new operations fail until there is room. Pending ones are sent from `DiskStore.Configuration.outboxReserveBytes`, and cached content is evicted for them | the same | `DiskError.code` `full`; `evicted` |
    /// | directory not writable | writes throw `readOnly`, reads continue | it cannot be opened: `readOnly` | – |
    ///
    /// Operations keep their number, idempotency key, order and state; one that was in flight is in doubt after a restart. New
    /// numbers are above all used ones. One that another process has finished may be sent again with the same key.
    public struct Recovery: Sendable, Hashable {
        /// The kind of damage.
        package enum Reason: String, Sendable, Hashable {
            /// The file is not an SQLite database.
            case notADatabase
            /// The file's structure is damaged.
            case corrupt
            /// The file is missing or empty.
            case vanished
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

    /// The stored form.
    var encoded: [UInt8] {
        var bytes: [UInt8] = [isOutboxWhole ? 1 : 0]
        bytes.append(number: Int64(outboxSaved))
        for text in [reason.rawValue, setAside ?? "", description] { bytes.append(part: text.utf8) }
        return bytes
    }

    /// Decodes the stored form.
    init?(encoded: [UInt8]) {
        var rest = encoded[...]
        guard let isWhole = rest.popFirst(), let saved = rest.takeNumber(Int64.self),
            let reason = rest.takeText().flatMap(Reason.init), let setAside = rest.takeText(),
            let description = rest.takeText()
        else { return nil }
        self.init(
            reason: reason,
            description: description,
            setAside: setAside.isEmpty ? nil : setAside,
            outboxSaved: Int(saved),
            isOutboxWhole: isWhole == 1
        )
    }
}
