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
        var extra = CrossOrigin.lines(for: request)
        // A preflight is not limited: a page whose preflight fails is not shown the 429.
        if let limiter = world.limiter, !request.isPreflight {
            let verdict = limiter.take(caller(request, world), now: world.clock.now)
            RateLimitFields.append(verdict, limiter, to: &extra)
            guard verdict.isAllowed else {
                var rejection = RateLimitFields.rejection(verdict).reply.adding(extra)
                rejection.note.owner = world
                return rejection
            }
        }
        let candidates = customRoutes.candidates(request.path)
        let trace = CallTrace()
        var result: Reply
        do {
            switch try answer(request, exchange, world, conditions, trace, candidates) {
            case .representation(let representation): result = reply(representation, request, world).adding(extra)
            case .reply(let reply): result = reply.adding(extra)
            case .later: return nil
            }
        } catch { result = error.reply.adding(extra) }
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
    ) throws(Problem) -> Answer {
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
            if request.method == .options { return .reply(CrossOrigin.preflight(allowed, to: request)) }
            throw ProblemType.methodNotAllowed(
                "\(request.method) is not allowed.",
                fields: [.allow: allowed]
            )
        case .none:
            if let document = try DocumentationEndpoints.answer(request, describesDemo: servesDemo) { return document }
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
    ) throws(Problem) -> Answer {
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
        // Taken before the state is read: an entry with an older stamp is only rebuilt once more.
        let stamp = world.stamp
        if isCached, let known = world.cache.find(key(request, viewer: trace.viewer), stamp: stamp) {
            return .representation(known)
        }
        guard let query = QueryString(parsing: Array(request.query ?? [])) else { throw Self.invalidQuery }
        var call = Call(
            request: request,
            exchange: exchange,
            world: world,
            parameters: parameters,
            session: session,
            query: query,
            conditions: conditions,
            trace: trace
        )
        let answer = try route.answer(&call)
        if case .representation(let representation) = answer {
            guard Negotiation.acceptsJSON(request) else {
                throw ProblemType.notAcceptable("The resource is application/json.")
            }
            if isCached, representation.isReusable {
                world.cache.store(representation, for: key(request, viewer: trace.viewer), stamp: stamp)
            }
        }
        return answer
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

    private func key(_ request: Request, viewer: Int64) -> ResponseCache.Key {
        request.withTarget { ResponseCache.Key(viewer: viewer, target: $0) }
    }

    /// The representation, or the reply that the request's conditions require (RFC 9110 §13.2).
    private func reply(
        _ representation: Representation,
        _ request: Request,
        _ world: World
    ) -> Reply {
        let coding = representation.isNegotiated ? Negotiation.coding(request) : nil
        guard request.hasConditions else { return full(representation, coding, request) }
        // A single entity tag, as caches send it, needs no parsing: a 304 is not slower than a 200.
        if request.hasTagAlone, let range = request.fields.range(of: "if-none-match"),
            representation.isTagged(request.head[range])
        {
            return .response(representation.notModified(nil))
        }
        let conditions = Preconditions(request)
        func outcome(_ codings: [ContentCoding]) -> PreconditionOutcome {
            conditions.evaluate(
                method: request.method,
                exists: true,
                entityTag: representation.entityTag,
                codings: codings,
                lastModified: representation.lastModified,
                now: world.clock.now
            )
        }
        switch outcome(coding.map { [$0] } ?? []) {
        case .proceed: return full(representation, coding, request)
        case .notModified:
            // The 304 has the tag that matched, so that the client's cache finds what it confirms. Without a tag in the condition it
            // has the tag that the 200 would have.
            let hasTag = request.fields.combined(.ifNoneMatch).map { $0.contains("\"") } ?? false
            let matched = hasTag && outcome([]) == .notModified ? nil : coding
            return .response(representation.notModified(matched))
        case .preconditionFailed:
            return ProblemType.preconditionFailed(
                "The condition does not hold for the current representation.",
                fields: [.etag: representation.entityTag.description]
            ).reply
        }
    }

    private func full(_ representation: Representation, _ coding: ContentCoding?, _ request: Request) -> Reply {
        let response = representation.full(coding)
        var reply = Reply.response(response)
        if request.method != .head { reply.note.bytesSavedByCoding = response.bytesSavedByCoding }
        return reply
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

    package func rejected(_ rejection: Rejection) -> Response {
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
        return Response(status: type.status, fields: fields, body: .bytes(type(rejection.detail).encoded()))
    }
}

extension Request {
    /// Whether the request has any condition of RFC 9110 §13.1.
    var hasConditions: Bool {
        fields.range(of: "if-none-match") != nil || fields.range(of: "if-modified-since") != nil
            || fields.range(of: "if-match") != nil || fields.range(of: "if-unmodified-since") != nil
    }

    /// Whether only `If-None-Match` must be evaluated: it overrides `If-Modified-Since` (RFC 9110 §13.1.3).
    var hasTagAlone: Bool {
        fields.range(of: "if-none-match") != nil && fields.range(of: "if-match") == nil
            && fields.range(of: "if-unmodified-since") == nil
    }
}
