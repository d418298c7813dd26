import LarderTime
import Synchronization

/// What the conduct of the hour makes of a read (`CacheConfiguration.conduct`). None of it is called under the node's lock.
extension Node {
    /// What a read does about the network.
    enum Asking {
        /// It has no reason to ask.
        case no
        /// It asks.
        case yes
        /// It would ask, and is not to: it is content with what there is, and that is no error.
        case spared
    }

    /// Whether a read asks the network: as its policy says, unless that is not done at present and there is something that the policy
    /// falls back to. Where there is nothing it asks all the same: the error is the one thing that can be shown.
    func asking(_ policy: ReadPolicy, _ content: Content, _ freshness: Freshness, at now: Moment) -> Asking {
        switch policy.remote {
        case .never: return .no
        case .ifStale: if freshness == .fresh { return .no }
        case .always: break
        }
        let conduct = core.configuration.conduct()
        let isAllowed = policy.remote == .always ? conduct.allowsUserRefresh : conduct.allowsRefresh
        return isAllowed || !permits(policy.fallback, content, freshness, at: now) ? .yes : .spared
    }

    /// Whether what is stale may be refreshed without anybody asking.
    var refreshesByItself: Bool { core.configuration.conduct().refreshesByItself }

    /// Whether what observers want refreshed within a bound is to be at present; where none does it does not matter.
    var keepsBound: Bool {
        state.withLock { $0.observers.values.contains { $0.options.bound != nil } } && refreshesByItself
    }

    /// - Throws: `.offline` where a refresh that a person asks for could not succeed. What is shown stays as it is.
    func checkUserRefresh() throws(LarderError) {
        guard !core.configuration.conduct().allowsUserRefresh else { return }
        throw LarderError(
            .offline,
            "«\(key)» cannot be refreshed: there is no network at present, or it is to be spared. What is stored is shown; try "
                + "again when it is back."
        )
    }

    /// That a read was answered from what is stored. What is at hand in memory is not measured: that would cost more than reading it.
    func hit(_ content: Content) -> CacheEvent {
        let bytes = content.isFromDisk ? storedBytes : 0
        return .hit(resource: key.name, content.isFromDisk ? .disk : .memory, bytes: bytes)
    }

    /// Tells how long somebody waited until there was something to show.
    func tellFirstContent(from source: Snapshot<Value>.Source?, since start: MonotonicTime) {
        let tier: CacheEvent.Tier? =
            switch source {
            case .memory: .memory
            case .disk: .disk
            case .network: .network
            case .merged, nil: nil
            }
        let waited = core.configuration.monotonicClock.uptime - start
        core.configuration.onEvent(.firstContent(resource: key.name, tier, waited))
    }

    /// How large what is stored of it is, as far as it is in memory.
    var storedBytes: Int {
        if let entity { return core.entities.bytes(of: entity) }
        return state.withLock { $0.parts }.reduce(0) { sum, part in
            switch part {
            case .entity(let key): sum + core.entities.bytes(of: key)
            case .query(let key): sum + (core.queries.peek(key)?.query.details.count ?? 0)
            }
        }
    }
}
