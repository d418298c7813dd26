import LarderTime
import Synchronization

/// What clients have reported to hold (`POST /_larder/oracles/converged`), compared with the truth at that moment. Safe from any
/// thread.
final class HeldReports: Sendable {
    struct Report: Sendable {
        /// The reported entities with their versions.
        let held: [String: Int]
        /// The entities in which the report differs from the server.
        let differing: Set<String>
    }

    private struct State {
        var reports: [Report] = []
        var count = 0
    }

    private let state = Mutex(State())
    /// Told the 1-based number of each report on the thread that answers it, before the client has its reply.
    let observers = Observers<Int>()
    private static let keptMaximum = 16

    /// The latest reports, oldest first.
    var all: [Report] { state.withLock { $0.reports } }

    func add(_ report: Report) {
        let number = state.withLock { state in
            state.count += 1
            state.reports.append(report)
            if state.reports.count > Self.keptMaximum { state.reports.removeFirst() }
            return state.count
        }
        observers.tell(number)
    }

    /// Forgets the reports. The observers stay.
    func removeAll() { state.withLock { $0 = State() } }
}
