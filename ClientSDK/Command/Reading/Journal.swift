import Larder
import Synchronization

/// What the cache told while the command ran. Safe from any thread.
final class Journal: Sendable {
    /// What an operation of the outbox has come to in this run.
    enum End: Sendable {
        case accepted
        case refused(LarderError)
        case postponed(LarderError)
    }

    private struct State {
        var ends: [Int64: End] = [:]
        var discards = 0
        var recoveries: [String] = []
    }

    private let state = Mutex(State())
    private let terminal: Terminal?

    /// - Parameter terminal: told of every event; nil: of none.
    init(tellsEverythingTo terminal: Terminal?) { self.terminal = terminal }

    func end(of id: OperationID) -> End? { state.withLock { $0.ends[id.rawValue] } }

    /// What stored things were found damaged, and what was repaired.
    var damage: (discards: Int, recoveries: [String]) { state.withLock { ($0.discards, $0.recoveries) } }

    func note(_ event: CacheEvent) {
        switch event {
        case .operation(_, let id, let end):
            state.withLock { state in
                switch end {
                case .accepted: state.ends[id.rawValue] = .accepted
                case .refused(let error): state.ends[id.rawValue] = .refused(error)
                case .postponed(let error, _): state.ends[id.rawValue] = .postponed(error)
                }
            }
        case .disk(let event): note(event)
        default: break
        }
        terminal?.note(Self.text(event))
    }

    func note(_ event: DiskEvent) {
        switch event {
        case .recovered(let recovery): state.withLock { $0.recoveries.append(recovery.description) }
        case .discarded: state.withLock { $0.discards += 1 }
        default: break
        }
    }

    private static func text(_ event: CacheEvent) -> String {
        switch event {
        case .hit(let resource, let tier, _): "\(resource): found \(tier == .disk ? "on disk" : "in memory")"
        case .miss(let resource): "\(resource): nothing that may be shown"
        case .merged(let resource): "\(resource): joined a request that was on its way"
        case .fetched(let resource, let time): "\(resource): the server sent it in \(Ages.text(time))"
        case .revalidated(let resource, let time):
            "\(resource): the server said «not modified» in \(Ages.text(time)); nothing was sent"
        case .failed(let resource, let error): "\(resource): \(error.code.rawValue): \(error.description)"
        case .gateRefused(let resource): "\(resource): not confirmed lately enough"
        case .firstContent(let resource, _, let time): "\(resource): something to show after \(Ages.text(time))"
        case .spared(let resource, let bytes): "\(resource): \(Sizes.text(Int64(bytes))) did not have to be sent again"
        case .evicted(let reason, let count, let bytes):
            "memory: \(count) entries left for \(reason) (\(Sizes.text(Int64(bytes))))"
        case .outbox(let step, let depth): "outbox: \(step.rawValue), \(depth) in it"
        case .disk(let event): "disk: \(event)"
        case .storageFailed(let error): "storage failed: \(error.description)"
        case .clockSetBack: "the clock was set back: everything has to be confirmed again"
        case .unregistered(let name, let count): "outbox: \(count) of \(name), which this version does not know"
        case .operation(let name, let id, .accepted): "outbox \(id) (\(name)): the server has it"
        case .operation(let name, let id, .refused(let error)): "outbox \(id) (\(name)): refused: \(error.description)"
        case .operation(let name, let id, .postponed(let error, let time)):
            "outbox \(id) (\(name)): \(error.code.rawValue), again in \(Ages.text(time))"
        }
    }
}
