import Synchronization

/// What clients have reported to hold (`POST /_larder/oracles/converged`), compared with the truth at that moment. Safe from any
/// thread.
final class HeldReports: Sendable {
    /// One report.
    struct Report: Sendable {
        /// The reported entities with their versions.
        let held: [String: Int]
        /// The entities in which the report differs from the server.
        let differing: Set<String>
    }

    private struct State {
        var reports: [Report] = []
        var count = 0
        var observer: (@Sendable (Int) -> Void)?
    }

    private let state = Mutex(State())
    private static let keptMaximum = 16

    /// The latest reports, oldest first.
    var all: [Report] { state.withLock { $0.reports } }

    /// Adds a report and calls the observer with its 1-based number before the client has its reply.
    func add(_ report: Report) {
        let (observer, number) = state.withLock { state in
            state.count += 1
            state.reports.append(report)
            if state.reports.count > Self.keptMaximum { state.reports.removeFirst() }
            return (state.observer, state.count)
        }
        observer?(number)
    }

    /// Forgets the reports. The observer stays.
    func removeAll() {
        state.withLock { state in
            state.reports = []
            state.count = 0
        }
    }

    /// Calls `body` for every later report, on the thread that answers it; nil for no more.
    func observe(_ body: (@Sendable (Int) -> Void)?) {
        // Released after the lock.
        let last = state.withLock { state in
            defer { state.observer = body }
            return state.observer
        }
        _ = consume last
    }
}
