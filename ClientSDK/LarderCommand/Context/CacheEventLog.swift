import Larder
import Synchronization

/// Collects the cache events of a run. Safe from any thread.
final class CacheEventLog: Sendable {
    /// The outcome of an outbox operation in this run.
    enum Outcome: Sendable {
        case accepted
        case rejected(LarderError)
        case postponed(LarderError)
    }

    private struct State {
        var outcomes: [Int64: Outcome] = [:]
        var discards = 0
        var recoveries: [String] = []
    }

    private let state = Mutex(State())

    func outcome(of id: OperationID) -> Outcome? { state.withLock { $0.outcomes[id.rawValue] } }

    /// Damaged records that were discarded, and stores that were rebuilt.
    var damage: (discards: Int, recoveries: [String]) { state.withLock { ($0.discards, $0.recoveries) } }

    func forgetDamage() { state.withLock { ($0.discards, $0.recoveries) = (0, []) } }

    func note(_ event: CacheEvent) {
        switch event {
        case .accepted(_, let id): state.withLock { $0.outcomes[id.rawValue] = .accepted }
        case .rejected(_, let id, let error): state.withLock { $0.outcomes[id.rawValue] = .rejected(error) }
        case .postponed(_, let id, let error, _): state.withLock { $0.outcomes[id.rawValue] = .postponed(error) }
        case .disk(let event): note(event)
        default: break
        }
    }

    func note(_ event: DiskStore.Event) {
        switch event {
        case .recovered(let recovery): state.withLock { $0.recoveries.append(recovery.description) }
        case .discarded: state.withLock { $0.discards += 1 }
        default: break
        }
    }
}
