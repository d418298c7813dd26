import Glibc
import LarderHTTP
import LarderTime
import Synchronization
import TestSupport
import Testing

@testable import LarderEngine

/// Counts jobs, and stores the count at which a request was handled.
private final class JobCount: ExchangeHandler {
    let jobs = Atomic<Int>(0)
    let atRequest = Atomic<Int>(-1)

    func handle(_ request: Request, _ exchange: Exchange) -> Reply? {
        atRequest.store(jobs.load(ordering: .relaxed), ordering: .relaxed)
        return EchoHandler.reply(to: request)
    }

    func rejected(_ rejection: Rejection) -> Reply { Reply(status: rejection.status) }
    func finished(_ record: ExchangeRecord) {}
}

@Suite("Event loop", .oneMinute)
struct LoopTests {
    @Test func `requests are served between queued jobs`() async throws {
        let handler = JobCount()
        try await EchoHandler.serve(handler) { server in
            let client = try RawClient(port: server.address.port)
            try client.send("GET /first HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try await client.reply().status == 200)
            let (isReached, mayGoOn) = (Signal(), Signal())
            try server.holdingLoop {
                server.loops[0].execute {
                    isReached.set()
                    mayGoOn.wait()
                }
                for _ in 0..<10_000 {
                    server.loops[0].execute {
                        handler.jobs.add(1, ordering: .relaxed)
                        sched_yield()
                    }
                }
            }
            isReached.wait()
            try client.send("GET /second HTTP/1.1\r\nHost: h\r\n\r\n")
            mayGoOn.set()
            #expect(try await client.reply().text == "GET /second ")
            #expect(handler.atRequest.load(ordering: .relaxed) < 10_000)
            // Every job runs eventually.
            await server.passTurn()
            #expect(handler.jobs.load(ordering: .relaxed) == 10_000)
        }
    }

    @Test func `a loop that has stopped without connections has nothing to do, however late it is`() throws {
        var configuration = ServerConfiguration()
        configuration.isStepped = true
        configuration.monotonic = ManualClock()
        let server = try HTTPServer(configuration, handler: EchoHandler())
        let loop = server.loops[0]
        loop.beginStop(grace: .seconds(-60))
        #expect(!loop.step() && loop.untilNextStep == nil)
        loop.end()
    }

    /// The user of a watched descriptor; counts its events.
    private final class CountingUser: DescriptorUser {
        var events = 0
        let act: () -> Void

        init(_ act: @escaping () -> Void = {}) { self.act = act }

        func ready(_ readiness: Readiness) {
            events += 1
            act()
        }
    }

    /// A pair of connected sockets, of which the first one is readable.
    private static func readablePair() -> [Int32] {
        var ends: [Int32] = [-1, -1]
        _ = unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends)
        _ = unsafe Glibc.write(ends[1], "x", 1)
        return ends
    }

    @Test func `a descriptor that is reused within a turn gets no event of its predecessor`() throws {
        var configuration = ServerConfiguration()
        configuration.isStepped = true
        configuration.poller = .poll
        let server = try HTTPServer(configuration, handler: EchoHandler())
        let loop = server.loops[0]
        let pairs = [Self.readablePair(), Self.readablePair()].sorted { $0[0] < $1[0] }
        let silent = Self.readablePair()
        var byte: UInt8 = 0
        _ = unsafe Glibc.read(silent[0], &byte, 1)
        let (first, second) = (pairs[0][0], pairs[1][0])
        let successor = CountingUser()
        let predecessor = CountingUser()
        try loop.watch(second, for: .read, user: predecessor)
        // Its event is the first one of the turn, because its descriptor is the lowest.
        let closing = CountingUser {
            loop.forget(second)
            loop.forget(first)
            _ = dup2(silent[0], second)
            #expect(throws: Never.self) { try loop.watch(second, for: .read, user: successor) }
        }
        try loop.watch(first, for: .read, user: closing)
        _ = loop.step()
        #expect(closing.events == 1 && predecessor.events == 0 && successor.events == 0)
        _ = unsafe Glibc.write(silent[1], "y", 1)
        _ = loop.step()
        #expect(successor.events == 1)
        loop.forget(second)
        for descriptor in pairs.joined() + silent { close(descriptor) }
        loop.end()
    }

    private func canConnect(_ server: HTTPServer) async -> Bool {
        guard let client = try? RawClient(port: server.address.port) else { return false }
        guard (try? client.send("GET /a HTTP/1.1\r\nHost: h\r\n\r\n")) != nil else { return false }
        return (try? await client.reply().status) == 200
    }

    @Test(arguments: [1, 2])
    func `a port that is paused and immediately resumed accepts connections`(loops: Int) async throws {
        try await EchoHandler.serve(EchoHandler(), { $0.loops = loops }) { server in
            for _ in 0..<20 {
                try server.holdingLoop {
                    server.pauseListening()
                    server.resumeListening()
                }
                await server.passTurn()
                await server.passTurn()
                #expect(await canConnect(server))
            }
        }
    }

    @Test func `a port that was paused twice accepts connections after the second resume`() async throws {
        try await EchoHandler.serve(EchoHandler()) { server in
            server.pauseListening()
            server.pauseListening()
            await server.passTurn()
            #expect(throws: RawClient.Failure.self) { try RawClient(port: server.address.port) }
            server.resumeListening()
            await server.passTurn()
            #expect(throws: RawClient.Failure.self) { try RawClient(port: server.address.port) }
            server.resumeListening()
            await server.passTurn()
            #expect(await canConnect(server))
        }
    }

    @Test func `a port taken by another listener is reopened when it is free`() async throws {
        let clock = ManualClock()
        try await EchoHandler.serve(EchoHandler(), { $0.monotonic = clock }) { server in
            server.pauseListening()
            await server.passTurn()
            var other: Listener? = try Listener(host: "127.0.0.1", port: server.address.port)
            server.resumeListening()
            await server.passTurn()
            _ = other?.address
            other = nil
            clock.advance(by: .seconds(1))
            await server.passTurn()
            await server.passTurn()
            #expect(await canConnect(server))
        }
    }
}
