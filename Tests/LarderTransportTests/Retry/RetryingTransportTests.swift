import LarderHTTP
import LarderTesting
import LarderTime
import LarderTransport
import TestSupport
import Testing

@Suite("Retrying transport", .oneMinute)
struct RetryingTransportTests {
    private let get = TransportRequest(url: "http://h/")

    private func make(
        _ scripted: ScriptedTransport,
        _ clock: ManualClock,
        policy: RetryPolicy = RetryPolicy(),
        budget: RetryPolicy.Budget = RetryPolicy.Budget()
    ) -> RetryingTransport {
        RetryingTransport(
            scripted,
            policy: policy,
            budget: budget,
            clock: clock,
            wall: clock,
            random: SeededGenerator(seed: 1)
        )
    }

    @Test func `a transient response is retried after its delay`() async throws {
        let clock = ManualClock()
        let scripted = ScriptedTransport(script: [
            .text("", status: Status(code: 503), fields: [.retryAfter: "20"]),
            .failure(TransportError(.interrupted, "gone")),
            .text("there"),
        ])
        let transport = make(scripted, clock)
        let sending = Task { try await transport.send(get) }
        try await clock.waitForSleepers()
        clock.advance(by: .milliseconds(19_999))
        #expect(scripted.requests.count == 1)
        clock.advance(by: .milliseconds(251))
        await scripted.waitForRequests(2)
        try await clock.waitForSleepers()
        clock.advance(by: .seconds(1))
        #expect(try await sending.value.body == Array("there".utf8))
        #expect(scripted.requests == [get, get, get])
    }

    @Test func `a request that is not idempotent is sent once, and its failure is returned`() async throws {
        let clock = ManualClock()
        let scripted = ScriptedTransport([.failure(TransportError(.interrupted, "gone"))])
        let post = TransportRequest(method: .post, url: "http://h/")
        do {
            _ = try await make(scripted, clock).send(post)
            Issue.record("there was an answer")
        } catch { #expect(error.code == .interrupted) }
        #expect(scripted.requests.count == 1 && clock.sleeperCount == 0)
    }

    @Test func `the last response is returned after the last attempt`() async throws {
        let clock = ManualClock()
        let scripted = ScriptedTransport { _, number in .text("\(number)", status: Status(code: 503)) }
        let transport = make(scripted, clock, policy: RetryPolicy(attemptsMaximum: 3, base: .zero))
        #expect(try await transport.send(get).body == Array("3".utf8))
    }

    @Test func `the budget limits the requests to a failing server`() async throws {
        let clock = ManualClock()
        let scripted = ScriptedTransport { _, _ in .failure(TransportError(.unreachable, "down")) }
        let transport = make(
            scripted,
            clock,
            policy: RetryPolicy(base: .zero),
            budget: RetryPolicy.Budget(share: 0.1, reserve: 5)
        )
        for _ in 0..<100 { _ = try? await transport.send(get) }
        #expect((100...115).contains(scripted.requests.count))
        #expect(transport.retriesLeft <= 1)
    }

    @Test func `a stream with a failed head is opened again, and the failed one is closed`() async throws {
        let clock = ManualClock()
        let scripted = ScriptedTransport(script: [
            ScriptedTransport.Reply(status: Status(code: 503), [.bytes([1]), .silence]),
            ScriptedTransport.Reply([.bytes([2]), .failure(TransportError(.interrupted, "gone"))]),
        ])
        let transport = make(scripted, clock)
        let opening = Task { try await transport.open(get) }
        try await clock.waitForSleepers()
        #expect(scripted.inFlightCount == 0 && scripted.abandonedCount == 1)
        clock.advance(by: .seconds(1))
        var body = try await opening.value.body.makeAsyncIterator()
        #expect(try await body.next() == [2])
        // The reader has received a part of truncated content, so the transport does not retry.
        await #expect(throws: TransportError.self) { try await body.next() }
        #expect(scripted.requests.count == 2)
    }

    @Test func `a cancelled wait ends at once`() async throws {
        let clock = ManualClock()
        let scripted = ScriptedTransport { _, _ in .text("", status: Status(code: 503)) }
        let transport = make(scripted, clock)
        let sending = Task { try await transport.send(get) }
        try await clock.waitForSleepers()
        sending.cancel()
        do {
            _ = try await sending.value
            Issue.record("there was an answer")
        } catch { #expect((error as? TransportError)?.code == .cancelled) }
        #expect(scripted.requests.count == 1 && clock.sleeperCount == 0)
    }

    @Test func `a body that was read and cannot be replayed is not retried, and the error says so`() async throws {
        let scripted = ScriptedTransport(script: [
            .failure(TransportError(.interrupted, "gone")), .text("", status: Status(code: 503)),
        ])
        let transport = make(scripted, ManualClock())
        var request = TransportRequest(method: .put, url: "http://h/")
        request.upload = RequestBody(pieces(["a"]))
        do {
            _ = try await transport.send(request)
            Issue.record("no error")
        } catch {
            #expect(error.code == .interrupted && error.description.contains("read only once"), "\(error)")
        }
        request.upload = RequestBody(pieces(["b"]))
        #expect(try await transport.send(request).status == Status(code: 503))
        #expect(scripted.requests.count == 2 && scripted.uploads == [Array("a".utf8), Array("b".utf8)])
    }

    @Test func `a body that can be replayed is retried`() async throws {
        let clock = ManualClock()
        let scripted = ScriptedTransport(script: [.failure(TransportError(.interrupted, "gone")), .text("there")])
        let transport = make(scripted, clock)
        var request = TransportRequest(method: .put, url: "http://h/")
        request.upload = RequestBody(replaying: { pieces(["a", "b"]) })
        let sending = Task { [request] in try await transport.send(request) }
        try await clock.waitForSleepers()
        clock.advance(by: .seconds(1))
        #expect(try await sending.value.body == Array("there".utf8))
        #expect(scripted.uploads == [Array("ab".utf8), Array("ab".utf8)])
    }
}
