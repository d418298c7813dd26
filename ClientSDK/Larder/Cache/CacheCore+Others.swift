import LarderTime
import Synchronization

/// When it was looked for commits of other processes, and which of them were heeded. Safe from any thread.
final class ForeignWatch: Sendable {
    let due = Atomic<Int64>(.min)
    let heeded = Atomic<UInt64>(0)
    /// Held while nodes forget: who reads after that sees nothing older than what another reader has seen.
    let gate = Mutex(())
}

/// What other processes do to the store: what memory has of it is of no use after that.
extension CacheCore {
    /// How many commits of others were seen.
    var sight: UInt64 { disk?.context.others.count ?? 0 }

    /// Looks whether another process has changed the store, if that was not done for a while. Not called while anything is locked.
    func lookForOthers(at now: Moment) {
        guard let disk else { return }
        let uptime = now.uptime.nanoseconds
        let due = foreign.due.load(ordering: .relaxed)
        if uptime >= due {
            let next = (now.uptime + max(configuration.othersInterval, .milliseconds(1))).nanoseconds
            // One looks, the others go on.
            if foreign.due.compareExchange(expected: due, desired: next, ordering: .relaxed).exchanged { look(disk) }
        }
        if foreign.heeded.load(ordering: .acquiring) != sight { heedOthers() }
    }

    /// Looks in any case: something is about to be done that should know.
    func lookForOthers() {
        guard let disk else { return }
        look(disk)
        heedOthers()
    }

    private func look(_ disk: DiskStore) {
        do { try disk.lookForOthers() } catch {
            // What is in memory is shown all the same, as where the disk cannot be read.
            configuration.onEvent(.storageFailed(LarderError(error)))
        }
    }

    /// Forgets what was put together before others have changed what it was put together from, and shows it anew.
    func heedOthers() {
        let seen = sight
        guard let disk, foreign.heeded.load(ordering: .acquiring) < seen else { return }
        takeMarks(disk)
        let nodes: [any AnyNode]? = foreign.gate.withLock { _ in
            guard foreign.heeded.load(ordering: .acquiring) < seen else { return nil }
            let nodes = self.nodes.all
            for node in nodes { node.forget() }
            foreign.heeded.store(seen, ordering: .releasing)
            return nodes
        }
        guard let nodes else { return }
        // Whoever has found it out reads one thing, and does not wait for all that is looked at.
        Task { for node in nodes { node.show() } }
    }

    /// Takes over what others have declared stale by name.
    private func takeMarks(_ disk: DiskStore) {
        do {
            if let marks = try disk.metadata(InvalidationTable.metadataKey) { invalidations.merge(marks) }
        } catch {
            configuration.onEvent(.storageFailed(LarderError(error)))
        }
    }
}
