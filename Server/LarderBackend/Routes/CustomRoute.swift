package import LarderEngine
package import LarderHTTP

/// A reply of a custom route.
package struct CustomReply: Sendable {
    package enum Body: Sendable {
        /// No content; for an error status a problem.
        case none
        case json(JSONTemplate)
        case text(RouteTemplate)
        /// The bytes of a file.
        case bytes([UInt8])
        /// A problem with this detail (RFC 9457).
        case problem(RouteTemplate)
    }

    /// A request to another server on this machine, sent after the reply.
    package struct Webhook: Sendable {
        package let address: UpstreamAddress
        package let authority: String
        package let target: String
        package let method: Method
        package let fields: [(name: FieldName, value: RouteTemplate)]
        package let body: Body
        package let delay: Duration

        package init(
            to url: HTTPURL,
            _ address: UpstreamAddress,
            _ method: Method,
            fields: [(name: FieldName, value: RouteTemplate)],
            body: Body,
            delay: Duration
        ) {
            self.address = address
            authority = url.authority
            target = url.target
            self.method = method
            self.fields = fields
            self.body = body
            self.delay = delay
        }
    }

    package var conditions: [RouteCondition] = []
    package var weight = 1
    package var status = Status.ok
    package var fields: [(name: FieldName, value: RouteTemplate)] = []
    package var mediaType: String?
    package var body = Body.none
    package var delay: ClosedRange<Double>?
    /// The states that the reply sets.
    package var states: [(name: String, value: RouteTemplate)] = []
    package var webhooks: [Webhook] = []

    package init() {}

    private var templates: [RouteTemplate] {
        var all = fields.map(\.value) + states.map(\.value) + webhooks.flatMap { $0.fields.map(\.value) }
        for body in [body] + webhooks.map(\.body) {
            switch body {
            case .text(let template), .problem(let template): all.append(template)
            default: break
            }
        }
        return all
    }

    private var documents: [JSONTemplate] {
        ([body] + webhooks.map(\.body)).compactMap { if case .json(let template) = $0 { template } else { nil } }
    }

    var reads: Bool {
        conditions.contains { $0.readsState } || templates.contains { $0.reads } || documents.contains { $0.reads }
    }

    var writes: Bool {
        !states.isEmpty || delay.map { $0.lowerBound < $0.upperBound } ?? false || templates.contains { $0.writes }
            || documents.contains { $0.writes }
    }
}

/// A route of the user: a method, a path, conditions, and the replies.
package struct CustomRoute: Sendable {
    /// Which of the replies whose conditions hold is sent.
    package enum Order: String, Sendable, CaseIterable {
        case first
        /// Each once, then the last one again and again.
        case sequence
        /// Each in turn, from the beginning after the last one.
        case cycle
        /// One by its weight, drawn from the world's seed.
        case random
    }

    enum Segment: Sendable, Equatable {
        case literal(String)
        case parameter(String)
        /// `*` as the last segment: the rest of the path.
        case rest
    }

    /// As written: `GET /users/{id}`.
    package let name: String
    /// Nil for every method.
    let method: Method?
    let segments: [Segment]
    let conditions: [RouteCondition]
    let replies: [CustomReply]
    let order: Order
    let access: RouteAccess

    /// Nil if the path is not valid: it begins with `/`, and a parameter is a whole segment with a name of its own.
    package init?(
        _ method: Method?,
        _ path: String,
        _ conditions: [RouteCondition],
        _ replies: [CustomReply],
        _ order: Order
    ) {
        name = "\(method?.rawValue ?? "*") \(path)"
        self.method = method
        self.conditions = conditions
        self.replies = replies
        self.order = order
        guard path.hasPrefix("/"), !path.contains("?"), !path.contains("#") else { return nil }
        let parts = path.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
        var segments: [Segment] = []
        for (index, part) in parts.enumerated() {
            if part == "*" {
                guard index == parts.count - 1 else { return nil }
                segments.append(.rest)
            } else if part.hasPrefix("{"), part.hasSuffix("}"), part.count > 2 {
                let segment = Segment.parameter(String(part.dropFirst().dropLast()))
                guard !segments.contains(segment) else { return nil }
                segments.append(segment)
            } else if part.contains(where: { "{}*".contains($0) }) {
                return nil
            } else {
                segments.append(.literal(String(part)))
            }
        }
        self.segments = segments
        let writes = order != .first || replies.contains { $0.writes }
        let reads = conditions.contains { $0.readsState } || replies.contains { $0.reads }
        access = writes ? .write : reads ? .read : .none
    }

    /// The values of the parameters; nil if the path is another one.
    ///
    /// - Parameter path: the segments of a request, decoded.
    func parameters(_ path: [String]) -> [String: String]? {
        guard segments.last == .rest ? path.count >= segments.count : path.count == segments.count else { return nil }
        var parameters: [String: String] = [:]
        for (index, segment) in segments.enumerated() {
            switch segment {
            case .literal(let text): if text != path[index] { return nil }
            case .parameter(let name):
                guard !path[index].isEmpty else { return nil }
                parameters[name] = path[index]
            case .rest: parameters["*"] = path[index...].joined(separator: "/")
            }
        }
        return parameters
    }

    func accepts(_ other: Method) -> Bool { method == nil || method == other || method == .get && other == .head }
}

/// What an answer does with the values that routes keep.
enum RouteAccess: Int, Sendable {
    case none, read, write
}
