import Glibc
import LarderCoding
import LarderServer
import TestSupport
import Testing

/// A backend that serves collections from files, and requests to it.
struct CollectionShop {
    static let todos = """
        [{"id":1,"title":"flour","done":false,"price":3,"by":{"name":"Ana"},"tags":["food"]},
         {"id":2,"title":"Bread","done":true,"price":2.5,"by":{"name":"Bo"},"tags":[]},
         {"id":7,"title":"wash & dry","done":false,"price":10,"by":{"name":"Ana"},"tags":["home","food"]},
         {"id":4,"title":"nap","done":true,"price":null,"by":{"name":"Cy"},"tags":[]}]
        """

    /// A directory with these files, removed at the end.
    static func directory(_ files: [String: String]) throws -> ScratchDirectory {
        let directory = try ScratchDirectory()
        for (name, text) in files {
            guard let file = unsafe fopen(directory.path + "/" + name, "w") else { continue }
            _ = unsafe fputs(text, file)
            unsafe fclose(file)
        }
        return directory
    }

    let backend: MockBackend
    private let directory: ScratchDirectory

    init(
        _ files: [String: String] = ["todos.json": CollectionShop.todos],
        _ change: (inout MockBackend.Configuration) -> Void = { _ in }
    ) throws {
        try self.init(at: try Self.directory(files), change)
    }

    init(at directory: ScratchDirectory, _ change: (inout MockBackend.Configuration) -> Void) throws {
        self.directory = directory
        var configuration = MockBackend.Configuration()
        configuration.seed = 7
        configuration.disableConnectionTimeouts()
        change(&configuration)
        backend = try MockBackend.start(.collections(directory: directory.path), configuration)
        AloneWithinTime.atEnd { [backend] in await backend.stop() }
    }

    func send(_ method: String, _ target: String, _ body: String? = nil, _ fields: [String: String] = [:]) throws
        -> RawClient
    {
        let client = try RawClient(port: backend.port)
        var text = "\(method) \(target) HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        for (name, value) in fields.sorted(by: { $0.key < $1.key }) { text += "\(name): \(value)\r\n" }
        if let body { text += "Content-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n" }
        try client.send(text + "\r\n" + (body ?? ""))
        return client
    }

    func ask(_ method: String, _ target: String, _ body: String? = nil, _ fields: [String: String] = [:])
        async throws -> RawReply
    {
        try await send(method, target, body, fields).reply(isHead: method == "HEAD")
    }

    /// The identifiers in a list.
    func ids(_ target: String) async throws -> [Int64] {
        let reply = try await ask("GET", target)
        return try reply.json.array?.compactMap { $0["id"]?.integer } ?? []
    }
}
