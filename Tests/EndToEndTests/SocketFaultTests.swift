import Larder
import LarderHTTP
import LarderServer
import LarderTesting
import LarderTime
import LarderTransport
import TestSupport
import Testing

@testable import LarderDemo

@Suite("Socket transport and a faulty server, end to end", .oneMinute)
struct SocketFaultTests {
    @Test func `dead keep-alive connections fail no request and repeat no change`() async throws {
        let backend = try MockBackend.startSmall()
        // The clock is frozen, so that timeouts end only by the test.
        let clock = ManualClock(WallTime(seconds: 1_790_000_000))
        backend.main.clock.freeze(at: clock.now)
        let transport = makeTransport()
        let read = TransportRequest(url: backend.url + "/v1/feed?limit=1")
        #expect(try await transport.send(read).status == .ok)
        backend.main.clock.advance(by: .seconds(1))
        try backend.main.set(Fault(.staleConnections))
        #expect(try await transport.send(read).status == .ok)
        let write = TransportRequest(
            method: .post,
            url: backend.url + "/v1/posts",
            fields: [.authorization: "Bearer dev-ana", .contentType: "application/json"],
            body: Array("{\"text\":\"once\"}".utf8)
        )
        #expect(try await transport.send(write).status == .created)
        let sent = await backend.main.journal(JournalFilter("POST", "/v1/posts"))
        #expect(sent.count == 1)
        #expect(await backend.activity() == [])
        await backend.stop()
    }

    @Test func `a reply is complete or an error, whatever breaks`() async throws {
        let backend = try MockBackend.startSmall()
        let transport = SocketTransport(clock: ManualClock())
        let request = TransportRequest(url: backend.url + "/v1/feed?limit=20")
        let whole = try await transport.send(request).body
        var failed = 0
        for seed in UInt64(1)...150 {
            var random = SeededGenerator(seed: seed)
            let cut = FaultAction.truncate(.byte(random.uniform(in: 0..<(whole.count + 400))))
            let actions: [FaultAction] = [
                cut, cut, cut, .truncate(.insideChunkHeader), .truncate(.insideCharacter), .malformedChunk,
                .reset,
                .close, .loseReply(.close), .loseReply(.reset),
            ]
            let action = actions[random.uniform(in: 0..<actions.count)]
            try backend.main.set(Fault(action, when: FaultMatch("GET", "/v1/feed")))
            do throws(TransportError) {
                #expect(try await transport.send(request).body == whole, "seed \(seed): \(action)")
            } catch {
                #expect(error.code == .interrupted, "seed \(seed): \(error)")
                failed += 1
            }
            backend.main.removeFaults()
            #expect(try await transport.send(request).body == whole, "after seed \(seed)")
        }
        #expect(failed > 100)
        #expect(await backend.activity() == [])
        await backend.stop()
    }
}
