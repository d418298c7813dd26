import LarderEvents
import LarderMemory
import LarderStorage
import LarderTime
import Synchronization

/// When the store is checked for commits of other processes, and how many of them were applied. Safe from any thread.
final class ForeignCommitMonitor: Sendable {
    let due = Atomic<Int64>(.min)
    let appliedCount = Atomic<UInt64>(0)
    /// After how many of them the decoded values were dropped.
    let droppedCount = Atomic<UInt64>(0)
    /// Held while nodes drop their content, so that no later read sees an older value than an earlier one.
    let gate = Mutex(())
}

/// Commits of other processes, which invalidate the memory tier.
extension CacheCore {
    var seenCommits: UInt64 { disk?.context.foreignCommits.load(ordering: .acquiring) ?? 0 }

    /// How long a memory hit may be served before the store is checked for commits by other processes. A check costs some microseconds.
    private static let foreignCheckInterval = Duration.milliseconds(100)

    /// Checks for foreign commits if the interval has passed. Not called while a lock is held.
    func checkForeignCommits(at now: Moment) {
        guard let disk else { return }
        let uptime = now.uptime.nanoseconds
        let due = foreign.due.load(ordering: .relaxed)
        if uptime >= due {
            let next = (now.uptime + Self.foreignCheckInterval).nanoseconds
            // One thread checks, the others continue.
            if foreign.due.compareExchange(expected: due, desired: next, ordering: .relaxed).exchanged { look(disk) }
        }
        if foreign.appliedCount.load(ordering: .acquiring) != seenCommits { applyForeignCommits() }
    }

    /// Whether `checkForeignCommits` has something to do, which may need the disk.
    func isForeignCheckDue(at now: Moment) -> Bool {
        guard disk != nil else { return false }
        return now.uptime.nanoseconds >= foreign.due.load(ordering: .relaxed)
            || foreign.appliedCount.load(ordering: .acquiring) != seenCommits
    }

    /// Checks for foreign commits at once.
    func checkForeignCommits() {
        guard let disk else { return }
        look(disk)
        applyForeignCommits()
    }

    /// If it fails, values in memory are still served, as when the disk cannot be read.
    private func look(_ disk: DiskStore) { reporting { try disk.checkForeignCommits() } }

    /// Drops content that was assembled before foreign commits, and shows observers the new content.
    func applyForeignCommits() {
        let seen = seenCommits
        guard let disk, foreign.appliedCount.load(ordering: .acquiring) < seen else { return }
        // The tag invalidations of other processes.
        guard let marks = reporting({ try disk.metadata(InvalidationTable.metadataKey) }) else { return }
        let clock = invalidations.clock
        if let marks { invalidations.merge(marks, present: stamps.next()) }
        let wasSetBack = invalidations.clock > clock
        let nodes: [any AnyNode]? = foreign.gate.withLock { _ in
            guard foreign.appliedCount.load(ordering: .acquiring) < seen else { return nil }
            dropOutdated()
            let nodes = self.nodes.all
            for node in nodes { departures.keep(node.forget()) }
            foreign.appliedCount.store(seen, ordering: .releasing)
            return nodes
        }
        guard let nodes else { return }
        reportEvictions()
        entityObservers.tell { _ in true }
        // The caller reads one value and does not wait for the other observers.
        Task { await reading { for node in nodes { wasSetBack ? node.clockWasSetBack() : node.show() } } }
    }

    /// Drops the decoded values if another process has committed since they were read.
    func dropOutdated() {
        let seen = seenCommits
        guard foreign.droppedCount.load(ordering: .acquiring) < seen else { return }
        memory.withLock { count in
            guard foreign.droppedCount.load(ordering: .relaxed) < seen else { return }
            count += 1
            entities.removeAll()
            queries.removeAll()
            foreign.droppedCount.store(seen, ordering: .releasing)
        }
    }
}
