import LarderStorage
import Synchronization

/// The keys whose rows lack a change that memory has made while the disk failed. Their rows are not read, and the next commit that
/// reaches the disk first writes, invalidates or removes them.
///
/// Without it, a value that memory has evicted would be replaced by its older row, and a later change token would cover a change that
/// is on no disk. Bounded: beyond `countMaximum` keys all content on the disk counts as outdated and is removed. Changed within commits;
/// safe from any thread.
final class UnwrittenKeys: Sendable {
    /// What a row lacks.
    enum Lack: Int, Sendable {
        /// It does not say that it was invalidated. Its content is right.
        case mark
        /// It has to be combined with a newer part, which arrived while it could not be read.
        case part
        /// It has another content than the source.
        case content
    }

    struct Keys: Sendable {
        var lacks: [StoredKey: Lack] = [:]
        /// The keys whose values cannot be encoded at present, and whose rows were removed or invalidated already: what is there now was
        /// stored by another process.
        var withoutRows: Set<StoredKey> = []
        /// Whether there were too many keys.
        var isEverything = false
        /// Whether the invalidations of tags are lacking.
        var hasMarks = false
        /// The number of foreign commits that were seen before the first of the changes.
        var seenCommits: UInt64 = 0

        mutating func note(_ key: StoredKey, _ lack: Lack) {
            guard !isEverything else { return }
            withoutRows.remove(key)
            if lacks[key].map({ $0.rawValue < lack.rawValue }) ?? true { lacks[key] = lack }
            guard lacks.count > UnwrittenKeys.countMaximum else { return }
            lacks = [:]
            withoutRows = []
            isEverything = true
        }
    }

    static let countMaximum = 4_096

    private let hasAny = Atomic<Bool>(false)
    private let state = Mutex(Keys())

    /// The keys; nil if there are none.
    var present: Keys? { hasAny.load(ordering: .acquiring) ? state.withLock { $0 } : nil }

    /// Whether the row of a key must not be read.
    func contains(_ key: StoredKey) -> Bool {
        guard hasAny.load(ordering: .acquiring) else { return false }
        return state.withLock { $0.isEverything || $0.lacks[key] != nil }
    }

    /// Notes what a commit changes in memory alone, before memory has it.
    func note(_ commit: Commit, seenCommits: UInt64) {
        state.withLock { keys in
            if !hasAny.load(ordering: .relaxed) { keys.seenCommits = seenCommits }
            for (key, change) in commit.entities {
                if let lack = Self.lack(change) { keys.note(.entity(key), lack) }
            }
            for (key, change) in commit.queries {
                if let lack = Self.lack(change) { keys.note(.query(key), lack) }
            }
            for key in commit.missed { keys.note(key, .content) }
            if commit.hasNewMarks { keys.hasMarks = true }
            guard !keys.lacks.isEmpty || keys.isEverything || keys.hasMarks else { return }
            hasAny.store(true, ordering: .releasing)
        }
    }

    /// A commit has written the others.
    func replace(with rest: Keys) {
        guard hasAny.load(ordering: .relaxed) else { return }
        state.withLock { keys in
            keys = rest
            hasAny.store(!rest.lacks.isEmpty, ordering: .releasing)
        }
    }

    func removeAll() { replace(with: Keys()) }

    private static func lack(_ change: Commit.Change<StoredEntity>) -> Lack? {
        switch change {
        // Its row, if there is one, is an older value.
        case .set(let stored) where stored.isMemoryOnly: .content
        // Its content is on the disk, with older times.
        case .set(let stored) where !stored.isUnwritten: stored.isInvalidated ? .mark : nil
        case .set(let stored) where stored.unreadMerge != nil: .part
        case .elsewhere: .mark
        case .set, .removed, .forgotten: .content
        }
    }

    private static func lack(_ change: Commit.Change<StoredQuery>) -> Lack? {
        switch change {
        case .set(let stored) where stored.isMemoryOnly: .content
        case .set(let stored) where !stored.isUnwritten: stored.query.isInvalidated ? .mark : nil
        case .elsewhere: .mark
        case .set, .removed, .forgotten: .content
        }
    }
}
