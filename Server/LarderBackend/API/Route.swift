import LarderEngine
package import LarderHTTP

/// Whether a route authenticates the caller.
enum Authentication: Sendable {
    /// The reply is the same for everyone; credentials are ignored.
    case ignored
    /// Anonymous callers are accepted; a signed-in caller gets a personal view.
    case optional
    case required
}

/// One operation of an API: a method, a path template and its handler. Immutable.
package final class Route: Sendable {
    /// Nil for every method.
    package let method: Method?
    /// As in OpenAPI: `/v1/posts/{id}`.
    let template: String
    let path: PathTemplate
    let authentication: Authentication
    /// Nil if the exchange is completed later. A custom route: if its conditions do not hold.
    let answer: @Sendable (Call) throws(Problem) -> Reply?

    /// - Parameter template: a valid one.
    init(
        _ method: Method?,
        _ template: String,
        _ authentication: Authentication,
        _ answer: @escaping @Sendable (Call) throws(Problem) -> Reply?
    ) {
        guard let path = PathTemplate(template) else { preconditionFailure("\(template) is no template.") }
        self.path = path
        self.method = method
        self.template = template
        self.authentication = authentication
        self.answer = answer
    }

    /// `HEAD` is answered wherever `GET` is.
    func accepts(_ other: Method) -> Bool { method == nil || method == other || method == .get && other == .head }

    /// The method and the template: `GET /v1/posts/{id}`.
    package var name: String { "\(method?.rawValue ?? "*") \(template)" }
}

/// A route for the path of a request, whatever its method, with the values of its parameters in order.
package struct RouteMatch: Sendable {
    let route: Route
    let parameters: [String]
}

extension [Route] {
    /// The routes for a path (without query), in order.
    package func matches(_ path: ArraySlice<UInt8>) -> [RouteMatch] {
        guard !isEmpty, let segments = PathTemplate.segments(path) else { return [] }
        return compactMap { route in route.path.values(segments).map { RouteMatch(route: route, parameters: $0) } }
    }
}

extension [RouteMatch] {
    package func accepting(_ method: Method) -> [RouteMatch] { filter { $0.route.accepts(method) } }

    /// Those of the request's method. A route for every method does not answer the question of a browser whether it may ask.
    func answering(_ request: Request) -> [RouteMatch] {
        request.isPreflight ? filter { $0.route.method == .options } : accepting(request.method)
    }

    /// The methods that the routes accept.
    var methods: [Method] { flatMap { $0.route.method.map { [$0] } ?? [.get, .post, .put, .patch, .delete] } }
}
