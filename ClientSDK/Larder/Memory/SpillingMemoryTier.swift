public import LarderTime
import Synchronization

/// A memory tier over a `DiskSpill`: what leaves it for want of room goes onto the disk, and comes back when it is read.
///
/// A read gives what was stored last or nothing, in whichever of the two it is. Safe from any thread: a hit in memory takes no
/// lock but the tier's own, changes come one after the other. A miss in memory that is a hit on the disk costs a read of the
/// disk on the calling thread.
public final class SpillingMemoryTier<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    /// Which of those that leave are spilled.
    public typealias Rule = @Sendable (MemoryTier<Key, Value>.Departure) -> Bool

    /// What is in memory. To be read; what is changed here directly the disk does not know of.
    public let memory: MemoryTier<Key, Value>
    /// What is on the disk.
    public let spill: DiskSpill<Key, Value>
    /// Held while anything changes, so that nothing that has left reaches the disk after what took its place was stored.
    private let change = Mutex(())

    /// - Parameters:
    ///   - limits: how much there may be in memory.
    ///   - policy: who leaves memory when it is full.
    ///   - clock: what lifetimes are measured by; the spill's too.
    ///   - spill: where those go that leave.
    ///   - rule: which of them; by default those that there was no room for, under pressure too. It must not call back.
    public init(
        limits: MemoryTier<Key, Value>.Limits,
        policy: EvictionPolicy = .standard,
        clock: any MonotonicClock = SystemMonotonicClock(),
        spill: DiskSpill<Key, Value>,
        rule: @escaping Rule = { [.count, .cost, .pressure].contains($0.reason) }
    ) {
        self.spill = spill
        memory = MemoryTier(limits: limits, policy: policy, clock: clock) { departure in
            if rule(departure) { spill.spill(departure) }
        }
    }

    /// The value of a key, if it is there and may still be used. From the disk it comes back into memory.
    public subscript(key: Key) -> Value? {
        if let value = memory[key] { return value }
        guard let entry = spill.take(key) else { return nil }
        change.withLock { _ in
            // Not if somebody has stored another one meanwhile, or removed it.
            guard spill.settle(entry) else { return }
            memory.store(entry.value, for: key, cost: entry.cost, lifetime: entry.lifetime)
        }
        return entry.value
    }

    /// Keeps a value, in memory first. What the disk had of its key is dropped.
    public func store(_ value: Value, for key: Key, cost: Int = 1, lifetime: Duration? = nil) {
        change.withLock { _ in
            // Before: what is stored may leave memory at once, and must stay on the disk then.
            spill.forget(key)
            memory.store(value, for: key, cost: cost, lifetime: lifetime)
        }
    }

    /// Removes a value, wherever it is.
    public func remove(_ key: Key) {
        change.withLock { _ in
            memory.remove(key)
            spill.forget(key)
        }
    }

    /// Removes everything.
    public func removeAll() {
        change.withLock { _ in
            memory.removeAll()
            spill.removeAll()
        }
    }

    /// Moves what is more than so much onto the disk, as when memory is short.
    public func trim(toCount count: Int = .max, cost: Int = .max) {
        change.withLock { _ in memory.trim(toCount: count, cost: cost) }
    }

    /// Changes how much there may be in memory; what is too much moves onto the disk.
    public func setLimits(_ limits: MemoryTier<Key, Value>.Limits) {
        change.withLock { _ in memory.setLimits(limits) }
    }
}
