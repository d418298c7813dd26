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
    }

    private let state = Mutex(Totals())

    var totals: Totals { state.withLock { $0 } }

    func note(_ event: ImagePipeline.Event) { state.withLock { Self.add(event, to: &$0) } }

    private static func add(_ event: ImagePipeline.Event, to totals: inout Totals) {
        switch event {
        case .hit(_, .memory, _): totals.memory += 1
        case .hit(_, .disk, _): totals.disk += 1
        case .downloadFinished(_, let bytes, _, _):
            totals.network += 1
            totals.bytes += bytes
        case .revalidated: totals.revalidated += 1
        case .failed(let url, let error): totals.failures.append("\(url): \(error.description)")
        default: break
        }
    }
}
