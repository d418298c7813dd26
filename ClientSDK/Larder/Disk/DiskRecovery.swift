/// What happened to a database that was damaged or gone, and what was saved from it.
public struct DiskRecovery: Sendable, Hashable {
    /// What was the matter.
    public enum Reason: Sendable, Hashable {
        /// The file is no SQLite database (any more).
        case notADatabase
        /// The file's structure is damaged.
        case corrupt
        /// The file is gone, or it is empty.
        case vanished
    }

    /// What was the matter.
    public let reason: Reason
    /// What SQLite said of it.
    public let description: String
    /// Where the damaged file was put; nil if there was none.
    public let setAside: String?
    /// How many operations of the outbox were saved.
    public let outboxSaved: Int
    /// Whether these are certainly all. If not, some may be lost, and the file that was set aside is all that is left of them.
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
