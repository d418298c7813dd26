import Larder
import LarderHTTP
import LarderServer
import LarderTesting
import LarderTime
import LarderTransport
import TestSupport
import Testing

@testable import LarderDemo

@Suite("Live channels, end to end", .oneMinute)
struct LiveTests {
    private let path = "/v1/live"

    private func url(_ backend: MockBackend, _ path: String = "/v1/live") -> String {
        "ws" + backend.url.dropFirst(4) + path
    }

    private func post(_ backend: MockBackend, _ texts: String...) {
        for text in texts {
            backend.main.perform(ScriptedAction("POST", "/v1/posts", as: "ana", body: "{\"text\":\"\(text)\"}"))
        }
    }

    private func set(_ backend: MockBackend, _ path: String = "/v1/live", _ change: (inout LiveFault) -> Void) throws {
        var fault = LiveFault()
        change(&fault)
        try backend.main.set(Fault(id: "live", .live(fault), when: FaultMatch("GET", path)))
    }

    private func text(_ message: WebSocketClient.Message?) -> String {
        if case .text(let text)? = message { text } else { "\(String(describing: message))" }
    }

    private func code(_ body: () async throws(WebSocketError) -> Void) async -> WebSocketError? {
        do throws(WebSocketError) {
            try await body()
            return nil
        } catch { return error }
    }

    @Test func `changes arrive over a WebSocket, and both sides complete the closing handshake`() async throws {
        let backend = try MockBackend.startSmall()
        let socket = try await SocketTransport(clock: ManualClock()).webSockets().connect(
            url(backend),
            subprotocols: ["other", "larder.live.v1"]
        )
        #expect(socket.subprotocol == "larder.live.v1")
        #expect(text(try await socket.receive()).contains("\"hello\""))
        post(backend, "one", "two")
        #expect(text(try await socket.receive()).contains("\"one\""))
        #expect(text(try await socket.receive()).contains("\"two\""))
        try await socket.ping()
        try await socket.send("{\"type\":\"ping\"}")
        #expect(text(try await socket.receive()) == "{\"type\":\"pong\"}")
        #expect(await socket.close()?.code == 1_000)
        #expect(await backend.activity() == [])
        await backend.stop()
    }

    @Test func `a forbidden frame is answered with a close code`() async throws {
        let backend = try MockBackend.startSmall()
        let socket = try await SocketTransport(clock: ManualClock()).webSockets().connect(url(backend))
        try await socket.send("nonsense")
        while try await socket.receive() != nil {}
        #expect(socket.closing?.code == 1_008 && socket.closing?.reason != "")
        #expect(await backend.activity() == [])
        await backend.stop()
    }

    @Test func `a rejected upgrade reports its status and problem`() async throws {
        let backend = try MockBackend.startSmall()
        let address = url(backend)
        let client = SocketTransport(clock: ManualClock()).webSockets()
        let foreign = await code { () async throws(WebSocketError) in
            _ = try await client.connect(address, fields: [.authorization: "Bearer wrong"])
        }
        #expect(foreign?.code == .rejected && foreign?.status == .unauthorized)
        let problem = String(decoding: foreign?.body ?? [], as: UTF8.self)
        #expect(problem.contains("\"status\":401"))
        var busy = CannedReply(status: 503)
        busy.retryAfter = .seconds(7)
        try backend.main.set(Fault(id: "busy", .respond(busy), when: FaultMatch("GET", path)))
        let rejected = await code { () async throws(WebSocketError) in _ = try await client.connect(address) }
        #expect(rejected?.status == .serviceUnavailable && rejected?.fields[.retryAfter] == "7")
        try backend.main.set(Fault(id: "busy", .reset, when: FaultMatch("GET", path)))
        let reset = await code { () async throws(WebSocketError) in _ = try await client.connect(address) }
        #expect(reset?.code == .interrupted)
        #expect(await backend.activity() == [])
        await backend.stop()
        let gone = await code { () async throws(WebSocketError) in _ = try await client.connect(address) }
        #expect(gone?.code == .unreachable)
    }

    @Test func `an end with a close code is a close, and one without is an error`() async throws {
        let backend = try MockBackend.startSmall()
        let client = SocketTransport(clock: ManualClock()).webSockets()
        for closeCode in [4_242, nil] {
            try set(backend) {
                $0.endAfterFrames = 1
                $0.closeCode = closeCode
            }
            let socket = try await client.connect(url(backend))
            _ = try await socket.receive()
            post(backend, "last")
            #expect(text(try await socket.receive()).contains("\"last\""))
            let end = await code { () async throws(WebSocketError) in
                let none = try await socket.receive()
                #expect(none == nil)
            }
            #expect(end?.code == (closeCode == nil ? .interrupted : nil))
            #expect(socket.closing?.code == closeCode.map { UInt16($0) })
        }
        #expect(await backend.activity() == [])
        await backend.stop()
    }

    @Test func `lost, duplicated and late frames are delivered unchanged`() async throws {
        let backend = try MockBackend.startSmall()
        let client = SocketTransport(clock: ManualClock()).webSockets()
        try set(backend) { $0.duplicate = 1 }
        let doubled = try await client.connect(url(backend))
        _ = try await doubled.receive()
        post(backend, "twice")
        let first = text(try await doubled.receive())
        #expect(first.contains("twice"))
        #expect(text(try await doubled.receive()) == first)
        doubled.cut()

        backend.main.clock.freeze()
        try set(backend) { $0.delay = .fixed(.seconds(3)) }
        let late = try await client.connect(url(backend))
        _ = try await late.receive()
        post(backend, "late")
        try await late.ping()
        backend.main.clock.advance(by: .seconds(3))
        #expect(text(try await late.receive()).contains("late"))
        late.cut()
        #expect(await backend.activity() == [])
        await backend.stop()
    }

    @Test func `a silent channel that answers pings stays open`()
        async throws
    {
        let backend = try MockBackend.startSmall()
        let clock = ManualClock()
        try set(backend) { $0.silenceAfterFrames = 1 }
        let socket = try await SocketTransport(clock: clock).webSockets().connect(url(backend))
        _ = try await socket.receive()
        post(backend, "heard", "unheard")
        #expect(text(try await socket.receive()).contains("\"heard\""))
        for _ in 0..<3 {
            clock.advance(by: .seconds(25))
            // Its reply follows the one to the heartbeat.
            try await socket.ping()
            clock.advance(by: .seconds(9))
        }
        #expect(socket.closing == nil)
        socket.cut()
        #expect(await backend.activity() == [])
        await backend.stop()
    }

    @Test func `a stopping server sends 1001, and a crashed one is an error`() async throws {
        let backend = try MockBackend.startSmall()
        let socket = try await SocketTransport(clock: ManualClock()).webSockets().connect(url(backend))
        _ = try await socket.receive()
        let reading = Task { () -> WebSocketClient.Message? in try await socket.receive() }
        await backend.stop(grace: .seconds(60))
        #expect(try await reading.value == nil)
        #expect(socket.closing?.code == 1_001)
    }

    @Test func `large messages travel both ways`() async throws {
        let backend = try MockBackend.startSmall()
        let socket = try await SocketTransport(clock: ManualClock()).webSockets().connect(url(backend, "/_larder/echo"))
        for size in [0, 1, 125, 126, 65_535, 65_536, 1 << 20] {
            let bytes = (0..<size).map { UInt8(truncatingIfNeeded: $0) }
            try await socket.send(.binary(bytes))
            #expect(try await socket.receive() == .binary(bytes))
        }
        await socket.close()
        #expect(await backend.activity() == [])
        await backend.stop()
    }

    // MARK: Event streams

    @Test func `changes arrive as server-sent events, and are resumed without a gap`() async throws {
        let backend = try MockBackend.startSmall()
        let client = EventStreamClient(SocketTransport(clock: ManualClock()), clock: ManualClock())
        var token = ""
        do {
            let events = try await client.open(backend.url + "/v1/live/events")
            #expect(try await events.receive()?.type == "hello")
            #expect(events.retry == .seconds(2))
            post(backend, "one")
            let change = try await events.receive()
            #expect(change?.type == "change" && change?.data.contains("\"one\"") == true)
            token = change?.id ?? ""
        }
        post(backend, "two", "three")
        let events = try await client.open(backend.url + "/v1/live/events", lastEventID: token)
        #expect(try await events.receive()?.type == "hello")
        #expect(try await events.receive()?.data.contains("\"two\"") == true)
        #expect(try await events.receive()?.data.contains("\"three\"") == true)
        #expect(await backend.activity() == [])
        await backend.stop()
    }

    @Test func `an event stream that ends without its last chunk is an error`() async throws {
        let backend = try MockBackend.startSmall()
        try set(backend, "/v1/live/events") { $0.endAfterFrames = 1 }
        let events = try await EventStreamClient(SocketTransport(clock: ManualClock()), clock: ManualClock()).open(
            backend.url + "/v1/live/events"
        )
        _ = try await events.receive()
        post(backend, "last")
        #expect(try await events.receive()?.data.contains("last") == true)
        do {
            _ = try await events.receive()
            Issue.record("it ended in order")
        } catch { #expect(error.code == .disconnected) }
        #expect(await backend.activity() == [])
        await backend.stop()
    }

    @Test func `a rejected event stream reports its status`() async throws {
        let backend = try MockBackend.startSmall()
        let client = EventStreamClient(SocketTransport(clock: ManualClock()), clock: ManualClock())
        do {
            _ = try await client.open(backend.url + "/v1/live/events", lastEventID: "nonsense")
            Issue.record("it opened")
        } catch {
            #expect(error.code == .rejected && error.status == .gone)
        }
        #expect(await backend.activity() == [])
        await backend.stop()
    }
}
