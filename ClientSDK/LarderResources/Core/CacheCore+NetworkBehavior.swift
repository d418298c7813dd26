import LarderEvents
import Synchronization

/// Lifetimes at the current network level (`CacheConfiguration.networkBehavior`).
extension CacheCore {
    /// By what the times to live of a class are multiplied at present: at least 1. Looked at under a node's lock.
    func stretch(of name: Freshness.Class) -> Double {
        guard hasStretches.load(ordering: .relaxed) else { return 1 }
        return stretches.withLock { $0[name.rawValue] ?? 1 }
    }

    /// Takes over from the present conduct what is looked at under locks. Not called while a node is locked.
    ///
    /// - Returns: whether that is something else than before.
    func applyNetworkBehavior() -> Bool {
        let conduct = configuration.networkBehavior()
        var factors: [String: Double] = [:]
        for name in conduct.lifetimeFactors.keys {
            let factor = conduct.lifetimeFactor(class: name)
            if factor != 1 { factors[name] = factor }
        }
        return stretches.withLock { stretches in
            guard stretches != factors else { return false }
            stretches = factors
            hasStretches.store(!factors.isEmpty, ordering: .relaxed)
            return true
        }
    }
}
