import LarderHTTP
import LarderTesting
import LarderTime
import TestSupport
import Testing

@testable import LarderTransport

@Suite("Host gate", .oneMinute)
struct HostGateTests {
    private let clock = ManualClock()

    private func reply(_ status: Status, _ fields: Fields = Fields()) -> ScriptedTransport.Reply {
        .text("", status: status, fields: fields)
    }

    @Test(arguments: [429, 503], [false, true])
    func `nothing is sent to a host before its Retry-After, and everything to others`(
        status: Int,
        isStream: Bool
    ) async throws {
        let transport = ScriptedTransport { request, number throws(TransportError) in
            number == 1 ? self.reply(Status(code: status), [.retryAfter: "30"]) : self.reply(.ok)
        }
        let gate = HostGate(clock: clock, wall: clock)
        let guarded = gate.guarding(transport)
        func send(_ url: String, isUserInitiated: Bool = false) async throws(TransportError) -> Status {
            var request = TransportRequest(url: url)
            request.isUserInitiated = isUserInitiated
            return isStream ? try await guarded.open(request).status : try await guarded.send(request).status
        }
        #expect(try await send("http://api/a").code == status)
        clock.advance(by: .seconds(10))
        let error = await #expect(throws: TransportError.self) { try await send("http://API:80/b") }
        #expect(error?.code == .unreachable && error?.retryAfter == .seconds(20))
        #expect(gate.wait(for: "http://api/c") == .seconds(20) && gate.wait(for: "http://other/") == nil)
        #expect(try await send("http://other/") == .ok)
        #expect(try await send("http://api:8080/") == .ok)
        #expect(try await send("http://api/b", isUserInitiated: true) == .ok)
        await #expect(throws: TransportError.self) { try await send("http://api/b") }
        clock.advance(by: .seconds(20))
        #expect(try await send("http://api/b") == .ok)
        #expect(transport.requests.count == 5)
    }

    @Test(arguments: [(500, "30"), (503, nil), (429, "nonsense"), (503, "0"), (200, "30")] as [(Int, String?)])
    func `other replies close no gate`(status: Int, retryAfter: String?) async throws {
        var fields = Fields()
        if let retryAfter { fields.set(.retryAfter, retryAfter) }
        let transport = ScriptedTransport { [fields] _, _ throws(TransportError) in
            self.reply(Status(code: status), fields)
        }
        let guarded = HostGate(clock: clock, wall: clock).guarding(transport)
        for _ in 0..<2 { _ = try await guarded.send(TransportRequest(url: "http://api/")) }
    }

    @Test(arguments: [false, true])
    func `a redirect closes the gate of the host that answered`(isStream: Bool) async throws {
        let transport = ScriptedTransport { request, _ throws(TransportError) in
            request.url.hasPrefix("http://files/")
                ? self.reply(.serviceUnavailable, [.retryAfter: "30"])
                : self.reply(Status(code: 302), [.location: "http://files/a"])
        }
        let gate = HostGate(clock: clock, wall: clock)
        let guarded = gate.guarding(transport)
        let request = TransportRequest(url: "http://api/a")
        let status = isStream ? try await guarded.open(request).status : try await guarded.send(request).status
        #expect(status == .serviceUnavailable)
        #expect(gate.wait(for: "http://api/") == nil && gate.wait(for: "http://files/") == .seconds(30))
    }

    @Test func `a captive portal closes no gate`() async throws {
        let transport = ScriptedTransport { _, _ throws(TransportError) in
            self.reply(.serviceUnavailable, [.retryAfter: "30", .contentType: "text/html"])
        }
        let gate = HostGate(clock: clock, wall: clock)
        _ = try await gate.guarding(transport).send(
            TransportRequest(url: "http://api/", fields: [.accept: "application/json"])
        )
        #expect(gate.wait(for: "http://api/") == nil)
    }

    @Test func `a shorter wait does not replace a longer one, and the number of hosts is bounded`() async throws {
        let transport = ScriptedTransport { request, number throws(TransportError) in
            self.reply(.serviceUnavailable, [.retryAfter: "\(1_000 - number)"])
        }
        let gate = HostGate(clock: clock, wall: clock)
        let guarded = gate.guarding(transport)
        for _ in 0..<2 {
            var request = TransportRequest(url: "http://api/")
            request.isUserInitiated = true
            _ = try await guarded.send(request)
        }
        #expect(gate.wait(for: "http://api/") == .seconds(999))
        for host in 0..<300 { _ = try await guarded.send(TransportRequest(url: "http://\(host)/")) }
        #expect((0..<300).count { gate.wait(for: "http://\($0)/") != nil } == 255)
    }
}
