import LarderBackend
import LarderEngine
import LarderHTTP

extension ControlPlane {
    /// Whether the requests are answered by the demo backend.
    var hasDomain: Bool { if case .domain = origin { true } else { false } }

    /// Answers a request, or returns nil and completes the exchange later. On the loop of the exchange.
    func answer(_ request: Request, _ exchange: Exchange, _ owner: WorldExchange) -> Reply? {
        func respond(_ request: Request, _ exchange: Exchange) -> Reply? {
            // What no route answers, another server or a recording does.
            let otherwise = hasDomain ? nil : { self.forward(request, exchange, owner) }
            return backend.handle(request, exchange, owner, otherwise: otherwise)
        }
        guard let contract = contractChecks.contract else { return respond(request, exchange) }
        return contractChecks.checking(request, exchange, contract, respond)
    }

    private func forward(_ request: Request, _ exchange: Exchange, _ owner: WorldExchange) -> Reply? {
        owner.isForwarded = true
        switch origin {
        case .domain: return nil
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

    /// Counts an exchange that is over, and has the data that it has changed written.
    func count(_ record: ExchangeRecord, _ owner: WorldExchange?, contractFindings: Int) {
        var route = RequestCounts.Route.control
        if let world = owner?.world {
            switch origin {
            case _ where backend.customRoutes.accept(record.request.method, record.request.path): route = .routes
            case .domain: route = world.collections.isEmpty ? .demo : .data
            case .proxy: route = .proxy
            case .recording: route = .recording
            }
        }
        let trace = owner?.trace as? ExchangeTrace
        counts.count(record, route, trace, contractFindings: contractFindings)
        guard let collectionFiles, !record.request.method.isSafe, let loop = firstLoop else { return }
        collectionFiles.changed(on: loop)
    }

    /// Rejects what needs the demo backend's state.
    func requireDomain(_ what: String) throws(Problem) {
        guard !hasDomain else { return }
        throw ProblemType.invalidParameter(
            "\(what) needs the state of the demo backend; this server stands before another one."
        )
    }
}
