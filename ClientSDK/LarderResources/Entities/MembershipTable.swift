import LarderCoding
import LarderStorage
import Synchronization

/// The membership records of all declared lists. Safe from any thread; changed within commits only.
final class MembershipTable: Sendable {
    /// A consistent state of the table.
    struct Records: Sendable, Equatable {
        var lists: [QueryKey: MembershipRecord] = [:]
        /// The number of foreign commits that the records contain; nil if they were not read yet.
        var seenCommits: UInt64?

        /// The maximum number of lists with a record. The list without an answer for the longest time loses its record, and is
        /// stale when it is read again.
        static let countMaximum = 64
        /// The maximum size of their keys in bytes.
        private static let keyBytesMaximum = 128 << 10

        var isTooLarge: Bool {
            lists.count > Self.countMaximum
                || lists.keys.reduce(0) { $0 + $1.name.utf8.count + $1.canonicalParameters.utf8.count }
                    > Self.keyBytesMaximum
        }
    }

    private struct State {
        var records = Records()
        /// The number of replacements.
        var generation: UInt64 = 0
    }

    private let state = Mutex(State())

    var present: Records { state.withLock { $0.records } }

    func replace(_ new: Records) {
        state.withLock { state in
            state.records = new
            state.generation += 1
        }
    }

    func removeAll() { replace(Records()) }

    /// Whether the records contain the changes of that many foreign commits.
    func contains(commits: UInt64) -> Bool { state.withLock { $0.records.seenCommits.map { $0 >= commits } ?? false } }

    /// Reads the stored records. Records that a commit has replaced meanwhile stay.
    func load(commits: UInt64, order: UInt64, _ metadata: (String) throws -> [UInt8]?) throws {
        let generation = state.withLock { $0.generation }
        let loaded = try stored(commits: commits, order: order, metadata)
        state.withLock { state in
            guard state.generation == generation else { return }
            state.records = loaded
            state.generation += 1
        }
    }

    /// The keys of changed entities, and those of the types whose declared lists depend on them.
    func widened(_ keys: Set<StoredKey>) -> Set<StoredKey> {
        let types = Set(present.lists.values.map(\.type))
        guard !types.isEmpty else { return keys }
        var widened = keys
        for case .entity(let key) in keys where types.contains(key.type) {
            widened.insert(ListChanges.part(ofType: key.type))
        }
        return widened
    }

    // MARK: Storing

    private static let indexKey = "larder.lists"

    private static func recordKey(_ key: QueryKey) -> String {
        let (high, low) = ContentHash.hash128(Array(key.description.utf8).span)
        return "larder.list.\(String(high, radix: 16)).\(String(low, radix: 16))"
    }

    /// The stored records.
    ///
    /// - Parameters:
    ///   - commits: the number of foreign commits before they are read.
    ///   - order: the order that changes get which are not in memory.
    func stored(commits: UInt64, order: UInt64, _ metadata: (String) throws -> [UInt8]?) throws -> Records {
        var loaded = Records()
        loaded.seenCommits = commits
        let known = present
        let index = try metadata(Self.indexKey).flatMap { try? JSONParser.parse($0) }?.array ?? []
        for item in index {
            guard let name = item[0]?.string, let parameters = item[1]?.string, let type = item[2]?.string,
                let key = QueryKey(name: name, canonicalParameters: parameters)
            else { continue }
            loaded.lists[key] = MembershipRecord(
                type: type,
                stored: try metadata(Self.recordKey(key)),
                order: order
            )
        }
        // Lists that are not on the disk are known here alone.
        for (key, record) in known.lists where record.isOffDisk { loaded.lists[key] = record }
        return loaded
    }

    /// Writes the records that differ from the earlier ones.
    static func store(_ new: Records, since old: Records, in transaction: borrowing DiskStore.WriteTransaction) throws {
        func stored(_ records: Records) -> [QueryKey: MembershipRecord] { records.lists.filter { !$0.value.isOffDisk } }
        let (before, after) = (stored(old), stored(new))
        for (key, record) in after {
            let bytes = record.encoded
            if before[key]?.encoded != bytes { try transaction.setMetadata(bytes, for: recordKey(key)) }
        }
        guard Set(before.keys) != Set(after.keys) else { return }
        for key in before.keys where after[key] == nil { try transaction.setMetadata(nil, for: recordKey(key)) }
        var writer = JSONWriter()
        let lists = after.sorted { $0.key.description < $1.key.description }
        writer.value(
            .array(
                lists.map {
                    .array([.string($0.key.name), .string($0.key.canonicalParameters), .string($0.value.type)])
                }
            )
        )
        try transaction.setMetadata(writer.bytes, for: indexKey)
    }
}
