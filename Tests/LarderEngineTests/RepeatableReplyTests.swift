import LarderHTTP
import LarderTime
import Synchronization
import TestSupport
import Testing

@testable import LarderEngine

/// Answers each request with an increasing number, and keeps that reply current until it is invalidated.
private final class Counter: ExchangeHandler {
    let handled = Atomic<Int>(0)
    let repeatable = CountingReply()
    let bodyBytes: Int

    init(bodyBytes: Int) { self.bodyBytes = bodyBytes }

    final class CountingReply: RepeatableReply {
        let stays = Atomic<Bool>(true)
        let repeated = Mutex<[RepeatedExchange]>([])

        func isCurrent() -> Bool { stays.load(ordering: .relaxed) }

        func wasRepeated(_ exchange: RepeatedExchange) { repeated.withLock { $0.append(exchange) } }
    }

    func handle(_ request: Request, _ exchange: Exchange) -> Reply? {
        let number = handled.add(1, ordering: .relaxed).newValue
        let body = Array("\(number) ".utf8) + [UInt8](repeating: 0x61, count: bodyBytes)
        let head = Array("HTTP/1.1 200 OK\r\nContent-Length: \(body.count)\r\n".utf8)
        let prepared = PreparedResponse(status: .ok, head: head, body: body)
        var reply = Reply.prepared(prepared, extra: Array("X-Extra: yes\r\n".utf8))
        reply.repeatable = repeatable
        return reply
    }

    func rejected(_ rejection: Rejection) -> Response { Response(status: rejection.status) }
    var wantsHeads: Bool { false }
    func began(_ request: Request, _ exchange: Exchange) -> HeadVerdict { .proceed }
    var wantsRecords: Bool { true }
    func finished(_ record: ExchangeRecord) {}
}

@Suite("Repeatable replies", .oneMinute)
struct RepeatableReplyTests {
    private static let get = "GET /a HTTP/1.1\r\nHost: h\r\n\r\n"

    private func serve(
        bodyBytes: Int = 0,
        _ body: (RawClient, Counter, ManualClock) async throws -> Void
    ) async throws {
        let clock = ManualClock(WallTime(seconds: 1_790_000_000))
        let counter = Counter(bodyBytes: bodyBytes)
        try await EchoHandler.serve(
            counter,
            { configuration in
                configuration.wall = clock
                configuration.monotonic = clock
                configuration.idleTimeout = .seconds(100_000)
                configuration.headReadTimeout = .seconds(100_000)
            },
            { server in try await body(try RawClient(port: server.address.port), counter, clock) }
        )
    }

    /// The number that a request was answered with.
    private func ask(_ text: String, _ client: RawClient) async throws -> Int? {
        try client.send(text)
        return try await client.reply().text.split(separator: " ").first.flatMap { Int($0) }
    }

    @Test(arguments: [get, "GET /a HTTP/1.1\r\nHost: h\r\nConnection: keep-alive\r\n\r\n"])
    func `identical bytes are answered without the handler while the reply is current`(get: String) async throws {
        try await serve { client, counter, _ in
            var first: [Int?] = []
            for _ in 0..<3 { first.append(try await ask(get, client)) }
            #expect(first == [1, 1, 1] && counter.handled.load(ordering: .relaxed) == 1)
            counter.repeatable.stays.store(false, ordering: .relaxed)
            let second = try await ask(get, client)
            counter.repeatable.stays.store(true, ordering: .relaxed)
            let third = try await ask(get, client)
            #expect(second == 2 && third == 2)
            let repeated = counter.repeatable.repeated.withLock { $0 }
            #expect(repeated.map { "\($0.connection) \($0.index)" } == ["1 2", "1 3", "1 5"])
        }
    }

    @Test(arguments: [
        "GET /a HTTP/1.1\r\nHost: i\r\n\r\n", "GET /a HTTP/1.1\r\nHost: h\r\nX: y\r\n\r\n",
        "get /a HTTP/1.1\r\nHost: h\r\n\r\n",
        "HEAD /a HTTP/1.1\r\nHost: h\r\n\r\n", "\r\nGET /a HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /a HTTP/1.0\r\nHost: h\r\n\r\n", "GET /b HTTP/1.1\r\nHost: h\r\n\r\n",
    ])
    func `a request that differs in one byte goes to the handler`(other: String) async throws {
        try await serve { client, counter, _ in
            _ = try await ask(Self.get, client)
            try client.send(other)
            _ = try await client.reply(isHead: other.hasPrefix("HEAD"))
            #expect(counter.handled.load(ordering: .relaxed) == 2)
        }
    }

    @Test(arguments: [
        "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n",
        "GET /a HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n\r\n",
        "GET /a HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc",
        "GET /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ])
    func `a request with framing fields or of HTTP/1.0 always goes to the handler`(text: String) async throws {
        try await serve { client, counter, _ in
            var numbers: [Int?] = []
            for _ in 0..<3 { numbers.append(try await ask(text, client)) }
            #expect(numbers == [1, 2, 3])
            #expect(counter.repeatable.repeated.withLock { $0.isEmpty })
        }
    }

    @Test func `a body with the bytes of a cached request is treated as a body`() async throws {
        try await serve { client, counter, _ in
            _ = try await ask(Self.get, client)
            // With 100 Continue the body is read separately.
            try client.send(
                "POST /a HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: \(Self.get.utf8.count)\r\n\r\n"
            )
            #expect(try await client.reply().status == 100)
            #expect(try await ask(Self.get, client) == 2)
            #expect(counter.repeatable.repeated.withLock { $0.isEmpty })
        }
    }

    @Test func `fragmented and whole requests are answered in order, with and without a current reply`() async throws {
        try await serve { client, counter, _ in
            _ = try await ask(Self.get, client)
            try client.send(String(Self.get.prefix(9)))
            try client.send(String(Self.get.dropFirst(9)) + Self.get + Self.get)
            var numbers: [String] = []
            for _ in 0..<3 {
                numbers.append(try await client.reply().text)
            }
            #expect(numbers == ["2 ", "3 ", "4 "])
            let last = try #require(try await ask(Self.get, client))
            #expect(last == 4 && counter.handled.load(ordering: .relaxed) == 4)
        }
    }

    @Test func `a repeated reply has the present date`() async throws {
        try await serve { client, counter, clock in
            try client.send(Self.get)
            let first = try await client.reply()
            clock.advance(by: .seconds(86_400))
            try client.send(Self.get)
            let second = try await client.reply()
            #expect(counter.handled.load(ordering: .relaxed) == 1)
            #expect(first.field("Date") == "Mon, 21 Sep 2026 14:13:20 GMT")
            #expect(second.field("Date") == "Tue, 22 Sep 2026 14:13:20 GMT")
            #expect(second.head.count == first.head.count && second.field("X-Extra") == "yes")
        }
    }

    @Test func `a slow reader gets the rest of repeated replies later and in order`() async throws {
        try await serve(bodyBytes: 30_000) { client, counter, _ in
            _ = try await ask(Self.get, client)
            // Each is sent separately, so that most are read separately.
            for _ in 0..<400 { try client.send(Self.get) }
            var numbers: [Int] = []
            for _ in 0..<400 {
                let reply = try await client.reply()
                #expect(reply.body.count >= 30_002)
                numbers.append(reply.text.split(separator: " ").first.flatMap { Int($0) } ?? 0)
            }
            #expect(numbers == numbers.sorted() && numbers.last == counter.handled.load(ordering: .relaxed))
        }
    }
}
