import LarderHTTP
import LarderTesting
import LarderTime
import Synchronization
import TestSupport
import Testing

@testable import LarderTransport

extension HostGate {
    fileprivate func wait(for url: String) -> Duration? { wait(for: TransportRequest(url: url)) }
}

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
        clock.advance(by: .seconds(20))
        #expect(try await send("http://api/b") == .ok)
        #expect(transport.requests.count == 4)
    }

    @Test(arguments: [429, 503], ["86400", "9223372036854775807", "Fri, 31 Dec 9999 23:59:59 GMT"])
    func `a host is never held for more than an hour`(status: Int, retryAfter: String) async throws {
        let gate = HostGate(clock: clock, wall: clock)
        let transport = guarded(gate, [Status(code: status)], [.retryAfter: retryAfter])
        _ = try await transport.send(TransportRequest(url: "http://api/"))
        #expect(gate.wait(for: "http://api/") == .seconds(3_600))
    }

    /// A request of a person, which is sent although its host has asked to wait.
    private var byPerson: TransportRequest {
        var request = TransportRequest(url: "http://api/")
        request.isUserInitiated = true
        return request
    }

    @Test(arguments: [200, 204, 304])
    func `a success of a request that was sent after the overload opens the gate`(status: Int) async throws {
        let transport = ScriptedTransport(script: [
            reply(.serviceUnavailable, [.retryAfter: "3000"]), reply(Status(code: status)),
            reply(.serviceUnavailable),
        ])
        let gate = HostGate(clock: clock, wall: clock, random: { 0.5 })
        let guarded = gate.guarding(transport)
        _ = try await guarded.send(byPerson)
        #expect(gate.wait(for: "http://api/") == .seconds(3_000))
        _ = try await guarded.send(byPerson)
        #expect(gate.wait(for: "http://api/") == nil)
        // The back-off begins anew.
        _ = try await guarded.send(byPerson)
        #expect(gate.wait(for: "http://api/") == .milliseconds(500))
    }

    @Test(arguments: [302, 404, 500])
    func `a reply that is no success leaves the gate closed`(status: Int) async throws {
        let transport = ScriptedTransport(script: [
            reply(.serviceUnavailable, [.retryAfter: "30"]), reply(Status(code: status)),
        ])
        let gate = HostGate(clock: clock, wall: clock)
        let guarded = gate.guarding(transport)
        _ = try await guarded.send(byPerson)
        _ = try await guarded.send(byPerson)
        #expect(gate.wait(for: "http://api/") == .seconds(30))
    }

    @Test func `a success of a request that was sent before the overload leaves the gate closed`() async throws {
        let held = TransportGate()
        let transport = ScriptedTransport { _, number throws(TransportError) in
            number == 1
                ? self.reply(.ok).held(by: held) : self.reply(.serviceUnavailable, [.retryAfter: "30"])
        }
        let gate = HostGate(clock: clock, wall: clock)
        let guarded = gate.guarding(transport)
        async let early = guarded.send(TransportRequest(url: "http://api/early"))
        await held.waitForHeld(1)
        _ = try await guarded.send(TransportRequest(url: "http://api/late"))
        held.open()
        #expect(try await early.status == .ok)
        #expect(gate.wait(for: "http://api/") == .seconds(30))
    }

    @Test(arguments: [(500, "30"), (503, "0"), (200, "30")] as [(Int, String?)])
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

    @Test func `requests of another scope and of none pass a closed gate`() async throws {
        let transport = ScriptedTransport { request, _ throws(TransportError) in
            request.url.hasSuffix("/send") ? self.reply(.tooManyRequests, [.retryAfter: "30"]) : self.reply(.ok)
        }
        let gate = HostGate(
            clock: clock,
            wall: clock,
            scope: { request in
                request.url.hasSuffix("/sync") ? nil : request.url.hasSuffix("/send") ? "send" : ""
            }
        )
        let guarded = gate.guarding(transport)
        for path in ["send", "read", "sync"] {
            _ = try await guarded.send(TransportRequest(url: "http://api/\(path)"))
        }
        await #expect(throws: TransportError.self) { try await guarded.send(TransportRequest(url: "http://api/send")) }
        #expect(gate.wait(for: "http://api/send") == .seconds(30) && gate.wait(for: "http://api/read") == nil)
        #expect(transport.requests.map { $0.url.suffix(4) } == ["send", "read", "sync"])
    }

    @Test(arguments: [false, true])
    func `the content of a reply can say how long to wait`(isStream: Bool) async throws {
        let transport = ScriptedTransport { request, _ throws(TransportError) in
            let fields: Fields = request.url == "http://a/" ? Fields() : [.retryAfter: "3"]
            return .text("9", status: .tooManyRequests, fields: fields)
        }
        let gate = HostGate(
            clock: clock,
            wall: clock,
            retryAfter: { reply in Int(String(decoding: reply.body, as: UTF8.self)).map { .seconds($0) } }
        )
        let guarded = gate.guarding(transport)
        for url in ["http://a/", "http://b/"] {
            let request = TransportRequest(url: url)
            let reply = isStream ? try await guarded.open(request).whole() : try await guarded.send(request)
            #expect(reply.body == Array("9".utf8))
        }
        #expect(gate.wait(for: "http://a/") == .seconds(9))
        #expect(gate.wait(for: "http://b/") == .seconds(3), "The field comes first.")
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

    /// Statuses in order. Half of each longest wait is drawn.
    private func guarded(_ gate: HostGate, _ statuses: [Status], _ fields: Fields = Fields()) -> any Transport {
        gate.guarding(ScriptedTransport(script: statuses.map { reply($0, fields) }))
    }

    @Test(arguments: [Status.tooManyRequests, .serviceUnavailable], [nil, "nonsense"])
    func `an overload without Retry-After holds the host with jitter, longer each time until another reply`(
        status: Status,
        retryAfter: String?
    ) async throws {
        var fields = Fields()
        if let retryAfter { fields.set(.retryAfter, retryAfter) }
        let gate = HostGate(clock: clock, wall: clock, random: { 0.5 })
        let transport = guarded(gate, Array(repeating: status, count: 8) + [.notFound, status], fields)
        let request = TransportRequest(url: "http://api/")
        for count in 0..<8 {
            #expect(try await transport.send(request).status == status)
            let wait: Duration = .milliseconds(min(60_000, 1_000 << count) / 2)
            #expect(gate.wait(for: "http://api/other") == wait)
            let error = await #expect(throws: TransportError.self) { try await transport.send(request) }
            #expect(error?.code == .unreachable && error?.retryAfter == wait)
            clock.advance(by: wait)
        }
        #expect(try await transport.send(request).status == .notFound)
        #expect(try await transport.send(request).status == status)
        #expect(gate.wait(for: "http://api/") == .milliseconds(500))
    }

    @Test func `overloads of requests that were sent together count once`() async throws {
        let held = TransportGate()
        let transport = ScriptedTransport { _, _ throws(TransportError) in
            self.reply(.serviceUnavailable).held(by: held)
        }
        let gate = HostGate(clock: clock, wall: clock, random: { 0.5 })
        let guarded = gate.guarding(transport)
        async let first = guarded.send(TransportRequest(url: "http://api/1"))
        async let second = guarded.send(TransportRequest(url: "http://api/2"))
        async let third = guarded.send(TransportRequest(url: "http://api/3"))
        await held.waitForHeld(3)
        clock.advance(by: .milliseconds(10))
        held.open()
        _ = try await (first, second, third)
        #expect(gate.wait(for: "http://api/") == .milliseconds(500))
    }

    /// Rejects every handshake with a status.
    private struct RejectingConnector: WebSocketConnector {
        let status: Status
        let fields: Fields
        var body: [UInt8] = []
        let counted: @Sendable () -> Void

        func connect(
            _ request: WebSocketClient.Request,
            _ configuration: WebSocketClient.Configuration
        ) async throws(WebSocketError) -> any WebSocketConnection {
            counted()
            throw WebSocketError(.rejected, "no", status: status, fields: fields, body: body)
        }
    }

    @Test(arguments: [nil, "30"])
    func `a WebSocket handshake closes the gate of its host, and waits at it`(retryAfter: String?) async throws {
        let count = Mutex(0)
        var fields = Fields()
        if let retryAfter { fields.set(.retryAfter, retryAfter) }
        let gate = HostGate(clock: clock, wall: clock, random: { 0.5 })
        let client = gate.guarding(
            WebSocketClient(
                connector: RejectingConnector(status: .serviceUnavailable, fields: fields) {
                    count.withLock { $0 += 1 }
                }
            )
        )
        let wait: Duration = retryAfter == nil ? .milliseconds(500) : .seconds(30)
        let first = await #expect(throws: WebSocketError.self) { try await client.connect("ws://api/live") }
        #expect(first?.code == .rejected && first?.retryAfter == wait && gate.wait(for: "http://api/a") == wait)
        let second = await #expect(throws: WebSocketError.self) { try await client.connect("ws://api/live") }
        #expect(second?.code == .unreachable && second?.retryAfter == wait && count.withLock { $0 } == 1)
        clock.advance(by: wait)
        _ = await #expect(throws: WebSocketError.self) { try await client.connect("ws://api/live") }
        #expect(count.withLock { $0 } == 2)
        // Replies to other requests hold handshakes as well.
        _ = try await gate.guarding(ScriptedTransport(script: [reply(.tooManyRequests, [.retryAfter: "99"])]))
            .send(TransportRequest(url: "http://other/"))
        let third = await #expect(throws: WebSocketError.self) { try await client.connect("WS://other:80/live") }
        #expect(third?.retryAfter == .seconds(99) && count.withLock { $0 } == 2)
    }

    @Test func `the content of a rejected handshake can say how long to wait, also in a scope of its fields`() async {
        let gate = HostGate(
            clock: clock,
            wall: clock,
            random: { 0.5 },
            scope: { $0.fields["X-Tenant"] },
            retryAfter: { reply in Int(String(decoding: reply.body, as: UTF8.self)).map { .seconds($0) } }
        )
        let connector = RejectingConnector(status: .tooManyRequests, fields: Fields(), body: Array("120".utf8)) {}
        let client = gate.guarding(WebSocketClient(connector: connector))
        let error = await #expect(throws: WebSocketError.self) {
            try await client.connect("ws://api/live", fields: ["X-Tenant": "blue"])
        }
        #expect(error?.retryAfter == .seconds(120))
    }
}
