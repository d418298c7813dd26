import LarderEvents
import LarderMemory
import LarderStorage
import LarderTime
import Synchronization

/// Commits: the rows first, then the decoded values in memory, then the observers.
extension CacheCore {
    /// Commits an update and notifies observers.
    ///
    /// - Parameters:
    ///   - stamp: when the request that was answered, or the event, began; nil: now.
    ///   - isTolerant: whether memory is changed although the disk fails, which is reported.
    func commit(
        _ update: CacheUpdate,
        askedAt stamp: Stamp? = nil,
        moment: Moment? = nil,
        isTolerant: Bool = false
    ) throws(LarderError) {
        defer { delayed.deliver() }
        announce(try carryOut(update, askedAt: stamp, moment: moment, isTolerant: isTolerant))
    }

    /// Commits an update without notification: `announce` must follow outside of all locks.
    ///
    /// - Parameter settle: stores the rows of the outbox and the pending changes after the content: calls its argument once with them.
    func carryOut(
        _ update: CacheUpdate,
        askedAt stamp: Stamp? = nil,
        moment: Moment? = nil,
        isTolerant: Bool = false,
        settle: ((CacheUpdate, (CacheUpdate) throws -> Void) throws -> Void)? = nil
    ) throws(LarderError) -> Commit {
        owner.requireOutside("A change to the cache")
        outboxOwner.requireOutside("A change to the cache")
        let moment = moment ?? now()
        let (content, local) = update.divided
        let start = Commit(core: self, stamp: stamp ?? stamps.next(), moment: moment)
        do {
            if content.steps.isEmpty, settle == nil { return try carryOutLocally(local, start) }
            // A commit of content may wait for the outbox lock.
            outboxLockOwner.requireOutside("A change to the cache")
            let encoded = content.encoded(unlessEqualTo: entities)
            return try commits.withLock { savedHighWater in
                owner.begin()
                defer { owner.end() }
                guard !isClosed else { throw Self.isClosedError }
                var commit = try perform(encoded, start, &savedHighWater, isTolerant: isTolerant)
                guard settle != nil || !local.isEmpty else {
                    commit.affected = apply(commit)
                    return commit
                }
                try settleRows(of: local, settle, &commit)
                return commit
            }
        } catch {
            throw LarderError(error)
        }
    }

    static var isClosedError: LarderError { LarderError(.closed, "The cache was closed or erased.") }

    /// Notifies the observers of a commit.
    func announce(_ commit: Commit) {
        delayed.deliver()
        if areTimesUncertain { storeUncertainty() }
        removeBytes(after: commit)
        for problem in commit.problems { configuration.onEvent(.storageFailed(problem)) }
        tell(commit)
        applyForeignCommits()
    }

    /// Notifies the observers of a commit as soon as the locks that the caller holds are released.
    func announceLater(_ commit: Commit) { delayed.add { self.announce(commit) } }

    private func perform(
        _ update: CacheUpdate,
        _ start: Commit,
        _ savedHighWater: inout WallTime,
        isTolerant: Bool
    ) throws -> Commit {
        var start = start
        // Decided here, where no reader can intervene that keeps the key off the disk.
        start.isMemoryOnly = update.isMemoryOnly || update.answered.map { memoryOnly.contains($0) } ?? false
        start.isTolerant = isTolerant
        guard let disk else { return try performInMemory(update, start) }
        let seen = clocks.highWater
        let isTimeToSave = seen - savedHighWater > .seconds(60)
        do {
            let isCatchingUp = lacksChanges.load(ordering: .relaxed)
            var changed: Rows?
            let companion = needsMemory(update, start) ? memoryRows.store : nil
            // The body may be called again, after a full disk or a damaged one.
            let commit = try writeContent(disk, with: companion, update) { transaction in
                dropOutdated()
                let rows = Rows(self, disk: transaction, memory: transaction.companion, stamp: start.stamp)
                changed = rows
                var commit = start
                if isCatchingUp { for key in try rows.catchUp() { commit.forget(key) } }
                try commit.perform(update.steps, rows)
                if commit.hasNewMarks || isCatchingUp && invalidations.hasMarks { try storeMarks(in: transaction) }
                if isTimeToSave { try transaction.setMetadata(Self.encode(seen), for: Self.clockKey) }
                if update.precedesRows { commit.settled = try nextSettled(in: transaction) }
                return commit
            }
            if isTimeToSave { savedHighWater = seen }
            if let changed { hidden.withLock { $0 = changed.hidden } }
            if isCatchingUp {
                // What is kept off the disk may have left it by this.
                hasRemovedBytes.store(true, ordering: .relaxed)
                lacksChanges.store(false, ordering: .relaxed)
            }
            return commit
        } catch let error as DiskError where isTolerant && !error.isOfValue {
            lacksChanges.store(true, ordering: .relaxed)
            var commit = try performInMemory(update, start)
            commit.note(LarderError(error))
            return commit
        }
    }

    /// Carries out an update while there is no disk, or while it takes no changes.
    private func performInMemory(_ update: CacheUpdate, _ start: Commit) throws -> Commit {
        dropOutdated()
        let (commit, changed) = try memoryRows.store.write { transaction in
            var commit = start
            let rows = Rows(self, disk: nil, memory: transaction, stamp: start.stamp)
            try commit.perform(update.steps, rows)
            return (commit, rows.hidden)
        }
        hidden.withLock { $0 = changed }
        return commit
    }

    /// Stores content. Content that sending needs may use the room that is reserved for it.
    private func writeContent(
        _ disk: DiskStore,
        with companion: DiskStore?,
        _ update: CacheUpdate,
        _ body: (DiskConnection) throws -> Commit
    ) throws -> Commit {
        while true {
            do { return try disk.write(update.durability, with: companion, body) } catch  where update.mayUseReserve {
                guard DiskStore.isFull(error), try outboxDisk?.makeRoom() ?? false else { throw error }
            }
        }
    }

    /// Whether the store in memory has rows or may get some.
    private func needsMemory(_ update: CacheUpdate, _ start: Commit) -> Bool {
        memoryRows.used != nil || start.isMemoryOnly || !memoryOnly.isEmpty || contentDisk == nil
            || lacksChanges.load(ordering: .relaxed) || update.steps.contains(where: \.mayNeedMemory)
    }

    /// - Returns: the nodes to notify.
    func apply(_ commit: Commit) -> [any AnyNode] {
        let changed = commit.changed
        // User values, which are not released under the locks.
        var dropped: [AnyObject?] = []
        defer { withExtendedLifetime(dropped) {} }
        return memory.withLock { count in
            count += 1
            for (key, change) in commit.entities {
                switch change {
                case .set(let stored): entities.store(stored, for: key)
                case .removed, .elsewhere: entities.remove(key)
                }
            }
            for (key, change) in commit.queries {
                switch change {
                case .set(let stored): queries.store(stored, for: key, cost: stored.cost)
                case .removed, .elsewhere: queries.remove(key)
                }
            }
            for (key, place) in commit.rowless { rowless.note(key, place) }
            for key in commit.invalidWithoutValue { rowless.noteInvalid(key, commit.stamp) }
            for (key, change) in commit.overlays { entities.edit(key, change) }
            for (key, change) in commit.queryOverlays { entities.edit(key, change) }
            // An assembly that is in progress begins again.
            let affected = changed.isEmpty ? [] : dependencies.nodes(madeOf: changed)
            dropped = affected.map { $0.forget() }
            return affected
        }
    }

    func reportEvictions() { departures.tell(configuration.onEvent) }

    private func tell(_ commit: Commit) {
        reportEvictions()
        for node in commit.affected { node.show() }
        if !entityObservers.isEmpty {
            let types = Set(commit.changedValues.map(\.type) + commit.overlays.map(\.0.type))
            entityObservers.tell { types.contains($0) }
        }
        if commit.hasNewMarks { freshnessChanged() }
    }

    /// Tells all nodes that their freshness may have changed.
    func freshnessChanged() { for node in nodes.all { node.contentChanged() } }

    /// Judges the freshness of the observed values again. Their content stays assembled.
    func showAll() { for node in nodes.all { node.show() } }
}

extension CacheUpdate {
    /// The content, and what concerns the outbox: its rows, and pending changes and values in memory.
    var divided: (content: CacheUpdate, local: CacheUpdate) {
        var (content, local) = (self, CacheUpdate())
        content.rows = []
        local.rows = rows
        local.durability = durability
        local.mayUseReserve = mayUseReserve
        guard steps.contains(where: \.isLocal) || !rows.isEmpty else { return (content, local) }
        content.steps = steps.filter { !$0.isLocal }
        local.steps = steps.filter(\.isLocal)
        content.durability = .processDeath
        content.precedesRows = !rows.isEmpty && !content.steps.isEmpty
        return (content, local)
    }
}

extension CacheUpdate.Step {
    /// Whether its row may not be on the disk.
    fileprivate var mayNeedMemory: Bool {
        switch self {
        case .put(let draft, _, _): draft.isMemoryOnly
        case .keepOffDisk: true
        default: false
        }
    }

    /// Whether it changes pending changes or memory only.
    fileprivate var isLocal: Bool {
        switch self {
        case .overlay, .queryOverlay, .reread: true
        default: false
        }
    }
}
