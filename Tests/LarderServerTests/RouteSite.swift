import Glibc
import LarderCoding
import LarderServer
import TestSupport
import Testing

/// A backend with custom routes from files, and requests to it.
struct RouteSite {
    let backend: MockBackend
    let directory: ScratchDirectory

    init(
        _ files: [String: String],
        _ source: WorldSource = .empty,
        _ change: (inout MockBackend.Configuration) -> Void = { _ in }
    ) throws {
        directory = try CollectionShop.directory(files)
        var configuration = MockBackend.Configuration()
        configuration.seed = 7
        configuration.disableConnectionTimeouts()
        configuration.routes = directory.path
        change(&configuration)
        backend = try MockBackend.start(source, configuration)
        AloneWithinTime.atEnd { [backend] in await backend.stop() }
    }

    /// - Parameter routes: the elements of `routes`, as JSON.
    init(routes: String, _ source: WorldSource = .empty) throws {
        try self.init(["routes.json": "{\"routes\": [\(routes)]}"], source)
    }

    func send(_ method: String, _ target: String, _ body: String? = nil, _ fields: [String: String] = [:]) throws
        -> RawClient
    {
        let client = try RawClient(port: backend.port)
        var text = "\(method) \(target) HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        var fields = fields
        if let body {
            fields["Content-Length"] = String(body.utf8.count)
            fields["Content-Type"] = fields["Content-Type"] ?? "application/json"
        }
        for (name, value) in fields.sorted(by: { $0.key < $1.key }) { text += "\(name): \(value)\r\n" }
        try client.send(text + "\r\n" + (body ?? ""))
        return client
    }

    func ask(_ method: String, _ target: String, _ body: String? = nil, _ fields: [String: String] = [:]) async throws
        -> RawReply
    {
        try await send(method, target, body, fields).reply(isHead: method == "HEAD")
    }

    /// The text of a 2xx reply; otherwise its status.
    func text(_ method: String, _ target: String, _ body: String? = nil, _ fields: [String: String] = [:]) async throws
        -> String
    {
        let reply = try await ask(method, target, body, fields)
        return reply.status < 300 ? reply.text : String(reply.status)
    }

    func write(_ name: String, _ text: String) { Self.write(name, text, in: directory.path) }

    /// Writes a file as editors do: completely, under another name, and then moved.
    static func write(_ name: String, _ text: String, in directory: String) {
        let path = directory + "/" + name
        guard let file = unsafe fopen(path + "~", "w") else { return }
        _ = unsafe fputs(text, file)
        unsafe fclose(file)
        _ = unsafe rename(path + "~", path)
    }
}
