import LarderStorage
import LarderTime
import Synchronization

/// The clock of the cache, and what happens when it is set back.
extension CacheCore {
    /// The present moment. Not called while a node is locked.
    package func now() -> Moment {
        let (moment, wasSetBack) = clocks.read()
        if wasSetBack { markTimesUncertain() }
        return moment
    }

    /// Whether times on disk are uncertain and not yet marked there.
    var areTimesUncertain: Bool { hasUncertainTimes.load(ordering: .relaxed) }

    /// Marks all stored times as uncertain, because the clock was set back.
    func markTimesUncertain() {
        hasUncertainTimes.store(true, ordering: .relaxed)
        // A handler may change the cache or enqueue, and this may be called while an operation is being enqueued.
        delayed.tell { [self] in
            configuration.onEvent(.clockSetBack)
            Task {
                await changing {
                    storeUncertainty()
                    for node in nodes.all { node.timeCame() }
                }
            }
        }
    }

    func storeUncertainty() {
        guard areTimesUncertain, !isClosed else { return }
        let seen = clocks.highWater
        // Until it succeeds, all times from the disk count as uncertain.
        reporting {
            // Synced: after a power loss the clock may be later than the last stored time, and the setback is not noticed again.
            try memoryRows.used?.write { transaction in try transaction.markTimesUncertain() }
            try disk?.write(.powerLoss) { transaction in
                try transaction.markTimesUncertain()
                try transaction.setMetadata(Self.encode(seen), for: Self.clockKey)
            }
            hasUncertainTimes.store(false, ordering: .relaxed)
        }
    }

    /// Stores the invalidations together with those of other processes.
    func storeMarks(in transaction: DiskConnection) throws {
        let key = InvalidationTable.metadataKey
        if let marks = try transaction.metadata(key) {
            invalidations.merge(marks)
        }
        try transaction.setMetadata(invalidations.encoded, for: key)
    }

    static func encode(_ time: WallTime) -> [UInt8] { Array("\(time.nanosecondsSinceEpoch)".utf8) }
}
