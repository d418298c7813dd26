import LarderEngine
import LarderHTTP
import Synchronization

/// What the server has counted since its start, for `/_larder/metrics`. Safe from any thread.
final class RequestCounts: Sendable {
    /// What answers a request: the custom route that takes its method and path, even if a condition does not hold, or else the rest.
    enum Route: String, Sendable {
        case control, demo, data, routes, proxy, recording
    }

    struct Key: Sendable, Hashable {
        let route: Route
        /// 0 without a reply.
        let status: Int
    }

    struct Totals: Sendable {
        var requests: [Key: Int] = [:]
        /// By the name of the action.
        var faults: [String: Int] = [:]
        var contractFindings = 0
    }

    private let state = Mutex(Totals())

    var totals: Totals { state.withLock { $0 } }

    func count(_ record: ExchangeRecord, _ route: Route, _ owner: WorldExchange?) {
        let findings = owner?.contractFindings.withLock { $0.count } ?? 0
        let faults = (owner?.trace as? ExchangeTrace)?.decisions.map(\.fault.action.name) ?? []
        let key = Key(route: route, status: record.status == .noReply ? 0 : record.status.code)
        state.withLock { totals in
            totals.requests[key, default: 0] += 1
            totals.contractFindings += findings
            for name in faults { totals.faults[name, default: 0] += 1 }
        }
    }
}
