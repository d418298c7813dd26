import LarderStorage

extension CacheCore {
    /// The changes that matter to a declared list.
    func listChanges(_ key: QueryKey, type: String) -> ListChanges {
        loadMemberships()
        let record = entities.memberships.present.lists[key]
        return ListChanges(
            recorded: Set((record?.changes.keys).map { $0.map { EntityKey(type: type, id: $0) } } ?? []),
            pending: Set(entities.pendingKeys { $0.type == type }),
            isIncomplete: record?.type != type || record?.forgottenAt != nil,
            part: ListChanges.part(ofType: type)
        )
    }

    /// Reads the membership records at the first use, and after another process may have changed them.
    private func loadMemberships() {
        let table = entities.memberships
        let seen = seenCommits
        guard let disk = contentDisk, !table.contains(commits: seen) else { return }
        do {
            try table.load(commits: seen, order: UInt64(stamps.next().rawValue)) { try disk.metadata($0) }
        } catch {
            // The lists are stale until the records can be read.
            configuration.onEvent(.storageFailed(LarderError(error)))
        }
    }

    /// Adopts the membership records of a commit, and returns the keys that nodes have to look up again.
    func adoptMemberships(of commit: Commit) -> Set<StoredKey> {
        if let new = commit.memberships { entities.memberships.replace(new) }
        return entities.memberships.widened(commit.changed)
    }
}
