/// What happened to a database that was damaged or gone, and what was saved from it.
///
/// The first call that meets the damage replaces the database and is carried out on the new one. `DiskEvent.recovered` reports it once,
/// in the process that opens the new database first, also after a crash in between. In every case the damaged files are kept beside the
/// new one (`setAside`, the last two), and whatever is read was stored: each row has a checksum. What is promised beside that:
///
/// | damage | while the store is open | when it is opened | reported |
/// | --- | --- | --- | --- |
/// | database overwritten or cut off | every operation that this process has put in or read, and what can be read of the rest | what can be read | `notADatabase` or `corrupt` |
/// | database emptied | as above | what the log has | `vanished` |
/// | database removed or renamed, log left | everything | what the log has | `vanished` |
/// | database and log removed | everything | nothing; without an index (`-shm`) the store counts as new, and nothing is reported | `vanished` |
/// | log removed | everything | the state of the last checkpoint; where its index is gone too, nothing is reported | `corrupt` |
/// | replaced by another process | every operation that this process has put in or read, unless the other had it and has sent or dropped it | – | `replaced`, where operations were added |
/// | directory removed, or erased by another process | nothing: it counts as erased. Writes throw `cannotOpen`, what waits is neither sent nor brought back | a new store | – |
/// | disk full | everything; nothing more is put in until there is room. What waits is sent with `DiskStore.Configuration.outboxReserveBytes`, and cached content is evicted for it | the same | `DiskError.Code.full`; `evicted` |
/// | directory not writable | writes throw `readOnly`, reads go on | it cannot be opened: `readOnly` | – |
///
/// Operations keep their number, idempotency key, order and state; one that was on its way is in doubt after a restart. New numbers go on
/// above all that were given out. An operation that another process has put in and this one has not read is in the new database if it
/// could be read from the damaged one, or as soon as the other process uses the store again. One that another process has finished
/// may be sent again under the same key. Change tokens are kept only if everything that they cover was.
public struct DiskRecovery: Sendable, Hashable {
    /// What was the matter.
    public enum Reason: Sendable, Hashable {
        /// The file is no SQLite database (any more).
        case notADatabase
        /// The file's structure is damaged.
        case corrupt
        /// The file is gone, or it is empty.
        case vanished
        /// Another process has replaced the file, and what this process knew of the outbox was added to it.
        case replaced
    }

    /// What was the matter.
    public let reason: Reason
    /// What SQLite said of it.
    public let description: String
    /// Where the damaged file was put; nil if there was none.
    public let setAside: String?
    /// How many operations of the outbox are in the new database: read from the damaged one, or known to this process.
    public let outboxSaved: Int
    /// Whether the outbox could be read from one end to the other. If not, operations may be missing that this process did not know, and
    /// the file that was set aside is all that is left of them.
    public let isOutboxWhole: Bool
    /// How many entities, lists and records were saved.
    public let itemsSaved: Int
    /// Whether change tokens and metadata were kept. Tokens are dropped unless everything that they cover was saved, and
    /// changes must then be read from the start.
    public let areTokensKept: Bool
}

extension DiskRecovery {
    /// Under which key a new database keeps the report until somebody has heard it.
    static let key = "recovery"

    private static let separator: Character = "\u{1F}"

    /// As it is kept.
    var encoded: [UInt8] {
        let reason =
            switch reason {
            case .notADatabase: "notADatabase"
            case .corrupt: "corrupt"
            case .vanished: "vanished"
            case .replaced: "replaced"
            }
        let parts = [
            reason, "\(outboxSaved)", "\(isOutboxWhole)", "\(itemsSaved)", "\(areTokensKept)", setAside ?? "",
            description,
        ]
        return Array(parts.joined(separator: String(Self.separator)).utf8)
    }

    /// As it was kept.
    init?(encoded: [UInt8]) {
        let parts = String(decoding: encoded, as: UTF8.self)
            .split(separator: Self.separator, maxSplits: 6, omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 7, let outboxSaved = Int(parts[1]), let itemsSaved = Int(parts[3]) else { return nil }
        self.init(
            reason: parts[0] == "notADatabase" ? .notADatabase : parts[0] == "vanished" ? .vanished : .corrupt,
            description: parts[6],
            setAside: parts[5].isEmpty ? nil : parts[5],
            outboxSaved: outboxSaved,
            isOutboxWhole: parts[2] == "true",
            itemsSaved: itemsSaved,
            areTokensKept: parts[4] == "true"
        )
    }
}
