import LarderHTTP
import LarderTesting
import LarderTime
import LarderTransport
import TestSupport
import Testing

@Suite("Event stream client", .oneMinute)
struct EventStreamClientTests {
    private let stream: Fields = [.contentType: "text/event-stream; charset=utf-8"]

    private func code(_ body: () async throws(EventStreamError) -> Void) async -> ErrorCode<EventStreamError>? {
        do throws(EventStreamError) {
            try await body()
            return nil
        } catch { return error.code }
    }

    private func bytes(_ text: String) -> ScriptedTransport.Reply.Step { .bytes(Array(text.utf8)) }

    @Test func `events are delivered as they arrive, and the sequence ends with the stream`() async throws {
        let gate = TransportGate()
        let steps = [bytes("data: 1\nid: a\n\nda"), .gate(gate), bytes("ta: 2\n\nid: c\n\n")]
        let transport = ScriptedTransport(script: [ScriptedTransport.Reply(fields: stream, steps)])
        let events = try await EventStreamClient(transport, clock: ManualClock()).open("http://h/", lastEventID: "z")
        #expect(try await events.receive() == EventStream.Event(data: "1", id: "a"))
        gate.open()
        #expect(try await events.receive() == EventStream.Event(data: "2", id: "a"))
        #expect(try await events.receive() == nil)
        #expect(try await events.receive() == nil)
        let request = try #require(transport.requests.first)
        #expect(request.fields[.lastEventID] == "z" && request.fields[.accept] == "text/event-stream")
    }

    @Test func `a rejection has its status, and 204 ends for good`() async throws {
        let transport = ScriptedTransport(script: [
            .text("{}", status: .unauthorized, fields: [.contentType: "application/problem+json"]),
            .text("<html>", fields: [.contentType: "text/html"]), .text("", status: .noContent),
            .failure(TransportError(.unreachable, "down")),
        ])
        let client = EventStreamClient(transport, clock: ManualClock())
        do {
            _ = try await client.open("http://h/")
            Issue.record("it opened")
        } catch {
            #expect(error.code == .rejected && error.status == .unauthorized)
        }
        for expected in [ErrorCode<EventStreamError>.rejected, .finished, .disconnected] {
            #expect(
                await code { () async throws(EventStreamError) in _ = try await client.open("http://h/") } == expected
            )
        }
    }

    @Test func `comments count as activity, and silence ends the stream`() async throws {
        let clock = ManualClock()
        let gate = TransportGate()
        let steps = [bytes("data: 1\n\n"), .gate(gate), bytes(": alive\n\n"), .gate(gate)]
        let transport = ScriptedTransport(script: [ScriptedTransport.Reply(fields: stream, steps)])
        let events = try await EventStreamClient(transport, clock: clock).open("http://h/")
        let reading = Task {
            var data: [String] = []
            let end = await code { () async throws(EventStreamError) in
                while let event = try await events.receive() { data.append(event.data) }
            }
            return (data, end)
        }
        await gate.waitForHeld()
        try await clock.waitForSleepers()
        clock.advance(by: .seconds(74))
        gate.release()
        await gate.waitForHeld()
        try await clock.waitForSleepers()
        // The comment has restarted the silence timeout.
        await rest()
        #expect(clock.nextWakeUp == clock.uptime + .seconds(75))
        clock.advance(by: .seconds(74))
        #expect(clock.sleeperCount == 1)
        clock.advance(by: .seconds(1))
        let (data, end) = await reading.value
        #expect(data == ["1"] && end == .silent)
        #expect(transport.inFlightCount == 0)
    }

    @Test func `a broken stream delivers earlier events, and then the same error each time`() async throws {
        let steps = [bytes("data: 1\n\ndata: 2"), .failure(TransportError(.interrupted, "gone"))]
        let transport = ScriptedTransport(script: [ScriptedTransport.Reply(fields: stream, steps)])
        let events = try await EventStreamClient(transport, clock: ManualClock()).open("http://h/")
        #expect(try await events.receive()?.data == "1")
        for _ in 0..<2 {
            #expect(await code { () async throws(EventStreamError) in _ = try await events.receive() } == .disconnected)
        }
    }

    @Test func `cancelling while opening or reading closes the connection`() async throws {
        let gate = TransportGate()
        let transport = ScriptedTransport(script: [
            .text("").held(by: gate), ScriptedTransport.Reply(fields: stream, [.silence]),
        ])
        let client = EventStreamClient(transport, clock: ManualClock())
        let opening = Task {
            await code { () async throws(EventStreamError) in _ = try await client.open("http://h/") }
        }
        await gate.waitForHeld()
        opening.cancel()
        #expect(await opening.value == .cancelled)
        let reading = Task {
            await code { () async throws(EventStreamError) in
                _ = try await client.open("http://h/").receive()
            }
        }
        await transport.waitForRequests(2)
        reading.cancel()
        #expect(await reading.value == .cancelled)
        #expect(transport.inFlightCount == 0 && transport.abandonedCount == 2)
    }

    @Test func `a missing head fails after its timeout`() async throws {
        let clock = ManualClock()
        let transport = ScriptedTransport(script: [.text("").held(by: TransportGate())])
        let client = EventStreamClient(transport, clock: clock)
        let opening = Task {
            await code { () async throws(EventStreamError) in _ = try await client.open("http://h/") }
        }
        try await clock.waitForSleepers()
        clock.advance(by: .seconds(15))
        #expect(await opening.value == .silent)
    }
}
