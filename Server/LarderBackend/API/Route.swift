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

/// One operation of the API: a method, a path template and its handler. Immutable.
package final class Route: Sendable {
    package let method: Method
    /// As in OpenAPI: `/v1/posts/{id}`.
    let template: StaticString
    let authentication: Authentication
    let answer: @Sendable (Call) throws(Problem) -> Reply?

    let path: PathTemplate

    init(
        _ method: Method,
        _ template: StaticString,
        _ authentication: Authentication,
        _ answer: @escaping @Sendable (Call) throws(Problem) -> Reply?
    ) {
        guard let path = PathTemplate(template.description) else { preconditionFailure("\(template) is no template.") }
        self.path = path
        self.method = method
        self.template = template
        self.authentication = authentication
        self.answer = answer
    }
}

/// Finds the route of a request. Immutable, safe from any thread.
package struct Router: Sendable {
    package enum Match {
        case route(Route, parameters: [String])
        /// The path exists, but not for this method.
        case otherMethods([Method])
        case none
    }

    /// The first one that fits is taken.
    let routes: [Route]

    package init(_ routes: [Route]) { self.routes = routes }

    /// Finds the route for a method and a path (without query). `HEAD` is answered wherever `GET` is.
    package func match(_ method: Method, path: ArraySlice<UInt8>) -> Match {
        guard let segments = PathTemplate.segments(path) else { return .none }
        let wanted = method == .head ? .get : method
        var others: [Method] = []
        for route in routes {
            guard let parameters = route.path.values(segments) else { continue }
            if route.method == wanted { return .route(route, parameters: parameters) }
            others.append(route.method)
        }
        return others.isEmpty ? .none : .otherMethods(others)
    }
}
