import LarderCoding
import LarderEngine
import LarderHTTP

/// What is known of an exchange when it is looked at: the request and who is behind it.
///
/// Confined to where it is made: the body is parsed when it is first asked for.
final class ExchangeFacts {
    let request: Request
    /// The number of the connection in its world, from 1.
    let connection: Int
    /// The handle of the person who asks.
    let handle: String?
    let device: String
    private var parsed: JSONValue??

    static let deviceField: StaticString = "larder-device"

    init(_ request: Request, connection: Int, handle: String?) {
        self.request = request
        self.connection = connection
        self.handle = handle
        device = Self.device(of: request) ?? handle.map { "user:" + $0 } ?? "anonymous"
    }

    /// The body as JSON, if it is.
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
