import Larder
import Synchronization

/// Whether the server may be asked, and what became of it.
enum Connection: Sendable {
    /// Nobody is asked, because that was asked for.
    case offline
    /// The server did not answer when it was asked to sign in.
    case unreachable(LarderError)
    /// Somebody is signed in. Whether the server answers shows with each request.
    case open

    var isOpen: Bool { if case .open = self { true } else { false } }
}

/// A valve between the outbox and the network. Safe from any thread.
final class Valve: Sendable {
    private let isOpenNow = Mutex(false)

    var isOpen: Bool { isOpenNow.withLock { $0 } }

    func open() { isOpenNow.withLock { $0 = true } }
}

/// A transport that asks nobody.
struct ClosedTransport: Transport {
    func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        throw TransportError(.unreachable, "Nobody is asked with --offline.")
    }
}
