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
    /// - Parameter settle: stores the rows of the outbox and the pending changes after the content: calls its argument once with the update
    ///   that has them.
    func carryOut(
        _ update: CacheUpdate,
        askedAt stamp: Stamp? = nil,
        moment: Moment? = nil,
        isTolerant: Bool = false,
        settle: ((CacheUpdate, (CacheUpdate) throws -> Void) throws -> Void)? = nil
    ) throws(LarderError) -> Commit {
        commits.requireOutside("A change to the cache")
        outboxCommits.requireOutside("A change to the cache")
        // Before the moment: the clock may be set back in between.
        let stamp = stamp ?? update.page?.arrived ?? stamps.next()
        let now = self.now()
        var start = Commit(core: self, stamp: stamp, moment: now)
        if let moment { start.moment = moment.rebased(to: now, after: start.committed.elapsed(since: stamp)) }
        if var page = update.page {
            page.moment = page.moment.rebased(to: now, after: start.committed.elapsed(since: page.asked))
            start.page = page
        }
        do {
            if update.steps.isEmpty, settle == nil { return try carryOutLocally(update) }
            // A commit of content may wait for the outbox lock.
            outboxLock.requireOutside("A change to the cache")
            let update = update.encoded(unlessEqualTo: entities)
            return try commits.withLock { saved in
                guard !isClosed else { throw Self.isClosedError }
                var commit = try perform(update, start, &saved, isTolerant: isTolerant)
                guard settle != nil || !update.isContent else {
                    commit.affected = apply(commit)
                    return commit
                }
                try settleRows(of: update, settle, &commit)
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
        _ saved: inout SavedClock?,
        isTolerant: Bool
    ) throws -> Commit {
        var start = start
        start.isMemoryOnly = update.isMemoryOnly
        start.isTolerant = isTolerant || update.toleratesValues
        var commit: Commit
        do {
            commit =
                try disk.map { try perform(update, start, on: $0, &saved) } ?? performInMemory(update, start)
        } catch let error as DiskError where isTolerant && disk != nil && !error.isOfValue {
            lacksChanges.store(true, ordering: .relaxed)
            commit = try performInMemory(update, start)
            commit.note(LarderError(error))
        }
        hidden.withLock { $0 = commit.hidden }
        return commit
    }

    private func perform(
        _ update: CacheUpdate,
        _ start: Commit,
        on disk: DiskStore,
        _ saved: inout SavedClock?
    ) throws -> Commit {
        let clock = SavedClock(seen: clocks.highWater, offset: clockOffset)
        let isTimeToSave = saved.map { $0.isOutdated(by: clock) } ?? true
        let isCatchingUp = lacksChanges.load(ordering: .relaxed)
        // The body may be called again, after a full disk or a damaged one.
        let commit = try writeContent(disk, update) { transaction in
            dropOutdated()
            let rows = Rows(self, disk: transaction, memory: transaction.companion, stamp: start.stamp)
            var commit = start
            if isCatchingUp { for key in try rows.catchUp() { commit.forget(key) } }
            try commit.perform(update.steps, rows)
            if commit.hasNewMarks || isCatchingUp && invalidations.hasMarks { try storeMarks(in: transaction) }
            if isTimeToSave { try store(clock, in: transaction) }
            if !update.rows.isEmpty, !update.steps.isEmpty { commit.settled = try nextSettled(in: transaction) }
            return commit
        }
        if isTimeToSave { saved = clock }
        if isCatchingUp {
            // What is kept off the disk may have left it by this.
            hasRemovedBytes.store(true, ordering: .relaxed)
            lacksChanges.store(false, ordering: .relaxed)
        }
        return commit
    }

    /// Carries out an update while there is no disk, or while it takes no changes.
    private func performInMemory(_ update: CacheUpdate, _ start: Commit) throws -> Commit {
        dropOutdated()
        return try memoryRows.store.write { transaction in
            var commit = start
            let rows = Rows(self, disk: nil, memory: transaction, stamp: start.stamp)
            try commit.perform(update.steps, rows)
            return commit
        }
    }

    /// Stores content. Content that sending needs may use the room that is reserved for it.
    private func writeContent(
        _ disk: DiskStore,
        _ update: CacheUpdate,
        _ body: (DiskConnection) throws -> Commit
    ) throws -> Commit {
        while true {
            do { return try disk.write(with: memoryRows.store, body) } catch  where update.mayUseReserve {
                guard DiskStore.isFull(error), try outboxDisk?.makeRoom() ?? false else { throw error }
            }
        }
    }

    /// - Returns: the nodes to notify.
    func apply(_ commit: Commit) -> [any AnyNode] {
        let changed = commit.changed
        return memory.withLock { count in
            count += 1
            for (key, change) in commit.entities {
                switch change {
                case .set(let stored): keep(stored, key)
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
            for change in commit.local {
                switch change {
                case .show(let key, let overlay): overlays.show(overlay, over: key)
                case .hide(let key, let operation): departures.keep(overlays.hide(operation, over: key))
                case .reread(.entity(let key)): entities.remove(key)
                case .reread(.query(let key)): queries.remove(key)
                }
            }
            // An assembly that is in progress begins again.
            let affected = changed.isEmpty ? [] : dependencies.nodes(madeOf: changed)
            for node in affected { departures.keep(node.forget()) }
            return affected
        }
    }

    /// Reports evictions, and releases what has left memory. Called without a lock.
    func reportEvictions() { departures.tell(configuration.onEvent) }

    private func tell(_ commit: Commit) {
        reportEvictions()
        for node in commit.affected { node.show() }
        if !entityObservers.isEmpty {
            let types = Set((commit.changedValues + commit.local.compactMap(\.key.entity)).map(\.type))
            entityObservers.tell { types.contains($0) }
        }
        if commit.hasNewMarks { freshnessChanged() }
    }

    /// Tells all nodes that their freshness may have changed.
    func freshnessChanged() { for node in nodes.all { node.contentChanged() } }

    /// Judges the freshness of the observed values again. Their content stays assembled.
    func showAll() { for node in nodes.all { node.show() } }
}
