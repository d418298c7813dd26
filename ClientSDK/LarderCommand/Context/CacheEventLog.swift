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
    private let terminal: Terminal?

    /// - Parameter terminal: every event is printed there (`--trace`); nil: none.
    init(tracingTo terminal: Terminal?) { self.terminal = terminal }

    func outcome(of id: OperationID) -> Outcome? { state.withLock { $0.outcomes[id.rawValue] } }

    /// Damaged records that were discarded, and stores that were rebuilt.
    var damage: (discards: Int, recoveries: [String]) { state.withLock { ($0.discards, $0.recoveries) } }

    func forgetDamage() { state.withLock { ($0.discards, $0.recoveries) = (0, []) } }

    func note(_ event: CacheEvent) {
        switch event {
        case .operation(_, let id, let outcome):
            state.withLock { state in
                switch outcome {
                case .accepted: state.outcomes[id.rawValue] = .accepted
                case .rejected(let error): state.outcomes[id.rawValue] = .rejected(error)
                case .postponed(let error, _): state.outcomes[id.rawValue] = .postponed(error)
                }
            }
        case .disk(let event): note(event)
        default: break
        }
        terminal?.note(Self.text(event))
    }

    func note(_ event: DiskStore.Event) {
        switch event {
        case .recovered(let recovery): state.withLock { $0.recoveries.append(recovery.description) }
        case .discarded: state.withLock { $0.discards += 1 }
        default: break
        }
    }

    private static func text(_ event: CacheEvent) -> String {
        switch event {
        case .hit(let resource, let tier, _): "\(resource): found \(tier == .disk ? "on disk" : "in memory")"
        case .miss(let resource): "\(resource): no usable value"
        case .merged(let resource): "\(resource): joined a request in flight"
        case .fetched(let resource, let time): "\(resource): fetched in \(TimeText.text(time))"
        case .revalidated(let resource, let time):
            "\(resource): not modified (304), confirmed in \(TimeText.text(time))"
        case .notStored(let resource): "\(resource): the server forbids storing it (no-store)"
        case .failed(let resource, let error): "\(resource): \(error.code.rawValue): \(error.description)"
        case .gateRejected(let resource): "\(resource): not validated recently enough"
        case .firstContent(let resource, _, let time): "\(resource): first content after \(TimeText.text(time))"
        case .spared(let resource, let bytes): "\(resource): 304 saved \(SizeText.text(Int64(bytes)))"
        case .evicted(let reason, let count, let bytes):
            "memory: \(count) entries evicted, \(reason) (\(SizeText.text(Int64(bytes))))"
        case .outbox(let step, let depth): "outbox: \(step.rawValue), depth \(depth)"
        case .disk(let event): "disk: \(event)"
        case .storageFailed(let error): "storage failed: \(error.description)"
        case .clockSetBack: "the clock was set back: all values must be revalidated"
        case .unregistered(let name, let count): "outbox: \(count) operations of the unknown type '\(name)'"
        case .operation(let name, let id, .accepted): "outbox \(id) (\(name)): accepted"
        case .operation(let name, let id, .rejected(let error)):
            "outbox \(id) (\(name)): rejected: \(error.description)"
        case .operation(let name, let id, .postponed(let error, let time)):
            "outbox \(id) (\(name)): \(error.code.rawValue), retry in \(TimeText.text(time))"
        }
    }
}
