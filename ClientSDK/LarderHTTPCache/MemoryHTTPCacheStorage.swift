import LarderHTTP
import LarderMemory
import Synchronization

/// Stores responses in memory within a budget; the least recently used are evicted.
package final class MemoryHTTPCacheStorage: HTTPCacheStorage {
    /// False: it is in memory.
    package var mayBlock: Bool { false }
    private struct Stored: Sendable {
        var entries: [HTTPCacheEntry] = []
        var bodies: [String: [UInt8]] = [:]

        var cost: Int {
            let fields = entries.reduce(0) { sum, entry in
                entry.fields.reduce(sum + 200) { $0 + $1.name.description.utf8.count + $1.value.utf8.count + 32 }
            }
            return bodies.values.reduce(fields) { $0 + $1.count }
        }
    }

    private let tier: MemoryTier<String, Stored>
    private let bytesMaximum: Int
    /// Held during an update, because the tier has no atomic update.
    private let changing = Mutex(())

    /// - Parameter bytesMaximum: the budget for contents and fields, in bytes. 0 or less stores nothing.
    package init(bytesMaximum: Int = 16 << 20) {
        self.bytesMaximum = max(0, bytesMaximum)
        tier = MemoryTier(limits: .init(cost: max(0, bytesMaximum)))
    }

    /// The approximate size of stored responses, in bytes.
    package var byteCount: Int { tier.cost }

    /// Returns the entries of a key.
    package func entries(for key: String) -> [HTTPCacheEntry] { tier[key]?.entries ?? [] }

    /// Returns the content of an entry.
    package func body(of entry: HTTPCacheEntry, for key: String) -> [UInt8]? { tier[key]?.bodies[entry.bodyID] }

    /// Updates the entries of a key.
    package func update(_ key: String, body: [UInt8]?, _ change: @Sendable (inout [HTTPCacheEntry]) -> Void) {
        changing.withLock { _ in
            var stored = tier[key] ?? Stored()
            change(&stored.entries)
            if let body { stored.bodies[HTTPCacheEntry.bodyID(for: body)] = body }
            let named = Set(stored.entries.map(\.bodyID))
            stored.bodies = stored.bodies.filter { named.contains($0.key) }
            stored.entries = stored.entries.filter { stored.bodies[$0.bodyID] != nil }
            let cost = key.utf8.count + stored.cost
            guard !stored.entries.isEmpty, cost <= bytesMaximum else {
                tier.remove(key)
                return
            }
            tier.store(stored, for: key, cost: cost)
        }
    }

    /// Removes everything.
    package func removeAll() { changing.withLock { _ in tier.removeAll() } }

    /// Evicts responses down to a size, for example under memory pressure.
    package func trim(toBytes count: Int) { changing.withLock { _ in tier.trim(cost: max(0, count)) } }
}
