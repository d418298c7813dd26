package import LarderHTTP
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
    private let totals = Mutex(WebhookTotals())

    package init() {}

    /// The names of the routes, such as `GET /users/{id}`.
    package var names: [String] { routes.withLock { $0.map(\.name) } }

    package func replace(with new: [CustomRoute]) { routes.withLock { $0 = new } }

    package var webhooks: WebhookTotals { totals.withLock { $0 } }

    /// Counts a webhook.
    func count(failure: String?) {
        totals.withLock { totals in
            if failure == nil { totals.sent += 1 } else { totals.failed += 1 }
            totals.lastFailure = failure ?? totals.lastFailure
        }
    }

    /// The routes for a path, in order.
    func candidates(_ path: ArraySlice<UInt8>) -> [Candidate] {
        let routes = routes.withLock { $0 }
        guard !routes.isEmpty, let segments = PathTemplate.segments(path) else { return [] }
        return routes.compactMap { route in
            route.path.values(segments).map { values in
                Candidate(route: route, parameters: Dictionary(uniqueKeysWithValues: zip(route.path.names, values)))
            }
        }
    }

    /// Whether a route takes the path and the method, whatever its conditions.
    ///
    /// - Parameter method: nil for any method.
    package func accept(_ method: Method?, _ path: ArraySlice<UInt8>) -> Bool {
        candidates(path).contains { candidate in method.map { candidate.route.accepts($0) } ?? true }
    }
}

extension [CustomRoutes.Candidate] {
    /// The methods that the routes accept.
    var methods: [Method] {
        flatMap { candidate in candidate.route.method.map { [$0] } ?? [.get, .post, .put, .patch, .delete] }
    }
}
