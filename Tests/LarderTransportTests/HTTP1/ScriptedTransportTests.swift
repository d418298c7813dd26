import LarderHTTP
import LarderTesting
import LarderTime
import LarderTransport
import TestSupport
import Testing

@Suite("Scripted transport", .oneMinute)
struct ScriptedTransportTests {
    private let get = TransportRequest(url: "http://h/")

    @Test func `a gate lets a later reply overtake an earlier one`() async throws {
        let gate = TransportGate()
        let transport = ScriptedTransport(script: [.text("old").held(by: gate), .text("new")])
        let old = Task { try await transport.send(get) }
        await gate.waitForHeld()
        #expect(try await transport.send(get).body == Array("new".utf8))
        #expect(transport.inFlightCount == 1)
        gate.release()
        #expect(try await old.value.body == Array("old".utf8))
        #expect(transport.inFlightCount == 0 && transport.abandonedCount == 0)
    }

    @Test func `content arrives in steps and fails at the scripted step`() async throws {
        let gate = TransportGate()
        let transport = ScriptedTransport(script: [
            ScriptedTransport.Reply([
                .bytes([1]), .gate(gate), .bytes([2]), .failure(TransportError(.interrupted, "gone")),
            ])
        ])
        let stream = try await transport.open(get)
        let body = stream.body
        #expect(try await body.next() == [1])
        gate.open()
        #expect(try await body.next() == [2])
        for _ in 0..<2 {
            do {
                _ = try await body.next()
                Issue.record("it went on")
            } catch { #expect(error.code == .interrupted) }
        }
    }

    @Test func `a request can be cancelled at a gate, during silence and before its start`() async throws {
        let gate = TransportGate()
        let transport = ScriptedTransport(script: [
            .text("x").held(by: gate), ScriptedTransport.Reply([.silence]), .text("y"),
        ])
        for round in 0..<3 {
            let task = Task {
                if round == 2 { unsafe withUnsafeCurrentTask { unsafe $0?.cancel() } }
                _ = try await transport.send(get)
            }
            if round == 0 { await gate.waitForHeld() } else { await transport.waitForRequests(round + 1) }
            task.cancel()
            do {
                try await task.value
                Issue.record("round \(round) was answered")
            } catch { #expect((error as? TransportError)?.code == .cancelled) }
        }
        #expect(gate.heldCount == 0 && transport.inFlightCount == 0 && transport.abandonedCount == 3)
    }

    @Test func `a body that is released early counts as abandoned`() async throws {
        let transport = ScriptedTransport(script: [ScriptedTransport.Reply([.bytes([1]), .bytes([2])])])
        do {
            let stream = try await transport.open(get)
            let body = stream.body
            #expect(try await body.next() == [1])
        }
        #expect(transport.inFlightCount == 0 && transport.abandonedCount == 1)
    }

    @Test func `the body limit is enforced, and requests after the script are unreachable`() async throws {
        let transport = ScriptedTransport(script: [.text("12345")])
        for code in [ErrorCode<TransportError>.tooLarge, .unreachable] {
            do {
                _ = try await transport.send(TransportRequest(url: "http://h/", bodyLimit: 4))
                Issue.record("it was answered")
            } catch { #expect(error.code == code) }
        }
    }
}
