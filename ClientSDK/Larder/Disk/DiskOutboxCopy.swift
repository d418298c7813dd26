/// What this process knows of the outbox: a copy of the rows that it has committed or read.
///
/// The rows of a damaged database may not be readable any more, and they were promised to be sent. The copy is written into the
/// database that takes the damaged one's place, before anything else is. Changed with the writer's state, directly after a commit, so
/// that it never differs from what this process has committed.
struct DiskOutboxCopy: Sendable {
    /// What a transaction has done to a row.
    enum Change: Sendable {
        case stored(DiskOutboxRow)
        case removed(Int64)
        case noted(Int64, [UInt8]?)
    }

    /// By sequence number.
    private(set) var rows: [Int64: DiskOutboxRow] = [:]
    /// What is kept with some of them (`DiskOutboxRow.noteKey`).
    private(set) var notes: [Int64: [UInt8]] = [:]
    /// The largest sequence number that is known to have been given out.
    private(set) var largest: Int64 = 0
    /// Up to this number all rows were read: a smaller one that is not in `rows` was removed.
    private(set) var readUpTo: Int64 = 0
    /// Rows with larger numbers that this process has removed.
    private var removedBeyond: Set<Int64> = []
    /// Which database the copy belongs to.
    var database: DiskIdentity?

    /// Notes what a transaction has committed.
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

    /// Notes all rows behind a number, and all notes, as they were read just now.
    mutating func noteRead(_ read: [DiskOutboxRow], _ notes: [Int64: [UInt8]], after number: Int64) {
        self.notes = notes
        if number < largest { rows = rows.filter { $0.key <= number } }
        for row in read { rows[row.sequence] = row }
        largest = max(largest, read.last?.sequence ?? 0)
        guard number <= readUpTo else { return }
        readUpTo = max(readUpTo, largest)
        removedBeyond = []
    }

    /// Forgets a row that another process is known to have removed.
    mutating func forget(_ number: Int64) { rows[number] = nil }

    /// Whether a row was removed: one that is found all the same comes from an outdated file.
    func isKnownGone(_ number: Int64) -> Bool {
        rows[number] == nil && (number <= readUpTo || removedBeyond.contains(number))
    }
}

/// Which database a file holds. A database that replaces a damaged one says whose rows it has.
///
/// Another process that had the damaged one open knows by that which of its rows are still missing: those that the replacing process
/// neither knew nor found in the file.
struct DiskIdentity: Sendable, Equatable {
    /// Under which key it is kept.
    static let key = "identity"

    /// A random number.
    let id: Int64
    /// Whether it has taken the place of a damaged database. If not, what was there before was erased.
    let isReplacement: Bool
    /// Up to this number the replacing process knew all rows.
    let knownUpTo: Int64
    /// The rows with larger numbers that it has.
    let beyond: Set<Int64>

    /// Of a database that begins empty.
    init() {
        id = .random(in: .min ... .max)
        isReplacement = false
        knownUpTo = 0
        beyond = []
    }

    /// Of one that takes another's place.
    init(replacementWith numbers: [Int64], knownUpTo: Int64) {
        id = .random(in: .min ... .max)
        isReplacement = true
        self.knownUpTo = knownUpTo
        beyond = Set(numbers.filter { $0 > knownUpTo })
    }

    /// Whether the replacing process knew of a row: if it is not there, it was sent or removed since.
    func accounts(for number: Int64) -> Bool { number <= knownUpTo || beyond.contains(number) }

    /// As it is kept.
    var encoded: [UInt8] {
        let parts = [id, isReplacement ? 1 : 0, knownUpTo] + beyond.sorted()
        return Array(parts.map { "\($0)" }.joined(separator: ",").utf8)
    }

    /// As it was kept.
    init?(encoded: [UInt8]) {
        let parts = String(decoding: encoded, as: UTF8.self).split(separator: ",").map { Int64($0) }
        guard parts.count >= 3, let id = parts[0], let flag = parts[1], let known = parts[2] else { return nil }
        self.id = id
        isReplacement = flag == 1
        knownUpTo = known
        beyond = Set(parts.dropFirst(3).compactMap { $0 })
    }
}
