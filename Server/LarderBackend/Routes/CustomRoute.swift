import LarderEngine
import LarderHTTP

/// A reply of a custom route.
struct CustomReply: Sendable {
    enum Body: Sendable {
        case none
        case json(JSONTemplate)
        case text(RouteTemplate)
        case bytes([UInt8])
        /// A problem with this detail (RFC 9457); without one for an error status that has no other body.
        case problem(RouteTemplate?)
    }

    /// A request to another server on this machine, sent after the reply.
    struct Webhook: Sendable {
        let url: HTTPURL
        let address: UpstreamAddress
        let method: Method
        let fields: [(name: FieldName, value: RouteTemplate)]
        let body: Body
        let delay: Duration
    }

    var conditions: [RouteCondition] = []
    var weight = 1
    var status = Status.ok
    var fields: [(name: FieldName, value: RouteTemplate)] = []
    var mediaType: String?
    var body = Body.none
    /// In seconds.
    var delay: ClosedRange<Double>?
    /// The states that the reply sets; it removes those without a value.
    var states: [(name: String, value: RouteTemplate?)] = []
    var webhooks: [Webhook] = []
}

/// What a route of the user does: conditions and replies.
struct CustomRoute: Sendable {
    /// Which of the replies whose conditions hold is sent.
    enum Order: String, Sendable, CaseIterable {
        case first
        /// Each once, then the last one again and again.
        case sequence
        /// Each in turn, from the beginning after the last one.
        case cycle
        /// One by its weight, drawn from the world's seed.
        case random
    }

    /// As written: `GET /users/{id}`.
    let name: String
    /// The name of the counter of its replies: another one for each route, also if their methods and paths are equal.
    let orderName: String
    /// The names of the path's parameters.
    let parameters: [String]
    let conditions: [RouteCondition]
    let replies: [CustomReply]
    let order: Order
}
