import LarderHTTP

/// Whether a route needs to know who asks.
enum Authentication: Sendable {
    /// The reply is the same for everyone; credentials are not looked at.
    case ignored
    /// Anyone may ask; who signs in sees their own view.
    case optional
    case required
}

/// One operation of the API: a method on a path template, and what answers it. Immutable.
final class Route: Sendable {
    let method: Method
    /// As in OpenAPI: `/v1/posts/{id}`.
    let template: StaticString
    let authentication: Authentication
    let answer: @Sendable (inout Call) throws(Problem) -> Answer

    /// The template's segments; nil stands for a parameter.
    let segments: [[UInt8]?]

    init(
        _ method: Method,
        _ template: StaticString,
        _ authentication: Authentication,
        _ answer: @escaping @Sendable (inout Call) throws(Problem) -> Answer
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
struct Router: Sendable {
    enum Match {
        case route(Route, parameters: [String])
        /// The path exists, for other methods.
        case otherMethods([Method])
        case none
    }

    let routes: [Route]
    /// Routes by number of segments: a path is compared with those of its own length only.
    private let byLength: [[Route]]
    /// Routes without parameters, by the number of their path's bytes: most requests are found by comparing one or two.
    private let literal: [[(path: [UInt8], route: Route)]]

    init(_ routes: [Route]) {
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
    func match(_ method: Method, path: ArraySlice<UInt8>) -> Match {
        guard path.first == UInt8(ascii: "/") else { return .none }
        let wanted = method == .head ? .get : method
        if path.count < literal.count {
            let routes = literal[path.count]
            // By index, so that nothing is copied that does not fit.
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

    /// The values of a template's parameters, or nil where the path does not fit it or is not well-formed.
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
