import LarderTime

/// What people have done, for the comparison with the server at the end.
struct Ledger {
    enum Kind: String { case post, message, task }

    /// Something that was written once and must exist once.
    struct Writing {
        let kind: Kind
        let machine: Int
        let author: String
        /// The beginning of its text, which no edit changes.
        let key: String
        /// The conversation of a message.
        let place: String
        /// The process that has written it, and when it was written or sent again after a rejection: snapshots that were made before
        /// do not have it.
        var device = 0
        var generation = 0
        var at = MonotonicTime(nanoseconds: 0)
        /// Whether it may be missing: its store has lost power or was erased since.
        var mayBeLost = false
        /// Whether somebody has deleted it.
        var mayBeDeleted = false
        /// Whether it is a message with a photo.
        var hasPhoto = false
        /// The edits and deletions of it by those who have a device.
        var changes: [Change] = []
    }

    /// A change that a call has accepted.
    struct Change {
        let machine: Int
        /// The new text; nil: it was deleted.
        let text: String?
    }

    enum Outcome: String { case confirmed, unknown, failed }

    struct Payment {
        let machine: Int
        let payer: String
        let account: String
        let note: String
        var outcome = Outcome.unknown
        /// Whether the call has not returned.
        var isRunning = true
        /// Whether the machine has lost power meanwhile, and the app was not started since.
        var lostItsApp = false
    }

    struct Tap: Hashable {
        let handle: String
        let post: String
    }

    var writings: [Writing] = []
    var edits: [Edit] = []
    var payments: [Payment] = []
    /// The last tap of each machine on a post.
    var taps: [Tap: [Int: Bool]] = [:]
    /// Posts of which a tap may be lost.
    var uncertainTaps: Set<Tap> = []
    private var conversationsOfHandle: [String: [String]] = [:]
    /// Machines on which an operation was rejected or given up, or that have lost what was stored: their changes may be missing.
    var unreliable: Set<Int> = []
    private var lastNumber = 0

    func conversations(of handle: String) -> [String] { conversationsOfHandle[handle] ?? [] }

    mutating func set(_ conversations: [String], of handle: String) { conversationsOfHandle[handle] = conversations }

    /// The unique beginning of a new text.
    mutating func newKey(_ kind: Kind) -> String {
        lastNumber += 1
        return "\(kind.rawValue) \(lastNumber):"
    }

    /// A store has lost what was not synced, or was erased.
    mutating func forget(_ machine: Int) {
        unreliable.insert(machine)
        for index in writings.indices where writings[index].machine == machine { writings[index].mayBeLost = true }
        for index in edits.indices where edits[index].machine == machine { edits[index].mayBeLost = true }
        for (tap, machines) in taps where machines[machine] != nil { uncertainTaps.insert(tap) }
    }
}
