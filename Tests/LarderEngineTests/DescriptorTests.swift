import Glibc
import LarderHTTP
import TestSupport
import Testing

@testable import LarderEngine

@Suite("Descriptors", .oneMinute)
struct DescriptorTests {
    private struct Yes: ExchangeHandler {
        func handle(_ request: Request, _ exchange: Exchange) -> Reply? {
            Reply(status: .ok, body: .bytes(Array("yes".utf8)))
        }

        func rejected(_ rejection: Rejection) -> Reply { Reply(status: rejection.status) }
        func finished(_ record: ExchangeRecord) {}
    }

    /// The number of server-side sockets on the port that a process still holds.
    private static func held(_ port: Int) throws -> Int {
        guard let file = unsafe fopen("/proc/net/tcp", "r") else { throw RawClient.Failure(reason: "no /proc") }
        defer { unsafe fclose(file) }
        var line: UnsafeMutablePointer<CChar>?
        var room = 0
        defer { unsafe free(line) }
        var count = 0
        while unsafe getline(&line, &room, file) > 0 {
            guard let start = unsafe line else { break }
            let fields = unsafe String(cString: start).split(separator: " ")
            // Local address, state (0A: listening), and the inode, which is 0 if no process holds the socket.
            guard fields.count > 9, fields[3] != "0A", fields[9] != "0",
                let local = fields[1].split(separator: ":").last.flatMap({ Int($0, radix: 16) }), local == port
            else { continue }
            count += 1
        }
        return count
    }

    @Test(arguments: EngineTests.pollers)
    func `ten thousand connections with different endings leak no descriptor`(poller: PollerChoice) async throws {
        var configuration = ServerConfiguration()
        configuration.poller = poller
        configuration.headReadTimeout = .seconds(600)
        let server = try HTTPServer(configuration, handler: Yes())
        let port = server.address.port
        let endings: [(text: String, waits: Bool)] = [
            ("GET / HTTP/1.1\r\nHost: h\r\n\r\n", true),
            ("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", true),
            ("GET / HTTP/1.1\r\nHo", false), ("GET / HTTP/1.1\r\n\r\n", true), ("", false),
            ("GET / HTTP/1.1\r\nHost: h\r\n\r\n", false),
        ]
        // Five thousand for each of the two pollers.
        for round in 0..<50 {
            var clients: [(client: RawClient, waits: Bool)] = []
            for number in 0..<100 {
                let ending = endings[(round + number) % endings.count]
                let client = try RawClient(port: port)
                try client.send(ending.text)
                clients.append((client, ending.waits))
            }
            for (client, waits) in clients where waits { _ = try await client.reply() }
        }
        // A reply on a new connection proves that the loop has handled the earlier endings.
        var left = try Self.held(port)
        while left > 0, !Task.isCancelled {
            let client = try RawClient(port: port)
            try client.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
            _ = await client.readToEnd()
            left = try Self.held(port)
        }
        #expect(left == 0)
        await server.stop(grace: .zero)
    }

    @Test func `the system notices a client that has vanished, and then reports its connection`() async throws {
        try await EchoHandler.serve(EchoHandler()) { server in
            let client = try RawClient(port: server.address.port)
            try client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            _ = try await client.reply()
            let options = [
                (SOL_SOCKET, SO_KEEPALIVE), (Int32(IPPROTO_TCP), TCP_KEEPIDLE), (Int32(IPPROTO_TCP), TCP_KEEPINTVL),
                (Int32(IPPROTO_TCP), TCP_KEEPCNT),
            ]
            let values = await server.onLoop { loop in
                options.map { level, name -> Int32 in
                    var (value, length) = (Int32(-1), socklen_t(MemoryLayout<Int32>.size))
                    guard let connection = loop.connections.values.first else { return -1 }
                    _ = unsafe getsockopt(connection.descriptor, level, name, &value, &length)
                    return value
                }
            }
            #expect(values == [1, 30, 10, 3])
        }
    }

    @Test(.enabled(if: hasIPv6)) func `a client of a server for all addresses has its IPv4 address`() async throws {
        try await EchoHandler.serve(EchoHandler(), { $0.host = "::" }) { server in
            let client = try RawClient(port: server.address.port)
            try client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            _ = try await client.reply()
            #expect(await server.onLoop { $0.connections.values.first?.peer.host } == "127.0.0.1")
        }
    }

    private static let hasIPv6 = (try? Listener(host: "::1", port: 0)) != nil
}
