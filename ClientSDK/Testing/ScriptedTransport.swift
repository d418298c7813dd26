public import Larder
import Synchronization

/// A transport that answers from a script and remembers what it was asked.
///
/// Safe from any task. A request beyond the script's end fails as unreachable.
public final class ScriptedTransport: Transport {
    private struct State {
        var replies: [Result<TransportResponse, TransportError>]
        var requests: [TransportRequest] = []
    }

    private let state: Mutex<State>

    /// - Parameter replies: what is answered, in order.
    public init(_ replies: [Result<TransportResponse, TransportError>]) { state = Mutex(State(replies: replies)) }

    /// What was sent, in order.
    public var requests: [TransportRequest] { state.withLock { $0.requests } }

    /// Gives the next reply of the script.
    public func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        let reply = state.withLock { state in
            state.requests.append(request)
            return state.replies.isEmpty ? nil : state.replies.removeFirst()
        }
        guard let reply else { throw TransportError(.unreachable, "The script has no more replies.") }
        return try reply.get()
    }
}
