import LarderStorage

/// The changes of entities that declared lists have to look at.
extension Commit {
    /// Records what the steps of this commit have changed. Calls no user code.
    ///
    /// Cost: the declared lists of a changed entity's type, for each changed entity.
    mutating func recordMemberships(_ disk: DiskPart) throws {
        let table = core.entities.memberships
        var records = table.present
        let seen = core.seenCommits
        if disk.isThere, records.seenCommits.map({ $0 < seen }) ?? true {
            let now = UInt64(core.stamps.next().rawValue)
            try disk.write { transaction in
                records = try transaction.read { reading in
                    try table.stored(commits: seen, order: now) { try reading.metadata($0) }
                }
            }
        }
        let stored = records
        for (key, type) in declared where records.lists[key]?.type != type {
            records.lists[key] = MembershipRecord(type: type)
        }
        noteChanges(in: &records)
        for case .query(let key) in applied where records.lists[key] != nil {
            records.lists[key]?.answered(UInt64(stamp.rawValue))
            guard case .set(let list) = queries[key] else { continue }
            records.lists[key]?.isOffDisk = list.isMemoryOnly
        }
        while !declared.isEmpty, records.isTooLarge,
            let oldest = records.lists.min(by: {
                ($0.value.answeredAt, $0.key.description) < ($1.value.answeredAt, $1.key.description)
            })
        { records.lists[oldest.key] = nil }
        guard records != table.present else { return }
        let new = records
        try disk.write { transaction in try MembershipTable.store(new, since: stored, in: transaction) }
        memberships = new
    }

    private func noteChanges(in records: inout MembershipTable.Records) {
        guard !changedValues.isEmpty, !records.lists.isEmpty else { return }
        let lists = Dictionary(grouping: records.lists.keys) { records.lists[$0]?.type ?? "" }
        for key in changedValues {
            for list in lists[key.type] ?? [] {
                switch entities[key] {
                case .set(let stored):
                    let change = MembershipRecord.Change(order: UInt64(stamp.rawValue), isOffDisk: stored.isMemoryOnly)
                    records.lists[list]?.note(key.id, change)
                case .removed, .forgotten: records.lists[list]?.remove(key.id)
                case .elsewhere, nil: break
                }
            }
        }
    }
}
