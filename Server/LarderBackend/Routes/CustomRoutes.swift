package import LarderEngine
import LarderHTTP
import Synchronization

/// The custom routes of a server. They can be replaced while it runs. Safe from any thread.
package final class CustomRoutes: Sendable {
    /// A route for the path of a request, whatever its method and conditions.
    struct Candidate: Sendable {
        let route: CustomRoute
        let parameters: [String: String]
    }

    /// How many webhooks were answered, and why the last one was not.
    package struct WebhookTotals: Sendable {
        package var sent = 0
        package var failed = 0
        package var lastFailure: String?
    }

    private let routes = Mutex<[CustomRoute]>([])
    let totals = Mutex(WebhookTotals())

    package init() {}

    package var all: [CustomRoute] { routes.withLock { $0 } }

    package func replace(with new: [CustomRoute]) { routes.withLock { $0 = new } }

    package var webhooks: WebhookTotals { totals.withLock { $0 } }

    /// The routes for a path, in order.
    func candidates(_ path: ArraySlice<UInt8>) -> [Candidate] {
        let routes = all
        guard !routes.isEmpty, path.first == UInt8(ascii: "/") else { return [] }
        var segments: [String] = []
        for part in path.dropFirst().split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false) {
            guard let segment = QueryString.percentDecoded(Array(part)) else { return [] }
            segments.append(segment)
        }
        return routes.compactMap { route in
            route.parameters(segments).map { Candidate(route: route, parameters: $0) }
        }
    }

    /// Whether a route takes the path and the method of a request, whatever its conditions.
    package func accept(_ request: Request) -> Bool {
        candidates(request.path).contains { $0.route.accepts(request.method) }
    }
}

extension [CustomRoutes.Candidate] {
    /// The methods that the routes accept, each once.
    var methods: [Method] {
        let every: [Method] = [.get, .post, .put, .patch, .delete]
        return reduce(into: []) { methods, candidate in
            for method in candidate.route.method.map({ [$0] }) ?? every where !methods.contains(method) {
                methods.append(method)
            }
        }
    }
}
