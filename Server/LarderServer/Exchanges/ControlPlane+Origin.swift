import LarderEngine
import LarderHTTP

extension ControlPlane {
    /// Whether the requests are answered by the demo backend.
    var hasDomain: Bool { if case .domain = origin { true } else { false } }

    /// Answers a request, or returns nil and completes the exchange later. On the loop of the exchange.
    func answer(_ request: Request, _ exchange: Exchange, _ owner: WorldExchange) -> Reply? {
        var (request, exchange) = (request, exchange)
        let check = contractChecks.contract?.check(&request, &exchange, owner)
        // What no route answers, another server or a recording does.
        let otherwise = hasDomain ? nil : { [request, exchange] in self.forward(request, exchange, owner) }
        let reply = backend.handle(request, exchange, owner, otherwise: otherwise)
        if let reply { check?(reply) }
        return reply
    }

    /// The name under which the idempotency key of a write is in flight until its reply is sent; nil without one, and if another server
    /// handles it.
    func keyInFlight(of request: Request, _ owner: WorldExchange) -> String? {
        guard !request.method.isSafe, hasDomain || !owner.customRoutes.accepting(request.method).isEmpty,
            let text = request.fields.combined(.idempotencyKey)
        else { return nil }
        let key: String
        // The route rejects a malformed one, with the reason.
        do { key = try Idempotency.parse(text) } catch { return nil }
        return "\(owner.viewer) \(request.method) \(request.pathText) \(key)"
    }

    private func forward(_ request: Request, _ exchange: Exchange, _ owner: WorldExchange) {
        owner.isForwarded = true
        switch origin {
        case .domain: break
        case .proxy(let proxy):
            // After a delay the client may have gone.
            guard !exchange.isAbandoned else { return }
            do throws(Problem) { try proxy.handle(request, exchange, owner.world) } catch {
                exchange.complete(error.reply(to: request))
            }
        case .recording(let replies): exchange.complete(replies.reply(to: request, in: owner.world))
        }
    }

    /// What has answered a request: the control plane, if the request belongs to no world.
    func route(of request: Request, _ owner: WorldExchange?) -> RequestCounts.Route {
        guard let owner else { return .control }
        return switch origin {
        case _ where !owner.customRoutes.accepting(request.method).isEmpty: .routes
        case .domain: owner.world.hasCollections ? .data : .demo
        case .proxy: .proxy
        case .recording: .recording
        }
    }

    /// What answers the requests that no route of the user answers: `demo`, `data`, `proxy` or `recording`; `routes` if nothing does.
    func serves(_ world: World) -> String {
        switch origin {
        case .proxy: "proxy"
        case .recording: "recording"
        case .domain: world.hasCollections ? "data" : backend.servesDemo ? "demo" : "routes"
        }
    }

    /// Rejects what needs the demo backend's state.
    func requireDomain(_ what: String) throws(Problem) {
        guard !hasDomain else { return }
        throw ProblemType.invalidParameter(
            "\(what) needs the state of the demo backend; this server stands before another one."
        )
    }

    /// Rejects what needs the demo's data.
    func requireDemo(in world: World, _ what: String) throws(Problem) {
        try requireDomain(what)
        guard world.hasCollections || !backend.servesDemo else { return }
        throw ProblemType.invalidParameter(
            "\(what) needs the data of the demo backend; this server has "
                + (world.hasCollections ? "your own collections." : "only routes.")
        )
    }
}
