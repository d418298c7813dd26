import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime

extension Call {
    /// The reply of a custom route; nil if its conditions do not hold.
    ///
    /// A request that may change something and has an idempotency key is answered once for its key.
    func answer(_ route: CustomRoute) throws(Problem) -> Reply? {
        func render(_ store: Store, _ changes: RouteCall.Changes) throws -> Reply? {
            let call = RouteCall(request, query: query, in: world, store, changes)
            call.path = Dictionary(uniqueKeysWithValues: zip(route.parameters, parameters))
            guard let reply = try route.reply(call) else { return nil }
            // The webhooks have the states that the reply sets.
            let rendered = try reply.rendered(call)
            owner.sequel = try reply.sequel(call, of: route)
            return rendered
        }
        if owner.deviations.isLook {
            let reply = try read { try render($0, .forgotten) }
            owner.sequel = nil
            return reply
        }
        if !request.method.isSafe, request.fields.range(of: "idempotency-key") != nil {
            // The first reply is given again, whatever the conditions are by now. A replay has no sequel.
            return try Idempotency.run(self, isKeyRequired: false) { store, _ in try render(store, .kept) }
        }
        // Most replies change no kept value. Another one is made again, in a transaction.
        var isChange = false
        let reply = try read { store in
            do { return try render(store, .refused) } catch is RouteCall.Change {
                isChange = true
                return nil
            }
        }
        return isChange ? try write { store, _ in try render(store, .kept) } : reply
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
        case .sequence: return fitting[min(Int(try call.count(orderName)), fitting.count) - 1]
        case .cycle: return fitting[Int((try call.count(orderName) - 1) % Int64(fitting.count))]
        case .random:
            var left = try call.draw(orderName) * Double(fitting.reduce(0) { $0 + $1.weight })
            return fitting.first { reply in
                left -= Double(reply.weight)
                return left < 0
            } ?? fitting.last
        }
    }
}

extension CustomReply {
    /// The reply to the request, with its states set.
    fileprivate func rendered(_ call: RouteCall) throws -> Reply {
        let (content, type) = try body.rendered(call, status)
        let isRead = status == .ok && call.request.method.isSafe
        var fields: Fields = [.cacheControl: isRead ? "no-cache" : "no-store", .vary: "Origin"]
        if let type = mediaType ?? type { fields.set(.contentType, type) }
        var known: Set<FieldName> = []
        for (name, value) in self.fields {
            let text = try value.text(call)
            // A name that is given twice, such as `Set-Cookie`, is sent twice.
            if known.insert(name).inserted { fields.set(name, text) } else { fields.add(name, text) }
        }
        for (name, value) in states { try call.setState(name, try value?.text(call)) }
        guard isRead else {
            return Reply(status: status, fields: fields, body: .bytes(status.hasNoContent ? [] : content))
        }
        let text = fields[.contentType] ?? ""
        return Representation(
            content,
            fields,
            fields[.etag].flatMap { EntityTag(parsing: $0) } ?? .strong(contentOf: content.span),
            isText: ["text/", "json", "xml", "javascript"].contains { text.contains($0) }
        ).reply(to: call.request, now: call.now)
    }

    fileprivate func sequel(_ call: RouteCall, of route: CustomRoute) throws -> ReplySequel? {
        guard delay != nil || !webhooks.isEmpty else { return nil }
        var seconds = delay?.lowerBound ?? 0
        if let delay, delay.upperBound > delay.lowerBound {
            seconds += try call.draw("delay") * (delay.upperBound - delay.lowerBound)
        }
        return ReplySequel(delay: .seconds(seconds), webhooks: try webhooks.map { try $0.rendered(call, of: route) })
    }
}

extension CustomReply.Body {
    fileprivate func rendered(_ call: RouteCall, _ status: Status) throws -> (bytes: [UInt8], mediaType: String?) {
        switch self {
        case .none: return ([], nil)
        case .json(let template): return ((try template.value(call)).encoded, "application/json")
        case .text(let template): return (Array(try template.text(call).utf8), "text/plain; charset=utf-8")
        case .bytes(let bytes): return (bytes, nil)
        case .problem(let template):
            let title = status.reasonPhrase.isEmpty ? "Status \(status.code)" : status.reasonPhrase
            let detail = try template?.text(call)
            let problem = Problem(type: "about:blank", title: title, status: status, detail: detail)
            return (problem.encoded(), "application/problem+json")
        }
    }
}

extension CustomReply.Webhook {
    fileprivate func rendered(_ call: RouteCall, of route: CustomRoute) throws -> ReplySequel.Request {
        let (content, type) = try body.rendered(call, .ok)
        var head = "\(method) \(url.target) HTTP/1.1\r\nHost: \(url.authority)\r\n"
        var all: Fields = ["User-Agent": "larder-server", "Content-Length": String(content.count)]
        if let type { all.set(.contentType, type) }
        for (name, value) in fields { all.set(name, try value.text(call)) }
        for field in all { head += "\(field.name): \(field.value)\r\n" }
        return ReplySequel.Request(
            name: "\(method) \(url.scheme)://\(url.authority)\(url.path.prefix(200)) of the route \(route.name)",
            address: address,
            request: UpstreamRequest(method: method, bytes: Array((head + "\r\n").utf8) + content),
            delay: delay
        )
    }
}
