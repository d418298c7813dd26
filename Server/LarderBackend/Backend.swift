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

    /// Answers a request, or returns nil and completes the exchange later.
    package func handle(
        _ request: Request,
        _ exchange: Exchange,
        _ world: World,
        _ conditions: Conditions = Conditions()
    ) -> Reply? {
        // Fields of this exchange alone are added last, to whichever reply is found.
        var addedLines = CrossOrigin.lines(for: request)
        // A preflight is not limited: a page whose preflight fails is not shown the 429.
        if let limiter = world.limiter, !request.isPreflight {
            let verdict = limiter.take(caller(request, world), now: world.clock.now)
            RateLimitFields.append(verdict, limiter, to: &addedLines)
            guard verdict.isAllowed else {
                var rejection = RateLimitFields.rejection(verdict).reply.adding(addedLines)
                rejection.note.owner = world
                return rejection
            }
        }
        let candidates = customRoutes.candidates(request.path)
        let trace = CallTrace()
        var result: Reply
        do {
            guard let reply = try answer(request, exchange, world, conditions, trace, candidates) else { return nil }
            result = reply.adding(addedLines)
        } catch { result = error.reply.adding(addedLines) }
        result.note.owner = world
        result.note.subject = trace.viewer
        result.note.effect = trace.commit
        guard let sequel = trace.sequel else { return result }
        sequel.follow(exchange, world, customRoutes).complete(result)
        return nil
    }

    private func answer(
        _ request: Request,
        _ exchange: Exchange,
        _ world: World,
        _ conditions: Conditions,
        _ trace: CallTrace,
        _ candidates: [CustomRoutes.Candidate]
    ) throws(Problem) -> Reply? {
        if !candidates.isEmpty {
            guard let query = QueryString(parsing: Array(request.query ?? [])) else { throw Self.invalidQuery }
            // Credentials are those of the user's own API.
            let call = Call(
                request: request,
                exchange: exchange,
                world: world,
                parameters: [],
                session: nil,
                query: query,
                conditions: conditions,
                trace: trace
            )
            if let answer = try call.answer(candidates) { return answer }
        }
        var match = router(of: world).match(request.method, path: request.path)
        let methods = candidates.methods
        switch match {
        case .route: break
        case .otherMethods(let others): match = .otherMethods(others + methods.filter { !others.contains($0) })
        case .none: if !methods.isEmpty { match = .otherMethods(methods) }
        }
        switch match {
        case .route(let route, let parameters):
            return try answer(request, exchange, world, conditions, trace, route, parameters)
        case .otherMethods(let methods):
            if candidates.contains(where: { $0.route.accepts(request.method) }) {
                throw ProblemType.notFound(
                    "No route for \(request.method) \(request.pathText.prefix(200)) has conditions that this request meets."
                )
            }
            let allowed = CrossOrigin.allowed(methods)
            if request.method == .options { return CrossOrigin.preflight(allowed, to: request) }
            throw ProblemType.methodNotAllowed(
                "\(request.method) is not allowed.",
                fields: [.allow: allowed]
            )
        case .none:
            if let document = try DocumentationEndpoints.answer(
                request,
                now: world.clock.now,
                describesDemo: servesDemo
            ) {
                return document
            }
            if !servesDemo, !world.hasCollections {
                throw ProblemType.notFound(customRoutes.reasonMissing(request.method, request.pathText))
            }
            throw ProblemType.notFound("There is no resource at \(String(request.pathText.prefix(200))).")
        }
    }

    private func answer(
        _ request: Request,
        _ exchange: Exchange,
        _ world: World,
        _ conditions: Conditions,
        _ trace: CallTrace,
        _ route: Route,
        _ parameters: [String]
    ) throws(Problem) -> Reply? {
        var session: SessionRow?
        if case .ignored = route.authentication {} else { session = try self.session(request, world) }
        trace.viewer = session?.user ?? 0
        if case .required = route.authentication, session == nil {
            throw ProblemType.unauthenticated(
                "\(route.template) is personal.",
                fields: Authenticator.challenge(nil)
            )
        }
        let isCached =
            (request.method == .get || request.method == .head) && conditions.allowsCache && world.cache.isEnabled
            && Negotiation.acceptsJSON(request)
        let version = isCached ? version(of: request, in: world, viewer: trace.viewer) : nil
        if let version, let known = world.cache.find(version) { return known.reply(to: request, now: world.clock.now) }
        guard let query = QueryString(parsing: Array(request.query ?? [])) else { throw Self.invalidQuery }
        var call = Call(
            request: request,
            exchange: exchange,
            world: world,
            parameters: parameters,
            session: session,
            query: query,
            conditions: conditions,
            version: version,
            trace: trace
        )
        return try route.answer(&call)
    }

    private static var invalidQuery: Problem {
        ProblemType.invalidParameter("The query is not valid percent-encoded UTF-8.")
    }

    /// Whether a route accepts the method on the path.
    package func serves(_ method: Method, _ path: ArraySlice<UInt8>, in world: World) -> Bool {
        if customRoutes.candidates(path).contains(where: { $0.route.accepts(method) }) { return true }
        return if case .route = router(of: world).match(method, path: path) { true } else { false }
    }

    func router(of world: World) -> Router {
        world.hasCollections ? collectionRouter : servesDemo ? router : Self.noRoutes
    }

    private static let noRoutes = Router([])

    private func version(of request: Request, in world: World, viewer: Int64) -> ResponseCache.Version {
        let key = request.withTarget { ResponseCache.Key(viewer: viewer, target: $0) }
        return ResponseCache.Version(key: key, stamp: world.stamp)
    }

    /// The session of the bearer token. Browsers cannot set fields on WebSocket and EventSource requests, so the token may be
    /// in the query there (RFC 6750 §2.3).
    package func session(_ request: Request, _ world: World) throws(Problem) -> SessionRow? {
        if let range = request.fields.range(of: "authorization") {
            return try Authenticator.session(bearing: request.head.span.extracting(range), in: world)
        }
        guard request.path.starts(with: "/v1/live".utf8), let query = QueryString(parsing: Array(request.query ?? [])),
            let token = query.first("access_token")
        else { return nil }
        return try Authenticator.session(token: Array(token.utf8), in: world)
    }

    private func caller(_ request: Request, _ world: World) -> String {
        // A caller with invalid credentials is counted by address; the regular path reports the credentials.
        if let session = try? session(request, world) { return "user \(session.user)" }
        return request.peer.host
    }

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
