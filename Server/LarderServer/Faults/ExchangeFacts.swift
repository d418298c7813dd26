import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime

/// The properties of an exchange that faults, gates and actors match: the request, its connection and its caller.
///
/// Confined to its creator: the body is parsed on first use.
final class ExchangeFacts {
    let request: Request
    /// The number of the connection in its world, from 1.
    let connection: Int
    /// When the connection began, on the world's clock; nil if nobody asks for it.
    let connectedAt: MonotonicTime?
    /// The caller's row; 0 for an anonymous caller.
    let viewer: Int64
    /// The caller's handle; nil for an anonymous caller.
    let handle: String?
    let device: String
    private var parsed: JSONValue??

    static let deviceField: StaticString = "larder-device"

    /// - Parameter request: without the prefix of the world.
    convenience init(_ request: Request, of owner: WorldExchange) {
        let world = owner.world
        let viewer = (try? owner.session(request)?.user) ?? 0
        let connection = world.control.connections.entry(of: request.connection, now: world.clock.uptime)
        self.init(
            request,
            connection: connection.index,
            connectedAt: connection.since,
            viewer: viewer,
            handle: Authenticator.handle(of: viewer, in: world)
        )
    }

    init(_ request: Request, connection: Int, connectedAt: MonotonicTime? = nil, viewer: Int64, handle: String?) {
        self.request = request
        self.connection = connection
        self.connectedAt = connectedAt
        self.viewer = viewer
        self.handle = handle
        device = Self.device(of: request) ?? handle.map { "user:" + $0 } ?? "anonymous"
    }

    /// The body as JSON; nil if it is not JSON.
    var json: JSONValue? {
        if let parsed { return parsed }
        let value = request.body.isEmpty ? nil : try? JSONParser.parse(request.body)
        parsed = .some(value)
        return value
    }

    static func device(of request: Request) -> String? {
        guard let range = request.fields.range(of: deviceField) else { return nil }
        return String(decoding: request.head[range].prefix(128), as: UTF8.self)
    }
}
