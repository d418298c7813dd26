import LarderCoding
import LarderEngine
import LarderHTTPWire
import LarderServer
import LarderTime
import TestSupport
import Testing

@Suite("Faults of live channels", .oneMinute)
struct LiveFaultTests {
    /// A WebSocket on a bare socket: reads frames as they come.
    private final class Listener {
        let client: RawClient
        private var parser = WebSocketParser(role: .client, messageBytesMaximum: 1 << 20)
        private var events: [WebSocketEvent] = []

        init(_ stage: Stage, device: String = "phone") async throws {
            client = try stage.connect()
            try client.send(
                """
                GET /v1/live HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nLarder-Device: \(device)\r
                Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n
                """
            )
            let head = String(decoding: try await client.read(until: "\r\n\r\n"), as: UTF8.self)
            #expect(head.hasPrefix("HTTP/1.1 101"))
            #expect(try await text()?["type"] == .string("hello"))
            // The loop sets the channel's timers after this message. Reading the journal waits for the turn of the loop.
            _ = await stage.world.journal()
        }

        /// The next event; nil at the end of the connection.
        func next() async throws -> WebSocketEvent? {
            while events.isEmpty {
                guard let byte = try? await client.read(count: 1) else { return nil }
                parser.receive(byte.span, &events)
            }
            return events.removeFirst()
        }

        func text() async throws -> JSONValue? {
            while let event = try await next() {
                if case .text(let bytes) = event { return try JSONParser.parse(bytes) }
                if case .close = event { return nil }
            }
            return nil
        }
    }

    @Test func `a channel whose close is not answered ends, also while the world's clock is frozen`() async throws {
        let clock = ManualClock(WallTime(seconds: 1_790_000_000))
        let stage = try Stage {
            $0.use(clock)
            $0.server.heartbeat = .seconds(30)
        }
        let listener = try await Listener(stage)
        var frame: [UInt8] = []
        WebSocketEncoder.append(.binary, [1], mask: 7, to: &frame)
        try listener.client.send(frame)
        guard case .close(code: .unsupportedData?, _)? = try await listener.next() else {
            Issue.record("There was no close frame.")
            return
        }
        // Further messages are no answer.
        try listener.client.send(frame)
        while !listener.client.hasNews, !Task.isCancelled {
            clock.advance(by: .seconds(1))
            await Task.yield()
        }
        #expect(await listener.client.readToEnd().ending == .closed)
    }

    private func post(_ stage: Stage, _ count: Int) {
        for number in 1...count {
            stage.world.perform(ScriptedAction("POST", "/v1/posts", as: "ana", body: "{\"text\":\"\(number)\"}"))
        }
    }

    private func texts(_ listener: Listener, _ count: Int) async throws -> [String] {
        var texts: [String] = []
        for _ in 0..<count {
            texts.append(try await listener.text()?["change"]?["entity"]?["text"]?.string ?? "none")
        }
        return texts
    }

    @Test func `an event is sent to every socket once, and each frame is journalled`() async throws {
        let stage = try Stage { $0.server.loops = 2 }
        var listeners: [Listener] = []
        for number in 0..<24 { listeners.append(try await Listener(stage, device: "d\(number)")) }
        post(stage, 1)
        // A later reader has another token and gets the same event.
        listeners.append(try await Listener(stage, device: "late"))
        post(stage, 2)
        for (index, listener) in listeners.enumerated() {
            #expect(try await texts(listener, index < 24 ? 3 : 2) == (index < 24 ? ["1", "1", "2"] : ["1", "2"]))
        }
        let frames = await stage.world.journal().filter { !$0.isExchange }
        #expect(frames.count == 24 * 3 + 2)
        #expect(Set(frames.map(\.connection)).count == 25)
    }

    @Test func `frames are lost and duplicated by number, and tokens show the gap`() async throws {
        func run() async throws -> [String] {
            let stage = try Stage()
            var fault = LiveFault()
            fault.lose = 0.3
            fault.duplicate = 0.3
            try stage.world.set(Fault(id: "l", .live(fault), when: FaultMatch("GET", "/v1/live")))
            let listener = try await Listener(stage)
            post(stage, 20)
            let frames = await stage.world.journal().filter { !$0.isExchange }
            #expect(frames.count == 20)
            let arriving = frames.reduce(0) {
                $0 + ($1.injectedFault == "lost" ? 0 : $1.injectedFault == "doubled" ? 2 : 1)
            }
            let seen = try await texts(listener, arriving)
            await stage.backend.stop()
            return seen
        }
        let first = try await run()
        #expect(Set(first).count < 20 && first.count > Set(first).count)
        #expect(try await run() == first)
    }

    @Test func `frames are reordered, and none is lost`() async throws {
        let stage = try Stage()
        var fault = LiveFault()
        fault.reorder = 0.5
        try stage.world.set(Fault(.live(fault), when: FaultMatch("GET", "/v1/live")))
        let listener = try await Listener(stage)
        post(stage, 30)
        // The last frame, if none follows it.
        stage.world.clock.advance(by: .seconds(1))
        let seen = try await texts(listener, 30)
        #expect(seen != (1...seen.count).map { String($0) } && Set(seen).count == seen.count)
    }

    @Test func `a frame that none follows is held back for a second`() async throws {
        let stage = try Stage()
        var fault = LiveFault()
        fault.reorder = 1
        try stage.world.set(Fault(.live(fault), when: FaultMatch("GET", "/v1/live")))
        let listener = try await Listener(stage)
        post(stage, 1)
        #expect(try await stage.ask("GET", "/v1/feed").status == 200)
        #expect(!listener.client.hasNews)
        stage.world.clock.advance(by: .seconds(1))
        #expect(try await texts(listener, 1) == ["1"])
    }

    @Test func `frames are delayed on the world's clock`() async throws {
        let stage = try Stage()
        var fault = LiveFault()
        fault.delay = .fixed(.seconds(2))
        try stage.world.set(Fault(.live(fault), when: FaultMatch("GET", "/v1/live")))
        let listener = try await Listener(stage)
        post(stage, 1)
        #expect(try await stage.ask("GET", "/v1/feed").status == 200)
        #expect(!listener.client.hasNews)
        stage.world.clock.advance(by: .seconds(2))
        #expect(try await texts(listener, 1) == ["1"])
    }

    @Test func `a channel that ends after a delayed frame sends the frame first`() async throws {
        let stage = try Stage()
        var fault = LiveFault()
        fault.delay = .fixed(.seconds(2))
        fault.endAfterFrames = 2
        fault.closeCode = 4_242
        try stage.world.set(Fault(.live(fault), when: FaultMatch("GET", "/v1/live")))
        let listener = try await Listener(stage)
        post(stage, 3)
        #expect(try await stage.ask("GET", "/v1/feed").status == 200)
        #expect(!listener.client.hasNews)
        stage.world.clock.advance(by: .seconds(2))
        #expect(try await texts(listener, 2) == ["1", "2"])
        guard case .close(let code, _)? = try await listener.next() else {
            Issue.record("there was no close frame")
            return
        }
        #expect(code?.rawValue == 4_242)
    }

    @Test func `a channel that ends with a frame that is held back sends the frame first`() async throws {
        let stage = try Stage()
        var fault = LiveFault()
        fault.reorder = 1
        fault.endAfterFrames = 3
        fault.closeCode = 4_242
        try stage.world.set(Fault(.live(fault), when: FaultMatch("GET", "/v1/live")))
        let listener = try await Listener(stage)
        post(stage, 4)
        #expect(try await texts(listener, 2) == ["2", "1"])
        #expect(try await stage.ask("GET", "/v1/feed").status == 200)
        #expect(!listener.client.hasNews)
        stage.world.clock.advance(by: .seconds(1))
        #expect(try await texts(listener, 1) == ["3"])
        guard case .close(let code, _)? = try await listener.next() else {
            Issue.record("there was no close frame")
            return
        }
        #expect(code?.rawValue == 4_242)
        let words = await stage.world.journal().filter { !$0.isExchange }.map(\.injectedFault)
        #expect(words == ["held back", "reordered", "held back", "lost"])
    }

    @Test func `a channel ends with a code, without a close frame or after a time, or becomes silent`() async throws {
        let stage = try Stage()
        func set(_ change: (inout LiveFault) -> Void) throws {
            var fault = LiveFault()
            change(&fault)
            try stage.world.set(Fault(id: "l", .live(fault), when: FaultMatch("GET", "/v1/live")))
        }
        try set {
            $0.endAfterFrames = 2
            $0.closeCode = 4_242
        }
        let coded = try await Listener(stage)
        post(stage, 2)
        #expect(try await texts(coded, 2) == ["1", "2"])
        guard case .close(let code, _)? = try await coded.next() else {
            Issue.record("there was no close frame")
            return
        }
        #expect(code?.rawValue == 4_242)

        try set { $0.endAfterFrames = 1 }
        let dropped = try await Listener(stage)
        post(stage, 1)
        #expect(try await texts(dropped, 1) == ["1"])
        #expect(try await dropped.next() == nil)

        try set { $0.endAfter = .seconds(60) }
        let timed = try await Listener(stage)
        stage.world.clock.advance(by: .seconds(60))
        var last: WebSocketEvent?
        while let event = try await timed.next() { last = event }
        if case .close? = last { Issue.record("there was a close frame") }

        try set { $0.silenceAfterFrames = 1 }
        let silent = try await Listener(stage)
        post(stage, 3)
        #expect(try await texts(silent, 1) == ["1"])
        try silent.client.send([0x89, 0x80, 1, 2, 3, 4])
        guard case .pong? = try await silent.next() else {
            Issue.record("a half-open channel still answers pings")
            return
        }
    }

    @Test(arguments: [
        #"{"type":"corrupt"}"#, #"{"type":"malformedJSON"}"#, #"{"type":"malformedChunk"}"#,
        #"{"type":"truncate","inside":"character"}"#, #"{"type":"validators","mode":"weak"}"#,
    ])
    func `a fault that needs a whole body is rejected for a channel, and not listed for one that it matches`(
        action: String
    ) async throws {
        let stage = try Stage()
        for path in ["/v1/live", "/v1/live/events"] {
            let fault = #"{"match":{"path":"\#(path)"},"action":\#(action)}"#
            let reply = try await stage.ask("POST", "/_larder/faults", fault)
            #expect(reply.status == 422)
            #expect(try reply.json["errors"]?[0]?["pointer"]?.string == "/action/type")
        }
        #expect(try await stage.ask("POST", "/_larder/faults", #"{"action":\#(action)}"#).status == 201)
        let stream = try stage.send("GET", "/v1/live/events")
        _ = try await stream.read(until: "event: hello")
        let entry = try #require(await stage.world.journal(JournalFilter("GET", "/v1/live/events")).first)
        #expect(entry.status == 200 && entry.faults.isEmpty)
    }

    @Test func `a channel is as slow as a reply, and is cut at a byte of its content`() async throws {
        let stage = try Stage()
        let events = FaultMatch("GET", "/v1/live/events")
        try stage.world.set(Fault(id: "slow", .drip(bytes: 10, every: .seconds(1)), when: events))
        try stage.world.set(Fault(id: "cut", .reset, when: events, stage: .body, at: 25))
        let stream = try stage.send("GET", "/v1/live/events")
        let head = String(decoding: try await stream.read(until: "\r\n\r\n"), as: UTF8.self)
        #expect(head.contains("Transfer-Encoding: chunked"))
        #expect(try await stream.read(count: 15).starts(with: "a\r\n".utf8))
        // A heartbeat has a timer too.
        await reached { stage.world.clock.untilNextTimer == .seconds(1) }
        stage.world.clock.advance(by: .seconds(1))
        #expect(try await stream.read(count: 15).starts(with: "a\r\n".utf8))
        await reached { stage.world.clock.untilNextTimer == .seconds(1) }
        stage.world.clock.advance(by: .seconds(1))
        let (rest, ending) = await stream.readToEnd()
        #expect(rest.count == 10 && rest.starts(with: "5\r\n".utf8) && ending == .reset)
        let entry = try #require(await stage.world.journal(JournalFilter("GET", "/v1/live/events")).first)
        #expect(entry.faults == ["slow", "cut"])
        #expect(await stage.backend.activity() == [])
    }

    @Test func `a cut inside the head of a channel opens none`() async throws {
        let stage = try Stage()
        try stage.world.set(Fault(.close, when: FaultMatch("GET", "/v1/live/events"), stage: .head, at: 9))
        let (bytes, ending) = await (try stage.send("GET", "/v1/live/events")).readToEnd()
        #expect(bytes.elementsEqual("HTTP/1.1 ".utf8) && ending == .closed)
        #expect(await stage.backend.activity() == [])
    }

    @Test func `a client that leaves a slow channel ends its wait`() async throws {
        let stage = try Stage()
        try stage.world.set(Fault(.drip(bytes: 10, every: .seconds(1)), when: FaultMatch("GET", "/v1/live/events")))
        var stream: RawClient? = try stage.send("GET", "/v1/live/events")
        _ = try await stream?.read(until: "a\r\n")
        _ = stream.take()
        await reached { await stage.backend.activity() == [] }
        #expect(stage.world.clock.untilNextTimer == nil && stream == nil)
    }

    @Test func `a client that leaves takes its delayed frames along`() async throws {
        let stage = try Stage()
        var fault = LiveFault()
        fault.delay = .fixed(.seconds(3_600))
        try stage.world.set(Fault(.live(fault), when: FaultMatch("GET", "/v1/live/events")))
        var stream: RawClient? = try stage.send("GET", "/v1/live/events")
        _ = try await stream?.read(until: "event: hello")
        _ = await stage.world.journal()
        post(stage, 3)
        _ = stream.take()
        await reached { await stage.backend.activity() == [] }
        #expect(stage.world.clock.untilNextTimer == nil && stream == nil)
    }

    @Test func `a frame that was missed is in the journal with the kind of its channel`() async throws {
        let stage = try Stage()
        let now = try await stage.ask("GET", "/v1/changes?since=now").json["nextToken"]?.string ?? ""
        post(stage, 2)
        let stream = try stage.send("GET", "/v1/live/events?since=\(now)")
        for _ in 1...2 { _ = try await stream.read(until: "event: change") }
        post(stage, 1)
        let frames = try await stage.ask("GET", "/_larder/journal?kind=frame", as: nil).json["items"]?.array ?? []
        #expect(frames.map { $0["channel"]?.string } == ["EventStream", "EventStream", "EventStream"])
    }

    @Test func `a channel that a fault silences has ended for the server`() async throws {
        let stage = try Stage()
        let events = FaultMatch("GET", "/v1/live/events")
        try stage.world.set(Fault(.never, when: events, stage: .body, at: 10))
        let stream = try stage.send("GET", "/v1/live/events")
        _ = try await stream.read(until: "a\r\n")
        // The timer of the heartbeats.
        await reached { stage.world.clock.untilNextTimer == nil }
        stream.finishSending()
        await reached { await stage.backend.activity() == [] }
    }

    @Test func `pings are sent on the world's clock`() async throws {
        let stage = try Stage()
        let listener = try await Listener(stage)
        stage.world.clock.advance(by: .seconds(30))
        guard case .ping? = try await listener.next() else {
            Issue.record("there was no ping")
            return
        }
    }
}
