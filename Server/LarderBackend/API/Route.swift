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

    /// The segments of the template; nil for a parameter.
    let segments: [[UInt8]?]

    init(
        _ method: Method,
        _ template: StaticString,
        _ authentication: Authentication,
        _ answer: @escaping @Sendable (Call) throws(Problem) -> Reply?
    ) {
        self.method = method
        self.template = template
        self.authentication = authentication
        self.answer = answer
        segments = template.description.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
            .map { $0.hasPrefix("{") ? nil : Array($0.utf8) }
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

    let routes: [Route]
    /// Routes by number of segments: a path is compared only with templates of its own length.
    private let byLength: [[Route]]
    /// Routes without parameters, by path length in bytes: most requests are matched with one or two comparisons.
    private let literal: [[(path: [UInt8], route: Route)]]

    package init(_ routes: [Route]) {
        self.routes = routes
        var byLength: [[Route]] = []
        for route in routes {
            while byLength.count <= route.segments.count { byLength.append([]) }
            byLength[route.segments.count].append(route)
        }
        self.byLength = byLength
        var literal: [[(path: [UInt8], route: Route)]] = []
        for route in routes where !route.segments.contains(nil) {
            let path = Array(route.template.description.utf8)
            while literal.count <= path.count { literal.append([]) }
            literal[path.count].append((path, route))
        }
        self.literal = literal
    }

    /// Finds the route for a method and a path (without query). `HEAD` is answered wherever `GET` is.
    package func match(_ method: Method, path: ArraySlice<UInt8>) -> Match {
        guard path.first == UInt8(ascii: "/") else { return .none }
        let wanted = method == .head ? .get : method
        if path.count < literal.count {
            let routes = literal[path.count]
            // By index, so that routes that do not match are not copied.
            for index in routes.indices
            where routes[index].route.method == wanted && routes[index].path.elementsEqual(path) {
                return .route(routes[index].route, parameters: [])
            }
        }
        let segments = path.dropFirst().split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard segments.count < byLength.count else { return .none }
        var others: [Method] = []
        for route in byLength[segments.count] {
            guard let parameters = Self.parameters(of: segments, under: route) else { continue }
            if route.method == wanted { return .route(route, parameters: parameters) }
            others.append(route.method)
        }
        return others.isEmpty ? .none : .otherMethods(others)
    }

    /// The values of a template's parameters; nil if the path does not match or is malformed.
    private static func parameters(of segments: [ArraySlice<UInt8>], under route: Route) -> [String]? {
        var parameters: [String] = []
        for (segment, expected) in zip(segments, route.segments) {
            if let expected {
                guard segment.elementsEqual(expected) else { return nil }
            } else {
                guard !segment.isEmpty, let value = QueryString.percentDecoded(Array(segment)) else { return nil }
                parameters.append(value)
            }
        }
        return parameters
    }
}
