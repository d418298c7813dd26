import LarderBackend
import LarderEngine
import LarderHTTP

extension ControlPlane {
    /// Whether the requests are answered by the demo backend.
    var hasDomain: Bool { if case .domain = origin { true } else { false } }

    /// Answers a request, or returns nil and completes the exchange later. On the loop of the exchange.
    func answer(_ request: Request, _ exchange: Exchange, _ owner: WorldExchange) -> Reply? {
        switch origin {
        case .domain: return backend.handle(request, exchange, owner)
        case .proxy(let proxy):
            // After a delay the client may have gone.
            guard !exchange.isAbandoned else { return nil }
            do throws(Problem) {
                try proxy.handle(request, exchange, owner.world)
                return nil
            } catch {
                return error.reply
            }
        case .recording(let replies):
            return replies.reply(to: request)
        }
    }

    /// Rejects what needs the demo backend's state.
    func requireDomain(_ what: String) throws(Problem) {
        guard !hasDomain else { return }
        throw ProblemType.invalidParameter(
            "\(what) needs the state of the demo backend; this server stands before another one."
        )
    }
}
