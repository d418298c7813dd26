import LarderHTTP
import Synchronization
import TestSupport
import Testing

@testable import LarderEngine

/// Keeps the exchanges of requests for `/kept` and echoes other requests.
private final class Keeper: ExchangeHandler {
    let kept = Mutex<[Exchange]>([])

    func handle(_ request: Request, _ exchange: Exchange) -> Reply? {
        guard request.pathText == "/kept" else { return EchoHandler.reply(to: request) }
        kept.withLock { $0.append(exchange) }
        return nil
    }

    func rejected(_ rejection: Rejection) -> Reply { Reply(status: rejection.status) }

    func finished(_ record: ExchangeRecord) {}
}

/// Echoes the request or returns the requested number of bytes, and collects the exchange records.
private final class Notebook: ExchangeHandler {
    let told = Mutex<[String]>([])

    func handle(_ request: Request, _ exchange: Exchange) -> Reply? {
        let path = request.pathText
        guard path.hasPrefix("/large/"), let count = Int(path.dropFirst(7)) else {
            return EchoHandler.reply(to: request)
        }
        return Reply(status: .ok, body: .bytes([UInt8](repeating: 0x61, count: count)))
    }

    func rejected(_ rejection: Rejection) -> Reply { Reply(status: .badRequest, body: .bytes(Array("no".utf8))) }

    func finished(_ record: ExchangeRecord) {
        if record.isComplete { told.withLock { $0.append(record.request.pathText) } }
    }
}

@Suite("Simultaneous requests", .oneMinute)
struct SimultaneousRequestTests {
    @Test(arguments: EngineTests.pollers)
    func `simultaneous requests are answered on their own connections and in order`(poller: PollerChoice)
        async throws
    {
        let notebook = Notebook()
        try await EchoHandler.serve(notebook, { $0.poller = poller }) { server in
            let port = server.address.port
            let clients = try (0..<150).map { _ in try RawClient(port: port) }
            for client in clients { try client.send("GET /hello HTTP/1.1\r\nHost: h\r\n\r\n") }
            for client in clients { #expect(try await client.reply().status == 200) }
            try server.holdingLoop {
                for (index, client) in clients.enumerated() {
                    switch index % 6 {
                    case 0: try client.send("GET /one/\(index) HTTP/1.1\r\nHost: h\r\n\r\n")
                    case 1:
                        try client.send(
                            "GET /one/\(index) HTTP/1.1\r\nHost: h\r\n\r\nGET /two/\(index) HTTP/1.1\r\nHost: h\r\n\r\n"
                        )
                    case 2: try client.send("GET /last/\(index) HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
                    case 3:
                        try client.send(
                            "GET /large/3000000 HTTP/1.1\r\nHost: h\r\n\r\nGET /b/\(index) HTTP/1.1\r\nHost: h\r\n\r\n"
                        )
                    case 4: try client.send("nonsense\r\n\r\n")
                    default: try client.send("GET /half/\(index) HTT")
                    }
                }
            }
            for (index, client) in clients.enumerated() {
                switch index % 6 {
                case 0: #expect(try await client.reply().text == "GET /one/\(index) ")
                case 1:
                    #expect(try await client.reply().text == "GET /one/\(index) ")
                    #expect(try await client.reply().text == "GET /two/\(index) ")
                case 2:
                    #expect(try await client.reply().text == "GET /last/\(index) ")
                    #expect(await client.isClosedByPeer())
                case 3:
                    #expect(try await client.reply().body.count == 3_000_000)
                    #expect(try await client.reply().text == "GET /b/\(index) ")
                case 4:
                    #expect(try await client.reply().status == 400)
                default:
                    try client.send("P/1.1\r\nHost: h\r\n\r\n")
                    #expect(try await client.reply().text == "GET /half/\(index) ")
                }
            }
        }
    }

    /// Different lengths leave different remainders when the socket blocks.
    @Test(arguments: Array(stride(from: 8_000_000, to: 12_000_000, by: 1_000_000)))
    func `a connection that flushes blocked output and reads in one turn loses and reorders no byte`(
        byteCount: Int
    ) async throws {
        try await EchoHandler.serve(Notebook()) { server in
            let reader = try RawClient(port: server.address.port)
            let other = try RawClient(port: server.address.port)
            try reader.send("GET /large/\(byteCount) HTTP/1.1\r\nHost: h\r\n\r\nGET /p0 HTTP/1.1\r\nHost: h\r\n\r\n")
            var bytes: [UInt8] = []
            let rounds = 40
            for round in 1...rounds {
                // In one turn: room for the blocked output, another request, and a request of another connection.
                try server.holdingLoop {
                    bytes += reader.takeAvailable()
                    try reader.send("GET /p\(round) HTTP/1.1\r\nHost: h\r\n\r\n")
                    if round == rounds { reader.finishSending() }
                    try other.send("GET /other HTTP/1.1\r\nHost: h\r\n\r\n")
                }
                #expect(try await other.reply().status == 200)
            }
            let (rest, ending) = await reader.readToEnd()
            let text = String(decoding: bytes + rest, as: UTF8.self)
            let answers = text.matches(of: #/GET /p(\d+) /#).map { Int($0.1) }
            #expect(answers == Array(0...rounds) && ending == .closed)
        }
    }

    @Test func `a closed connection does not affect other replies, and each delivered reply has a record`() async throws
    {
        let notebook = Notebook()
        try await EchoHandler.serve(notebook) { server in
            let port = server.address.port
            var leaving: RawClient? = try RawClient(port: port)
            let staying = try (0..<3).map { _ in try RawClient(port: port) }
            for client in staying + [try #require(leaving)] {
                try client.send("GET /hello HTTP/1.1\r\nHost: h\r\n\r\n")
                #expect(try await client.reply().status == 200)
            }
            notebook.told.withLock { $0 = [] }
            try server.holdingLoop {
                try leaving?.send("GET /left HTTP/1.1\r\nHost: h\r\n\r\n")
                leaving?.resetsAtEnd()
                leaving = nil
                for client in staying { try client.send("GET /stays HTTP/1.1\r\nHost: h\r\n\r\n") }
            }
            for client in staying { #expect(try await client.reply().text == "GET /stays ") }
            // The record is written before the reply is sent.
            #expect(notebook.told.withLock { $0.count { $0 == "/stays" } } == 3)
        }
    }

    @Test func `a reply does not wait for a later job of its turn`() async throws {
        let keeper = Keeper()
        try await EchoHandler.serve(keeper) { server in
            let client = try RawClient(port: server.address.port)
            let other = try RawClient(port: server.address.port)
            try client.send("GET /kept HTTP/1.1\r\nHost: h\r\n\r\n")
            await reached { !keeper.kept.withLock({ $0.isEmpty }) }
            let exchange = try #require(keeper.kept.withLock { $0.first })
            let isReceived = Signal()
            defer { isReceived.set() }
            try server.holdingLoop {
                try other.send("GET /other HTTP/1.1\r\nHost: h\r\n\r\n")
                exchange.complete(Reply(status: .noContent))
                server.loops[0].execute { isReceived.wait() }
            }
            #expect(try await client.reply().status == 204)
            isReceived.set()
            #expect(try await other.reply().status == 200)
        }
    }
}
