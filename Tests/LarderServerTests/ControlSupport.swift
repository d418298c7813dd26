import LarderCoding
import LarderEngine
import LarderServer
import LarderTime
import TestSupport

/// A world of a backend that stops with the test, and requests to it, each on a new connection unless one is given.
struct Stage {
    let backend: MockBackend
    let world: MockWorld

    init(_ change: (inout MockBackend.Configuration) -> Void = { _ in }) throws {
        var configuration = MockBackend.Configuration()
        configuration.seed = 7
        configuration.disableConnectionTimeouts()
        change(&configuration)
        var size = WorldSize()
        size.people = 12
        size.posts = 60
        size.conversations = 6
        size.messages = 60
        size.tasks = 0
        size.transfers = 60
        backend = try MockBackend.start(.generated(size, picturesFrom: nil), configuration)
        AloneWithinTime.atEnd { [backend] in await backend.stop() }
        world = backend.main
        world.clock.freeze(at: WallTime(seconds: 1_790_000_000))
    }

    func connect() throws -> RawClient { try RawClient(port: backend.port) }

    /// Sends a request without reading the reply.
    func send(
        _ method: String,
        _ target: String,
        _ body: String? = nil,
        as handle: String? = "ana",
        fields: [String: String] = [:],
        on client: RawClient? = nil
    ) throws -> RawClient {
        let client = try client ?? connect()
        var text = "\(method) \(target) HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        if let handle { text += "Authorization: Bearer dev-\(handle)\r\n" }
        for (name, value) in fields.sorted(by: { $0.key < $1.key }) { text += "\(name): \(value)\r\n" }
        if let body { text += "Content-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n" }
        try client.send(text + "\r\n" + (body ?? ""))
        return client
    }

    func ask(
        _ method: String,
        _ target: String,
        _ body: String? = nil,
        as handle: String? = "ana",
        fields: [String: String] = [:]
    ) async throws -> RawReply {
        try await send(method, target, body, as: handle, fields: fields).reply(isHead: method == "HEAD")
    }

    /// Advances the world's clock until the reply begins to arrive; returns the elapsed time.
    func advance(_ world: MockWorld, until client: RawClient) async -> Duration {
        let start = world.clock.now
        while !Task.isCancelled {
            // Read first: the server sends what is due before it sets the next timer.
            let next = world.clock.untilNextTimer
            if client.hasNews { break }
            if let next, next > .zero { world.clock.advance(by: next) } else { await Task.yield() }
        }
        return world.clock.now - start
    }

    /// A transfer of one cent from an account of `ana` to another of the same currency.
    func transfer(_ minorUnits: Int = 1) async throws -> String {
        let accounts = try await ask("GET", "/v1/accounts").json["items"]?.array ?? []
        let source = accounts.first { ($0["balance"]?["minorUnits"]?.integer ?? 0) > 1_000 }
        let currency = source?["balance"]?["currency"]?.string ?? ""
        var target = ""
        for handle in (2...12).map({ "person\($0)" }) {
            let theirs = try await ask("GET", "/v1/accounts", as: handle).json["items"]?.array ?? []
            if let account = theirs.first(where: { $0["balance"]?["currency"]?.string == currency }) {
                target = account["id"]?.string ?? ""
                break
            }
        }
        let amount = "{\"minorUnits\":\(minorUnits),\"currency\":\"\(currency)\"}"
        return
            "{\"fromAccountId\":\"\(source?["id"]?.string ?? "")\",\"toAccountId\":\"\(target)\",\"amount\":\(amount)}"
    }
}
