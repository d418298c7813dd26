package import LarderHTTP
import Synchronization

/// The custom routes of a server. They can be replaced while it runs. Safe from any thread.
package final class CustomRoutes: Sendable {
    private let current = Mutex<[Route]>([])
    package let webhooks = WebhookCounter()

    package init() {}

    /// In order.
    package var routes: [Route] { current.withLock { $0 } }

    /// The names of the routes, such as `GET /users/{id}`.
    package var names: [String] { routes.map(\.name) }

    package func replace(with new: [Route]) { current.withLock { $0 = new } }

    /// Whether a route takes the path and the method, whatever its conditions.
    package func accept(_ method: Method, _ path: ArraySlice<UInt8>) -> Bool {
        !routes.matches(path).accepting(method).isEmpty
    }
}
