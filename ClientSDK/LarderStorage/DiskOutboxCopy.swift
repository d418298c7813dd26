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
    /// The largest sequence number known to have been used.
    private(set) var largest: Int64 = 0
    /// Up to this number all rows are known: a smaller one that is not in `rows` was removed.
    private(set) var readUpTo: Int64 = 0
    /// Rows with larger numbers that this process has removed.
    private var removedBeyond: Set<Int64> = []
    /// The identity of the database that the copy belongs to.
    var database: DiskIdentity?

    /// Applies a committed transaction.
    mutating func apply(_ changes: [Change]) {
        for change in changes {
            switch change {
            case .stored(let row):
                rows[row.sequence] = row
                largest = max(largest, row.sequence)
            case .removed(let number):
                rows[number] = nil
                if number > readUpTo { removedBeyond.insert(number) }
            case .noted(let number, let note): notes[number] = note
            }
        }
    }

    /// Takes over all rows and notes, as they were just read.
    mutating func noteRead(_ read: [DiskOutboxRow], _ notes: [Int64: [UInt8]]) {
        self.notes = notes
        rows = Dictionary(uniqueKeysWithValues: read.map { ($0.sequence, $0) })
        largest = max(largest, read.last?.sequence ?? 0)
        readUpTo = largest
        removedBeyond = []
    }

    /// Forgets a row that another process has removed.
    mutating func forget(_ number: Int64) { rows[number] = nil }

    /// Whether a row was removed: if it is found, the file is outdated.
    func isKnownGone(_ number: Int64) -> Bool {
        rows[number] == nil && (number <= readUpTo || removedBeyond.contains(number))
    }
}

/// The identity of a database. A replacement names the rows that it has.
///
/// Another process that had the damaged one open detects by it which of its rows are missing: those that the replacing process
/// neither knew nor found.
struct DiskIdentity: Sendable, Equatable {
    /// The metadata key.
    static let key = "identity"

    /// A random number.
    let id: Int64
    /// Whether it replaces a damaged database. If not, the previous one was erased.
    let isReplacement: Bool
    /// The replacing process knew all rows up to this number.
    let knownUpTo: Int64
    /// The rows with larger numbers that it has.
    let beyond: Set<Int64>

    /// The identity of a new, empty database.
    init() {
        id = .random(in: .min ... .max)
        isReplacement = false
        knownUpTo = 0
        beyond = []
    }

    /// The identity of a replacement.
    init(replacementWith numbers: [Int64], knownUpTo: Int64) {
        id = .random(in: .min ... .max)
        isReplacement = true
        self.knownUpTo = knownUpTo
        beyond = Set(numbers.filter { $0 > knownUpTo })
    }

    /// Whether the replacing process knew a row: if it is missing, it was sent or removed since.
    func accounts(for number: Int64) -> Bool { number <= knownUpTo || beyond.contains(number) }

    /// The stored form.
    var encoded: [UInt8] {
        let parts = [id, isReplacement ? 1 : 0, knownUpTo] + beyond.sorted()
        return Array(parts.map { "\($0)" }.joined(separator: ",").utf8)
    }

    /// Decodes the stored form.
    init?(encoded: [UInt8]) {
        let parts = String(decoding: encoded, as: UTF8.self).split(separator: ",").map { Int64($0) }
        guard parts.count >= 3, let id = parts[0], let flag = parts[1], let known = parts[2] else { return nil }
        self.id = id
        isReplacement = flag == 1
        knownUpTo = known
        beyond = Set(parts.dropFirst(3).compactMap { $0 })
    }
}
