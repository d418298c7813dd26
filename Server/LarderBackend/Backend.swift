import LarderCoding
package import LarderEngine
package import LarderHTTP
import LarderTime

/// Answers HTTP requests from the state of a world.
///
/// It holds only its routes: those of the demo API or of collections, and custom ones, which are asked first. Safe from any thread.
package struct Backend: Sendable {
    package let customRoutes = CustomRoutes()
    /// Whether a world without collections has the demo API.
    package let servesDemo: Bool

    package init(servesDemo: Bool) { self.servesDemo = servesDemo }

    // MARK: Requests

    /// Answers a request, or returns nil and completes the exchange later. The request has no prefix of a world.
    ///
    /// - Parameter otherwise: completes an exchange that no custom route answers, instead of the world; nil: the world does.
    package func handle(
        _ request: Request,
        _ exchange: Exchange,
        _ owner: WorldExchange,
        otherwise: (() -> Void)? = nil
    ) -> Reply? {
        let own = owner.customRoutes
        if let otherwise, own.isEmpty {
            otherwise()
            return nil
        }
        // Fields of this exchange alone are added last, to whichever reply is found, now or later.
        var (crossOrigin, limits) = (CrossOrigin.lines(for: request), [UInt8]())
        var result: Reply
        do {
            try limit(request, owner, &limits)
            let inner = exchange.adding(crossOrigin + limits)
            var found: Reply?
            // The first custom route whose conditions hold.
            for match in own.answering(request) where found == nil {
                found = try match.route.answer(Call(request, inner, owner, match))
            }
            if found == nil {
                // A preflight for a route is answered here.
                if let otherwise, request.preflightedMethod.map({ own.accepting($0).isEmpty }) ?? true {
                    otherwise()
                    return nil
                }
                let version = ResponseCache.Version(request, owner)
                if let known = version.flatMap({ owner.world.cache.find($0) }), owner.adopt(known.session) {
                    found = known.representation.reply(to: request, now: owner.world.clock.now)
                } else {
                    found = try answer(request, inner, owner, version)
                }
            }
            guard let reply = found else { return nil }
            result = reply
        } catch { result = error.reply }
        // The fields of a custom route are not known in advance.
        if !own.isEmpty { crossOrigin = CrossOrigin.lines(for: request, reading: result.head) }
        result = result.adding(crossOrigin + limits)
        guard !own.isEmpty, let sequel = owner.sequel.take() else { return result }
        if owner.deviations.isDetached {
            sequel.send(on: exchange.loop, owner.world.clock, customRoutes.webhooks)
            return result
        }
        sequel.follow(exchange, owner.world, customRoutes.webhooks).complete(result)
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
        // The fields of draft-ietf-httpapi-ratelimit-headers-10.
        let policy = #"RateLimit-Policy: "default";q=\#(limiter.quota);w=\#(limiter.windowSeconds)"#
        let left = #"RateLimit: "default";r=\#(verdict.remaining);t=\#(verdict.secondsToReset)"#
        addedLines += Array("\(policy)\r\n\(left)\r\n".utf8)
        guard verdict.isAllowed else {
            throw ProblemType.rateLimited(
                "The quota is used up; it is reset in \(verdict.secondsToReset) s.",
                fields: [.retryAfter: String(verdict.secondsToReset)]
            )
        }
    }

    /// Answers a request that no custom route answers and whose reply is not in the cache.
    ///
    /// - Parameter version: what the reply is stored for; nil if it is not.
    private func answer(
        _ request: Request,
        _ exchange: Exchange,
        _ owner: WorldExchange,
        _ version: ResponseCache.Version?
    ) throws(Problem) -> Reply? {
        let (world, own) = (owner.world, owner.customRoutes)
        // A preflight of a path without a collection is answered, so that a page can read the 404 of its request.
        let reason =
            world.hasCollections && request.method != .options
            ? reasonNoCollection(request.method, request.pathText, in: world) : nil
        let matches = reason == nil ? routes(of: world).matches(request.path) : []
        // A list takes other methods than a document at the same path.
        if let match = matches.accepting(request.method).first,
            request.method.isSafe || methods(of: matches, in: world).contains(request.method)
        {
            return try match.route.answer(Call(request, exchange, owner, match, version))
        }
        // A path that only a custom route serves has no collection.
        let isOwn = !own.isEmpty && reasonNoCollection(.get, request.pathText, in: world) != nil
        let methods = own.methods + (isOwn ? [] : self.methods(of: matches, in: world))
        let describesDemo = servesDemo && !world.hasCollections
        guard methods.isEmpty else {
            if !own.answering(request).isEmpty {
                throw ProblemType.notFound(
                    "No route for \(request.method) \(request.pathText.prefix(200)) has conditions that this request meets."
                )
            }
            let tus = describesDemo ? UploadEndpoints.tusFields(request.pathText) : [:]
            return try CrossOrigin.options(methods, request, adding: tus)
        }
        if let reason { throw ProblemType.notFound(reason) }
        let document = try DocumentationEndpoints.answer(
            request,
            now: world.clock.now,
            describesDemo: describesDemo
        )
        if let document { return document }
        throw ProblemType.notFound(reasonMissing(request.method, request.pathText, in: world))
    }

    package func serves(_ method: Method, _ path: ArraySlice<UInt8>, in world: World) -> Bool {
        !(customRoutes.routes + routes(of: world)).matches(path).accepting(method).isEmpty
    }

    func routes(of world: World) -> [Route] {
        world.hasCollections ? CollectionEndpoints.routes : servesDemo ? APIRoutes.all : []
    }

    // MARK: Rejections and records

    package func rejected(_ rejection: Rejection) -> Reply {
        let type = ProblemType.first(rejection.status) ?? .malformedRequest
        var fields: Fields = [.contentType: "application/problem+json", .cacheControl: "no-store"]
        if type == .unavailable { fields.add(.retryAfter, "1") }
        if type == .upgradeRequired {
            // A 426 must list the supported protocols, and `Upgrade` must be listed in `Connection` (RFC 9110 §15.5.22, §7.8).
            fields.add(.upgrade, "websocket")
            fields.add(.connection, "upgrade")
        }
        return Reply(status: type.status, fields: fields, body: .bytes(type(rejection.detail).encoded()))
    }
}
