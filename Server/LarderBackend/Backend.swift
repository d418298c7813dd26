import LarderCoding
package import LarderEngine
package import LarderHTTP
import LarderTime

/// Answers HTTP requests from the state of a world.
///
/// It holds only its routes: those of the demo API or of collections, and custom ones, which are asked first. Safe from any thread.
package struct Backend: Sendable {
    private let router = Router(APIRoutes.all)
    private let collectionRouter = Router(CollectionEndpoints.routes)

    package let customRoutes: CustomRoutes
    /// Whether a world without collections has the demo API.
    let servesDemo: Bool

    package init(customRoutes: CustomRoutes = CustomRoutes(), servesDemo: Bool = true) {
        self.customRoutes = customRoutes
        self.servesDemo = servesDemo
    }

    // MARK: Requests

    /// Answers a request, or returns nil and completes the exchange later. The request has no prefix of a world.
    ///
    /// - Parameter otherwise: answers what no custom route does, instead of the world; nil: the world does.
    package func handle(
        _ request: Request,
        _ exchange: Exchange,
        _ owner: WorldExchange,
        otherwise: (() -> Reply?)? = nil
    ) -> Reply? {
        let candidates = customRoutes.candidates(request.path)
        if let otherwise, candidates.isEmpty { return otherwise() }
        // Fields of this exchange alone are added last, to whichever reply is found.
        var addedLines = CrossOrigin.lines(for: request)
        let result: Reply
        do {
            try limit(request, owner, &addedLines)
            guard let reply = try answer(request, exchange, owner, candidates, otherwise) else { return nil }
            result = reply.adding(addedLines)
        } catch { result = error.reply.adding(addedLines) }
        guard !candidates.isEmpty, let sequel = owner.sequel.take() else { return result }
        sequel.follow(exchange, owner.world, customRoutes).complete(result)
        return nil
    }

    /// Counts the request of its caller.
    ///
    /// - Throws: `rate-limited`.
    private func limit(_ request: Request, _ owner: WorldExchange, _ addedLines: inout [UInt8]) throws(Problem) {
        // A preflight is not limited: a page whose preflight fails is not shown the 429.
        guard let limiter = owner.world.limiter, !request.isPreflight else { return }
        // A caller with invalid credentials is counted by address; the regular path reports the credentials.
        let user = try? owner.session(request)?.user
        let caller = user.map { "user \($0)" } ?? request.peer.host
        let verdict = limiter.take(caller, now: owner.world.clock.now)
        RateLimitFields.append(verdict, limiter, to: &addedLines)
        guard verdict.isAllowed else { throw RateLimitFields.rejection(verdict) }
    }

    private func answer(
        _ request: Request,
        _ exchange: Exchange,
        _ owner: WorldExchange,
        _ candidates: [CustomRoutes.Candidate],
        _ otherwise: (() -> Reply?)?
    ) throws(Problem) -> Reply? {
        let world = owner.world
        if !candidates.isEmpty {
            guard let query = QueryString(parsing: Array(request.query ?? [])) else { throw Self.invalidQuery }
            // Credentials are those of the user's own API.
            let call = Call(
                request: request,
                exchange: exchange,
                owner: owner,
                parameters: [],
                session: nil,
                query: query
            )
            if let answer = try call.answer(candidates) { return answer }
        }
        // A preflight for a route is answered here.
        let isPreflighted = request.preflightedMethod.map { method in
            candidates.contains { $0.route.accepts(method) }
        }
        if let otherwise, !(isPreflighted ?? false) {
            if let reply = otherwise() { exchange.complete(reply) }
            return nil
        }
        // A preflight of a path without a collection is answered, so that a page can read the 404 of its request.
        let reason =
            request.method == .options ? nil : reasonNoCollection(request.method, request.pathText, in: world)
        var match = reason == nil ? router(of: world).match(request.method, path: request.path) : .none
        let methods = candidates.methods
        let describesDemo = servesDemo && !world.hasCollections
        switch match {
        case .route: break
        case .otherMethods(let others): match = .otherMethods(others + methods)
        case .none: if !methods.isEmpty { match = .otherMethods(methods) }
        }
        switch match {
        case .route(let route, let parameters): return try answer(request, exchange, owner, route, parameters)
        case .otherMethods(let methods):
            if candidates.contains(where: { $0.route.accepts(request.method) }) {
                throw ProblemType.notFound(
                    "No route for \(request.method) \(request.pathText.prefix(200)) has conditions that this request meets."
                )
            }
            let allowed = CrossOrigin.allowed(methods)
            if request.method == .options {
                let tus = describesDemo ? UploadEndpoints.tusFields(request.pathText) : [:]
                return CrossOrigin.preflight(allowed, tus, to: request)
            }
            throw ProblemType.methodNotAllowed(
                "\(request.method) is not allowed.",
                fields: [.allow: allowed]
            )
        case .none:
            if let reason { throw ProblemType.notFound(reason) }
            if let document = try DocumentationEndpoints.answer(
                request,
                now: world.clock.now,
                describesDemo: describesDemo
            ) {
                return document
            }
            throw ProblemType.notFound(reasonMissing(request.method, request.pathText, in: world))
        }
    }

    private func answer(
        _ request: Request,
        _ exchange: Exchange,
        _ owner: WorldExchange,
        _ route: Route,
        _ parameters: [String]
    ) throws(Problem) -> Reply? {
        var session: SessionRow?
        if case .ignored = route.authentication {} else { session = try owner.session(request) }
        let world = owner.world
        if case .required = route.authentication, session == nil {
            throw ProblemType.unauthenticated(
                "\(route.template) is personal.",
                fields: Authenticator.challenge(nil)
            )
        }
        let isCached =
            (request.method == .get || request.method == .head) && owner.deviations.past == nil && world.cache.isEnabled
            && Negotiation.acceptsJSON(request)
        let version =
            isCached
            ? ResponseCache.Version(viewer: session?.user ?? 0, target: request.targetText, stamp: world.stamp) : nil
        if let version, let known = world.cache.find(version) { return known.reply(to: request, now: world.clock.now) }
        guard let query = QueryString(parsing: Array(request.query ?? [])) else { throw Self.invalidQuery }
        let call = Call(
            request: request,
            exchange: exchange,
            owner: owner,
            parameters: parameters,
            session: session,
            query: query,
            version: version
        )
        return try route.answer(call)
    }

    private static var invalidQuery: Problem {
        ProblemType.invalidParameter("The query is not valid percent-encoded UTF-8.")
    }

    /// Whether a route accepts the method on the path.
    package func serves(_ method: Method, _ path: ArraySlice<UInt8>, in world: World) -> Bool {
        if customRoutes.accept(method, path) { return true }
        return if case .route = router(of: world).match(method, path: path) { true } else { false }
    }

    func router(of world: World) -> Router {
        world.hasCollections ? collectionRouter : servesDemo ? router : Self.noRoutes
    }

    private static let noRoutes = Router([])

    // MARK: Rejections and records

    package func rejected(_ rejection: Rejection) -> Reply {
        let type: ProblemType =
            switch rejection.reason {
            case .malformed: .malformedRequest
            case .headTooLarge: .fieldsTooLarge
            case .targetTooLong: .uriTooLong
            case .bodyTooLarge: .contentTooLarge
            case .timeout: .requestTimeout
            case .unsupportedExpectation: .expectationFailed
            case .unsupportedTransferCoding: .notImplemented
            case .unsupportedVersion: .versionNotSupported
            case .tooManyConnections: .unavailable
            case .unsupportedWebSocketVersion: .upgradeRequired
            }
        var fields: Fields = [.contentType: "application/problem+json", .cacheControl: "no-store"]
        switch rejection.reason {
        case .tooManyConnections: fields.add(.retryAfter, "1")
        case .unsupportedWebSocketVersion:
            // A 426 must list the supported protocols, and `Upgrade` must be listed in `Connection` (RFC 9110 §15.5.22, §7.8).
            fields.add(.upgrade, "websocket")
            fields.add(.connection, "upgrade")
        default: break
        }
        return Reply(status: type.status, fields: fields, body: .bytes(type(rejection.detail).encoded()))
    }
}
