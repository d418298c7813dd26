import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime

/// Under which conditions a request is answered, where they are not the usual ones.
struct Conditions: Sendable {
    /// Reads see the state as it was.
    var past: StateHistory.Limit?
    /// What becomes of the frames of a live channel.
    var live: LiveFilter?
    /// Whether the request came from inside, so that there is no turn of a loop to share a commit in.
    var isDetached = false
    /// Whether the request's idempotency key is taken for it already.
    var holdsKey = false
    /// Whether the engine may give the reply to the same bytes again by itself.
    var mayStand = false

    /// Whether replies that were built before may be used.
    var allowsCache: Bool { past == nil }
}

/// Answers HTTP requests out of a world: finds who asks and what for, and turns what comes out into a reply.
///
/// It keeps nothing but its routes. Safe from any thread.
struct Backend: Sendable {
    private let router = Router(Self.routes)

    static let routes: [Route] =
        SessionEndpoints.routes + ProfileEndpoints.routes + FeedEndpoints.routes + LikeEndpoints.routes
        + BankEndpoints.routes + ChatEndpoints.routes + ImageEndpoints.routes + ChangeEndpoints.routes
        + LiveEndpoints.routes

    // MARK: Requests

    /// Answers a request out of a world, or returns nil and completes the exchange later.
    func handle(
        _ request: Request,
        _ exchange: Exchange,
        _ world: World,
        _ conditions: Conditions = Conditions()
    ) -> Reply? {
        // Fields that belong to this exchange alone are added at the end, to whatever reply was found.
        var extra = CrossOrigin.lines(for: request)
        // A refused preflight would keep the page from being told the limit by the request behind it.
        if let limiter = world.limiter, !request.isPreflight {
            let dialect = world.control.current.dialect.rateLimit
            let verdict = limiter.take(caller(request, world), now: world.clock.now)
            RateLimitFields.append(verdict, limiter, dialect, now: world.clock.now, to: &extra)
            guard verdict.isAllowed else {
                var refusal = RateLimitFields.refusal(verdict).reply.adding(extra)
                refusal.note.owner = world
                return refusal
            }
        }
        if conditions.allowsCache, world.cache.isEnabled, let reply = repeated(request, world, extra, conditions) {
            return reply
        }
        let trace = CallTrace()
        var result: Reply
        do {
            switch try answer(request, exchange, world, conditions, trace) {
            case .representation(let representation): result = reply(representation, request, extra, world)
            case .reply(let reply): result = reply.adding(extra)
            case .later: return nil
            }
        } catch { result = error.reply.adding(extra) }
        result.note.owner = world
        result.note.subject = trace.viewer
        result.note.effect = trace.commit
        // What was written is told of only when it is committed.
        guard let batch = trace.batch else { return result }
        switch world.holdBack(result, exchange, batch: batch) {
        case .held: return nil
        case .free: return result
        case .lost(let refusal): return refusal.adding(extra)
        }
    }

    /// A read that was answered before and of which nothing has changed since.
    private func repeated(
        _ request: Request,
        _ world: World,
        _ extra: [UInt8],
        _ conditions: Conditions
    ) -> Reply? {
        guard request.method == .get || request.method == .head, Negotiation.acceptsJSON(request) else { return nil }
        // Both taken before what they vouch for is looked up.
        let (stamps, endings) = (StampSnapshot(world.stamp), world.authenticator.endings)
        let session: SessionRow?
        // What the credentials lack is told where everything else is.
        do { session = try self.session(request, world) } catch { return nil }
        let viewer = session?.user ?? 0
        guard let known = world.cache.find(key(request, viewer: viewer)) else { return nil }
        var reply = reply(known, request, extra, world)
        reply.note.owner = world
        reply.note.subject = viewer
        // A reply to conditions that name dates could be another one tomorrow.
        if case .prepared(let prepared, let extra) = reply.content, conditions.mayStand, request.method == .get,
            world.limiter == nil,
            !request.hasConditions || prepared.status == .notModified && request.hasTagAlone
        {
            reply.standing = RepeatedRead(
                world,
                request,
                session,
                known.dependencies,
                prepared,
                extra: extra,
                stamps: stamps,
                sessionEndings: endings
            )
        }
        return reply
    }

    private func answer(
        _ request: Request,
        _ exchange: Exchange,
        _ world: World,
        _ conditions: Conditions,
        _ trace: CallTrace
    ) throws(Problem) -> Answer {
        switch router.match(request.method, path: request.path) {
        case .route(let route, let parameters):
            return try answer(request, exchange, world, conditions, trace, route, parameters)
        case .otherMethods(let methods):
            let allowed = CrossOrigin.allowed(methods)
            if request.method == .options { return .reply(CrossOrigin.preflight(allowed)) }
            throw ProblemType.methodNotAllowed(
                "\(request.method) is not among them.",
                fields: [.allow: allowed]
            )
        case .none:
            if let document = try DocumentationEndpoints.answer(request) { return document }
            throw ProblemType.notFound("Nothing is at \(String(request.pathText.prefix(200))).")
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
        guard let query = CallQuery(request) else {
            throw ProblemType.invalidParameter("The query is not well-formed percent-encoded UTF-8.")
        }
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
        // Taken before the state is read: an entry that is stamped too old is only built once more.
        let answer: Answer
        if request.method == .get || request.method == .head {
            let stamps = StampSnapshot(world.stamp)
            answer = try route.answer(&call)
            if case .representation(let representation) = answer {
                guard Negotiation.acceptsJSON(request) else {
                    throw ProblemType.notAcceptable("The resource is application/json.")
                }
                if representation.isReusable, conditions.allowsCache, world.cache.isEnabled {
                    world.cache.store(
                        representation,
                        for: key(request, viewer: session?.user ?? 0),
                        stamp: stamps.value(of: representation.dependencies)
                    )
                }
            }
        } else {
            answer = try route.answer(&call)
        }
        return answer
    }

    /// Whether a route takes the method on the path.
    func serves(_ method: Method, _ path: ArraySlice<UInt8>) -> Bool {
        if case .route = router.match(method, path: path) { true } else { false }
    }

    private func key(_ request: Request, viewer: Int64) -> ResponseCache.Key {
        request.withTarget { ResponseCache.Key(viewer: viewer, target: $0) }
    }

    /// The representation, or what the request's conditions make of it (RFC 9110 §13.2).
    private func reply(
        _ representation: Representation,
        _ request: Request,
        _ extra: [UInt8],
        _ world: World
    ) -> Reply {
        guard request.hasConditions else { return .prepared(representation.full, extra: extra) }
        // The tag alone, as caches send it, needs no parsing.
        if request.hasTagAlone, let range = request.fields.range(of: "if-none-match"),
            representation.isTagged(request.head[range])
        {
            return .prepared(representation.notModified, extra: extra)
        }
        let outcome = Preconditions(request).evaluate(
            method: request.method,
            exists: true,
            entityTag: representation.entityTag,
            lastModified: representation.lastModified,
            now: world.clock.now
        )
        switch outcome {
        case .proceed: return .prepared(representation.full, extra: extra)
        case .notModified: return .prepared(representation.notModified, extra: extra)
        case .preconditionFailed:
            return ProblemType.preconditionFailed(
                "The condition does not hold for the current representation.",
                fields: [.etag: representation.entityTag.description]
            ).reply.adding(extra)
        }
    }

    /// Who asks, by the bearer token. Where browsers can set no fields (WebSocket, EventSource) the token may stand in the
    /// query (RFC 6750 §2.3).
    func session(_ request: Request, _ world: World) throws(Problem) -> SessionRow? {
        if let range = request.fields.range(of: "authorization") {
            return try world.authenticator.session(bearing: request.head.span.extracting(range), in: world)
        }
        guard request.path.starts(with: "/v1/live".utf8), let query = QueryString(parsing: Array(request.query ?? [])),
            let token = query.first("access_token")
        else { return nil }
        return try world.authenticator.session(token: Array(token.utf8), in: world)
    }

    private func caller(_ request: Request, _ world: World) -> String {
        // Who cannot be told is counted by address; what the credentials lack is told where everything else is.
        if let session = try? session(request, world) { return "user \(session.user)" }
        return request.peer.host
    }

    // MARK: What is no request, and what is over

    func refused(_ refusal: Refusal) -> Response {
        let type: ProblemType =
            switch refusal.reason {
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
        switch refusal.reason {
        case .tooManyConnections: fields.add(.retryAfter, "1")
        case .unsupportedWebSocketVersion:
            // A 426 must name what is spoken, and a field about this connection alone is named by it (RFC 9110 §15.5.22, §7.8).
            fields.add(.upgrade, "websocket")
            fields.add(.connection, "upgrade")
        default: break
        }
        return Response(status: type.status, fields: fields, body: .bytes(type(refusal.detail).encoded()))
    }
}

extension Request {
    /// Whether any condition of RFC 9110 §13.1 is stated.
    var hasConditions: Bool {
        fields.range(of: "if-none-match") != nil || fields.range(of: "if-modified-since") != nil
            || fields.range(of: "if-match") != nil || fields.range(of: "if-unmodified-since") != nil
    }

    /// Whether `If-None-Match` is all that there is to evaluate: it makes `If-Modified-Since` void (RFC 9110 §13.1.3).
    var hasTagAlone: Bool {
        fields.range(of: "if-none-match") != nil && fields.range(of: "if-match") == nil
            && fields.range(of: "if-unmodified-since") == nil
    }
}

extension Reply {
    /// The reply with further field lines.
    func adding(_ lines: [UInt8]) -> Reply {
        guard !lines.isEmpty else { return self }
        var changed = self
        switch content {
        case .response(let response):
            if case .file = response.body {
                var response = response
                for (name, value) in Self.fields(in: lines) { response.fields.add(name, value) }
                changed.content = .response(response)
                return changed
            }
            let body: [UInt8] = if case .bytes(let bytes) = response.body { bytes } else { [] }
            let prepared = PreparedResponse(status: response.status, head: response.serializedHead(), body: body)
            changed.content = .prepared(prepared, extra: lines)
        case .prepared(let prepared, let extra): changed.content = .prepared(prepared, extra: extra + lines)
        case .eventStream(var fields, let handler):
            for (name, value) in Self.fields(in: lines) { fields.add(name, value) }
            changed.content = .eventStream(fields, handler)
        case .webSocket: break
        }
        return changed
    }

    private static func fields(in lines: [UInt8]) -> [(FieldName, String)] {
        String(decoding: lines, as: UTF8.self).split(separator: "\r\n").compactMap { line in
            let parts = line.split(separator: ":", maxSplits: 1)
            guard parts.count == 2, let name = FieldName(String(parts[0])) else { return nil }
            return (name, String(parts[1].drop { $0 == " " }))
        }
    }
}
