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
    /// The caller's row; 0 for an anonymous caller.
    let viewer: Int64
    /// The caller's handle; nil for an anonymous caller.
    let handle: String?
    let device: String
    private var parsed: JSONValue??

    static let deviceField: StaticString = "larder-device"

    /// - Parameter request: without the prefix of the world.
    convenience init(_ request: Request, of owner: WorldExchange) {
        // A caller with wrong credentials is anonymous here; the regular path reports the credentials.
        let session = try? owner.session(request)
        self.init(
            request,
            connection: owner.connection.index,
            viewer: session?.user ?? 0,
            handle: session?.handle
        )
    }

    init(_ request: Request, connection: Int, viewer: Int64, handle: String?) {
        self.request = request
        self.connection = connection
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
