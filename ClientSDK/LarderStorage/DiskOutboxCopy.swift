/// This process's copy of the outbox: the rows that it has committed or read.
///
/// The rows of a damaged database may be unreadable, and they must be sent. The copy is written first into the database that
/// replaces it. Changed with the writer's state, directly after a commit, so that it always matches what this process has
/// committed.
struct DiskOutboxCopy: Sendable {
    /// A change of a row by a transaction.
    enum Change: Sendable {
        case stored(DiskOutboxRow)
        case removed(Int64)
        case noted(Int64, [UInt8]?)
    }

    /// The rows by sequence number.
    private(set) var rows: [Int64: DiskOutboxRow] = [:]
    /// The metadata of rows that have some (`DiskOutboxRow.noteKey`).
    private(set) var notes: [Int64: [UInt8]] = [:]
    /// Up to this number all rows are known: a smaller one that is not in `rows` was removed.
    private(set) var readUpTo: Int64 = 0
    /// The identity of the database that the copy belongs to.
    var database: DiskIdentity?

    /// Applies a committed transaction.
    mutating func apply(_ changes: [Change]) {
        for change in changes {
            switch change {
            case .stored(let row):
                rows[row.sequence] = row
                // No other process has stored a row in between.
                if row.sequence == readUpTo + 1 { readUpTo += 1 }
            case .removed(let number): rows[number] = nil
            case .noted(let number, let note): notes[number] = note
            }
        }
    }

    /// Takes over all rows and notes, as they were just read.
    mutating func noteRead(_ read: [DiskOutboxRow], _ notes: [Int64: [UInt8]], knownUpTo: Int64) {
        self.notes = notes
        rows = Dictionary(uniqueKeysWithValues: read.map { ($0.sequence, $0) })
        readUpTo = max(readUpTo, knownUpTo)
    }

    /// Whether a row was removed: if it is found, the file is outdated.
    func isKnownGone(_ number: Int64) -> Bool { number <= readUpTo && rows[number] == nil }
}

/// The identity of a database.
///
/// Another process that had the damaged one open detects by that of a replacement which of its rows are missing: those that the replacing
/// process did not know.
struct DiskIdentity: Sendable, Equatable {
    /// The metadata key.
    static let key = "identity"

    /// A random number.
    let id: Int64
    /// Whether it replaces a damaged database. If not, the previous one was erased.
    let isReplacement: Bool
    /// The replacing process knew all rows up to this number: a missing one was sent or removed since.
    let knownUpTo: Int64

    /// - Parameter knownUpTo: for a replacement of a damaged database; nil: a new, empty database.
    init(replacementKnownUpTo number: Int64?) {
        id = .random(in: .min ... .max)
        isReplacement = number != nil
        knownUpTo = number ?? 0
    }

    /// The stored form.
    var encoded: [UInt8] { Array("\(id),\(isReplacement ? 1 : 0),\(knownUpTo)".utf8) }

    /// Decodes the stored form.
    init?(encoded: [UInt8]) {
        let parts = String(decoding: encoded, as: UTF8.self).split(separator: ",").map { Int64($0) }
        guard parts.count >= 3, let id = parts[0], let flag = parts[1], let known = parts[2] else { return nil }
        self.id = id
        isReplacement = flag == 1
        knownUpTo = known
    }
}
