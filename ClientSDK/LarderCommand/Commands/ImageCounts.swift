import Larder
import Synchronization

/// Counts image events by origin. Safe from any thread.
final class ImageCounts: Sendable {
    struct Totals: Sendable {
        var memory = 0
        var disk = 0
        var network = 0
        var revalidated = 0
        var bytes = 0
        var failures: [String] = []
        /// Images that were decoded or have failed.
        var done = 0
    }

    private struct State {
        var totals = Totals()
        var onStep: (@Sendable (Int) -> Void)?
    }

    private let state = Mutex(State())

    var totals: Totals { state.withLock { $0.totals } }

    /// Calls `body` with `done` each time that it changes.
    func onStep(_ body: @escaping @Sendable (Int) -> Void) { state.withLock { $0.onStep = body } }

    func note(_ event: ImagePipeline.Event) {
        let step = state.withLock { state -> (@Sendable () -> Void)? in
            let before = state.totals.done
            Self.add(event, to: &state.totals)
            let done = state.totals.done
            guard done != before, let onStep = state.onStep else { return nil }
            return { onStep(done) }
        }
        step?()
    }

    private static func add(_ event: ImagePipeline.Event, to totals: inout Totals) {
        switch event {
        case .hit(_, .memory, _): totals.memory += 1
        case .hit(_, .disk, _): totals.disk += 1
        case .downloadFinished(_, let bytes, _, _):
            totals.network += 1
            totals.bytes += bytes
        case .revalidated: totals.revalidated += 1
        case .decoded: totals.done += 1
        case .failed(let url, let error):
            totals.failures.append("\(url): \(error.description)")
            totals.done += 1
        default: break
        }
    }
}
