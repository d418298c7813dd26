import LarderEvents
import Synchronization

/// Lifetimes at the current network level (`CacheConfiguration.networkBehavior`).
extension CacheCore {
    /// The current factor of the lifetimes of a class, at least 1. May be called under a node's lock.
    func stretch(of name: Freshness.Class) -> Double {
        guard hasStretches.load(ordering: .relaxed) else { return 1 }
        return stretches.withLock { $0[name.rawValue] ?? 1 }
    }

    /// Copies the lifetime factors of the current behavior, so that they can be read under locks. Not called while a
    /// node is locked.
    ///
    /// - Returns: whether a factor has changed.
    func applyNetworkBehavior() -> Bool {
        let behavior = configuration.networkBehavior()
        var factors: [String: Double] = [:]
        for name in behavior.lifetimeFactors.keys {
            let factor = behavior.lifetimeFactor(class: name)
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
