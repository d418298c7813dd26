import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime

/// The reply of a custom route to one request, with the values of its templates.
private struct RenderedReply: Sendable {
    let status: Status
    var fields: Fields
    let body: [UInt8]
    let sequel: ReplySequel?
}

extension Call {
    /// The reply of the first custom route that accepts the method and whose conditions hold; nil if there is none.
    func answer(_ candidates: [CustomRoutes.Candidate]) throws(Problem) -> Reply? {
        let candidates = candidates.filter { $0.route.accepts(request.method) }
        guard !candidates.isEmpty else { return nil }
        func render(_ store: Store, writes: Bool) throws -> RenderedReply? {
            let call = RouteCall(request, query: query, in: world, store, writes: writes)
            for candidate in candidates {
                call.path = candidate.parameters
                if let reply = try candidate.route.reply(call) { return try reply.rendered(call) }
            }
            return nil
        }
        if !request.method.isSafe, request.fields[.idempotencyKey] != nil {
            return try answerOnce { try render($0, writes: true) }
        }
        // Most replies change no kept value. Another one is made again, in a transaction.
        var changes = false
        var rendered = try read { store in
            do { return try render(store, writes: false) } catch is RouteCall.Changes {
                changes = true
                return nil
            }
        }
        if changes { rendered = try write { store, _ in try render(store, writes: true) } }
        guard let rendered else { return nil }
        owner.sequel = rendered.sequel
        guard rendered.status == .ok, request.method == .get || request.method == .head else {
            let body: Reply.Body = rendered.body.isEmpty ? .empty : .bytes(rendered.body)
            return Reply(status: rendered.status, fields: rendered.fields, body: body)
        }
        let type = rendered.fields[.contentType] ?? ""
        return Representation(
            .bytes(rendered.body),
            rendered.fields,
            .strong(contentOf: rendered.body.span),
            isText: ["text/", "json", "xml", "javascript"].contains { type.contains($0) }
        ).reply(to: request, now: world.clock.now)
    }

    /// Renders the reply at most once for the request's idempotency key; nil if no route fits.
    private func answerOnce(_ render: (Store) throws -> RenderedReply?) throws(Problem) -> Reply? {
        var fits = true
        do throws(Problem) {
            return try Idempotency.run(self, isKeyRequired: false) { store, _ in
                guard var rendered = try render(store) else {
                    fits = false
                    throw ProblemType.notFound("No route fits.")
                }
                owner.sequel = rendered.sequel
                rendered.fields.set(.cacheControl, "no-store")
                rendered.fields.set(.vary, "Authorization, Origin")
                return Reply(status: rendered.status, fields: rendered.fields, body: .bytes(rendered.body))
            }
        } catch {
            guard !fits else { throw error }
            return nil
        }
    }
}

extension CustomRoute {
    /// The reply to send; nil if a condition does not hold.
    fileprivate func reply(_ call: RouteCall) throws -> CustomReply? {
        guard try conditions.allSatisfy({ try $0.holds(call) }) else { return nil }
        let fitting = try replies.filter { try $0.conditions.allSatisfy { try $0.holds(call) } }
        guard fitting.count > 1 else { return fitting.first }
        switch order {
        case .first: return fitting.first
        case .sequence: return fitting[min(Int(try call.count("order " + name)), fitting.count) - 1]
        case .cycle: return fitting[Int((try call.count("order " + name) - 1) % Int64(fitting.count))]
        case .random:
            var left = try call.draw("order " + name) * Double(fitting.reduce(0) { $0 + $1.weight })
            return fitting.first { reply in
                left -= Double(reply.weight)
                return left < 0
            } ?? fitting.last
        }
    }
}

extension CustomReply {
    fileprivate func rendered(_ call: RouteCall) throws -> RenderedReply {
        var (body, type) = try self.body.rendered(call)
        var fields = Fields()
        if case .none = self.body, status.code >= 400 { (body, type) = (problem(nil).encoded(), Self.problemType) }
        if case .problem(let detail) = self.body { body = problem(try detail.text(call)).encoded() }
        if let type = mediaType ?? type { fields.set(.contentType, type) }
        fields.set(.cacheControl, status == .ok && call.request.method.isSafe ? "no-cache" : "no-store")
        fields.set(.vary, "Origin")
        var known: Set<FieldName> = []
        for (name, value) in self.fields {
            let text = try value.text(call)
            // A name that is given twice, such as `Set-Cookie`, is sent twice.
            if known.insert(name).inserted { fields.set(name, text) } else { fields.add(name, text) }
        }
        for (name, value) in states { try call.setState(name, try value.text(call)) }
        var sequel: ReplySequel?
        if delay != nil || !webhooks.isEmpty {
            var seconds = delay?.lowerBound ?? 0
            if let delay, delay.upperBound > delay.lowerBound {
                seconds += try call.draw("delay") * (delay.upperBound - delay.lowerBound)
            }
            sequel = ReplySequel(delay: .seconds(seconds), webhooks: try webhooks.map { try $0.rendered(call) })
        }
        return RenderedReply(status: status, fields: fields, body: status.hasNoContent ? [] : body, sequel: sequel)
    }

    private static let problemType = "application/problem+json"

    private func problem(_ detail: String?) -> Problem {
        Problem(type: "about:blank", title: status.reasonPhrase, status: status, detail: detail)
    }
}

extension CustomReply.Body {
    fileprivate func rendered(_ call: RouteCall) throws -> (bytes: [UInt8], mediaType: String?) {
        switch self {
        case .none: ([], nil)
        case .json(let template): ((try template.value(call)).encoded, "application/json")
        case .text(let template): (Array(try template.text(call).utf8), "text/plain; charset=utf-8")
        case .bytes(let bytes): (bytes, nil)
        case .problem: ([], "application/problem+json")
        }
    }
}

extension CustomReply.Webhook {
    fileprivate func rendered(_ call: RouteCall) throws -> ReplySequel.Request {
        let (content, type) = try body.rendered(call)
        var head = "\(method) \(url.target) HTTP/1.1\r\nHost: \(url.authority)\r\n"
        var all: Fields = ["User-Agent": "larder-server", "Content-Length": String(content.count)]
        if let type { all.set(.contentType, type) }
        for (name, value) in fields { all.set(name, try value.text(call)) }
        for field in all { head += "\(field.name): \(field.value)\r\n" }
        return ReplySequel.Request(
            address: address,
            request: UpstreamRequest(method: method, bytes: Array((head + "\r\n").utf8) + content),
            delay: delay
        )
    }
}
