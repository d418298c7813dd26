import LarderStorage
import LarderTime
import Synchronization

/// The clock of the cache, and what happens when it is set back.
extension CacheCore {
    /// The present moment. Not called while a node is locked.
    package func now() -> Moment {
        let (moment, wasSetBack) = clocks.read()
        if wasSetBack { clockWasSetBack() }
        return moment
    }

    /// What was confirmed before has no known age. This is stored at once, because it may not be noticed again: the clock may be later than
    /// the last stored time after a restart.
    func clockWasSetBack() {
        invalidations.noteClockSetBack(at: stamps.next())
        for node in nodes.all { departures.keep(node.forget()) }
        // A handler may change the cache or enqueue, and this may be called while an operation is being enqueued.
        delayed.tell { [self] in
            configuration.onEvent(.clockSetBack)
            Task {
                await changing {
                    storeClock()
                    freshnessChanged()
                }
            }
        }
    }

    private func storeClock() {
        guard let disk, !isClosed else { return }
        let seen = clocks.highWater
        let isStored: Void? = reporting {
            try disk.write(.powerLoss) { transaction in
                try storeMarks(in: transaction)
                try storeClock(seen, in: transaction)
            }
        }
        // The next commit that the disk takes stores it.
        if isStored == nil { lacksChanges.store(true, ordering: .relaxed) }
    }

    /// Stores the invalidations together with those of other processes.
    func storeMarks(in transaction: DiskConnection) throws {
        let key = InvalidationTable.metadataKey
        if let marks = try transaction.metadata(key) {
            invalidations.merge(marks)
        }
        try transaction.setMetadata(invalidations.encoded, for: key)
    }

    /// The latest time that the clock has shown, and how far it is ahead of the time since the boot.
    private static let clockKey = "larder.clock"

    func storeClock(_ seen: WallTime, in transaction: DiskConnection) throws {
        var text = "\(seen.nanosecondsSinceEpoch)"
        if let offset = clockOffset { text += " \(offset.nanoseconds) \(offset.bootID)" }
        try transaction.setMetadata(Array(text.utf8), for: Self.clockKey)
    }

    /// Whether the clock was set back since a process has stored it. If the machine was booted meanwhile, it is only noticed if the clock shows
    /// an earlier time than then.
    func wasSetBack(_ disk: DiskStore) throws -> Bool {
        guard let stored = try disk.metadata(Self.clockKey) else { return false }
        let parts = String(decoding: stored, as: UTF8.self).split(separator: " ", maxSplits: 2)
        guard let seen = parts.first.flatMap({ Int64($0) }) else { return false }
        if parts.count == 3, let offset = Int64(parts[1]),
            let ahead = clockOffset?.ahead(of: ClockOffset(bootID: String(parts[2]), nanoseconds: offset))
        {
            return ahead < .zero
        }
        return configuration.wallClock.now < WallTime(nanosecondsSinceEpoch: seen) - Moment.tolerance
    }

    private var clockOffset: ClockOffset? { ClockOffset(of: configuration.wallClock, configuration.stamps) }
}
