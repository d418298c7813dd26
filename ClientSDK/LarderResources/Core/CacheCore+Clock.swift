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

    /// What was confirmed before has no known age, which is marked already. The mark is stored at once, because a restart may not notice it
    /// again: the clock may show a later time by then.
    func clockWasSetBack() {
        // A handler may change the cache or enqueue, and this may be called while an operation is being enqueued.
        delayed.tell { [self] in
            configuration.onEvent(.clockSetBack)
            Task {
                await changing {
                    storeClock()
                    for node in nodes.all { node.clockWasSetBack() }
                }
            }
        }
    }

    private func storeClock() {
        guard let disk else { return }
        reporting {
            try commits.withLock { saved in
                guard !isClosed else { return }
                // The next commit that the disk takes stores it if this fails.
                saved = nil
                let clock = SavedClock(seen: clocks.highWater, offset: clockOffset)
                try disk.write(.powerLoss) { transaction in try store(clock, in: transaction) }
                saved = clock
            }
        }
    }

    /// Stores the invalidations together with those of other processes.
    func storeMarks(in transaction: DiskConnection) throws {
        let key = InvalidationTable.metadataKey
        if let marks = try transaction.metadata(key) {
            invalidations.merge(marks, present: stamps.next())
        }
        try transaction.setMetadata(invalidations.encoded, for: key)
    }

    private static let clockKey = "larder.clock"

    /// Stores what is known about the clock, together with the marks: without them it would say that it was not set back.
    func store(_ clock: SavedClock, in transaction: DiskConnection) throws {
        if invalidations.hasMarks { try storeMarks(in: transaction) }
        var text = "\(clock.seen.nanosecondsSinceEpoch)"
        if let offset = clock.offset { text += " \(offset.nanoseconds) \(offset.bootID)" }
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
            if ahead < .zero { return true }
        }
        return configuration.wallClock.now < WallTime(nanosecondsSinceEpoch: seen) - Moment.tolerance
    }

    var clockOffset: ClockOffset? { ClockOffset(of: configuration.wallClock, configuration.stamps) }
}

/// What is stored about the clock.
struct SavedClock: Sendable {
    /// The latest time that it has shown.
    var seen: WallTime
    /// How far it is ahead of the time since the boot; nil if that is not known.
    var offset: ClockOffset?

    /// Whether it must be stored again.
    func isOutdated(by clock: SavedClock) -> Bool {
        let ahead = offset.flatMap { clock.offset?.ahead(of: $0) } ?? .zero
        return ahead != .zero || abs((clock.seen - seen).nanosecondsSaturating) > 60_000_000_000
    }
}
