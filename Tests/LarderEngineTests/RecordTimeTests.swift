import Glibc
import LarderHTTP
import LarderTime
import Synchronization
import TestSupport
import Testing

@testable import LarderEngine

@Suite("The times of a record", .oneMinute)
struct RecordTimeTests {
    /// Is an hour ahead as soon as the client can read a reply.
    private final class ReplyClock: MonotonicClock {
        let client = Atomic<Int32>(-1)

        var uptime: MonotonicTime {
            var state = pollfd(fd: client.load(ordering: .acquiring), events: Int16(POLLIN), revents: 0)
            let hasReply = unsafe poll(&state, 1, 0) == 1
            return MonotonicTime(nanoseconds: hasReply ? 3_600_000_000_000 : 1)
        }

        func sleep(until time: MonotonicTime) async throws(CancellationError) {}
    }

    private final class Handler: ExchangeHandler {
        let records = Mutex<[ExchangeRecord]>([])

        func handle(_ request: Request, _ exchange: Exchange) -> Reply? {
            let head = ReplyHead(.ok, [.contentLength: "0"])
            exchange.send(head.bytes + [0x0D, 0x0A])
            exchange.end(.persist, Reply(head, body: .empty))
            return nil
        }

        func rejected(_ rejection: Rejection) -> Reply { Reply(status: rejection.status) }
        func finished(_ record: ExchangeRecord) { records.withLock { $0.append(record) } }
    }

    @Test
    func `an exchange ends before the client has its reply, so that no client can be early by a wait that it kept`()
        async throws
    {
        let (clock, handler) = (ReplyClock(), Handler())
        try await EchoHandler.serve(handler, { $0.monotonic = clock }) { server in
            let client = try RawClient(port: server.address.port)
            clock.client.store(client.descriptor, ordering: .releasing)
            try client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            // The reply stays unread until then.
            while handler.records.withLock({ $0.isEmpty }) { await server.passTurn() }
            #expect(try await client.reply().status == 200)
            #expect(handler.records.withLock { $0.map(\.ended) } == [MonotonicTime(nanoseconds: 1)])
            clock.client.store(-1, ordering: .releasing)
        }
    }
}
