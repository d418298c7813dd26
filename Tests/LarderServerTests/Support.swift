import LarderCoding
import LarderEngine
import LarderServer
import LarderTime
import TestSupport
import Testing

/// A backend with a small world and a manual clock, and requests to it.
final class Scene {
    let backend: MockBackend
    let clock: ManualClock
    let client: RawClient

    init(_ change: (inout MockBackend.Configuration) -> Void = { _ in }) throws {
        clock = ManualClock(WallTime(seconds: 1_790_000_000))
        var configuration = MockBackend.Configuration()
        configuration.use(clock)
        configuration.seed = 1
        // Tests advance the clock by days, and the scene's own connection must not time out.
        configuration.server.idleTimeout = .seconds(100_000_000)
        configuration.server.headReadTimeout = .seconds(100_000_000)
        change(&configuration)
        var size = WorldSize()
        size.people = 12
        size.posts = 60
        size.conversations = 6
        size.messages = 60
        size.tasks = 30
        size.transfers = 60
        backend = try MockBackend.start(.generated(size, picturesFrom: nil), configuration)
        AloneWithinTime.atEnd { [backend] in await backend.stop() }
        client = try RawClient(port: backend.port)
    }

    /// Sends a request on the scene's own connection. `as` is the handle of the user; nil is anonymous.
    func ask(
        _ method: String,
        _ target: String,
        as handle: String? = "ana",
        _ body: String? = nil,
        _ fields: [String: String] = [:]
    ) async throws -> RawReply {
        var text = "\(method) \(target) HTTP/1.1\r\nHost: test\r\n"
        if let handle { text += "Authorization: Bearer \(handle.hasPrefix("at_") ? handle : "dev-" + handle)\r\n" }
        for (name, value) in fields.sorted(by: { $0.key < $1.key }) { text += "\(name): \(value)\r\n" }
        if let body { text += "Content-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n" }
        try client.send(text + "\r\n" + (body ?? ""))
        return try await client.reply(isHead: method == "HEAD")
    }
}

extension RawReply {
    /// The body as JSON.
    var json: JSONValue { get throws { try JSONParser.parse(body) } }

    /// The last segment of the problem's type.
    var problem: String? { (try? json["type"]?.string)?.split(separator: "/").last.map { String($0) } }
}
