import Larder
import Synchronization

/// Whether the command may send requests.
enum Connection: Sendable {
    /// No requests are sent, because of `--offline` or because the command needs none.
    case offline
    /// The server did not answer the sign-in.
    case unreachable(LarderError)
    /// A session exists. Each request may still fail.
    case open

    var isOpen: Bool { if case .open = self { true } else { false } }
}

/// Keeps the cache and the outbox from sending until the session is known. Safe from any thread.
final class NetworkGate: Sendable {
    private let state = Atomic(false)

    var isOpen: Bool { state.load(ordering: .acquiring) }

    func open() { state.store(true, ordering: .releasing) }
}

/// The transport of `--offline`: every request fails.
struct ClosedTransport: Transport {
    func open(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
        throw TransportError(.unreachable, "No request is sent with --offline.")
    }
}
