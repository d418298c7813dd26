import LarderHTTP
import LarderTime
import SDKTestSupport
import TestSupport
import Testing

@testable import LarderTransport

@Suite("WebSocket client", .oneMinute)
struct WebSocketClientTests {
    @Test func `a client connects, sends its fields and exchanges messages`() async throws {
        let pair = try await WebSocketPair.connect(
            rest: text("first"),
            lines: "Sec-WebSocket-Protocol: b\r\nX-Y: z\r\n",
            subprotocols: ["a", "b"]
        )
        #expect(pair.head.hasPrefix("GET /live?a=b%20c HTTP/1.1\r\nHost: 127.0.0.1:\(pair.server.port)\r\n"))
        #expect(pair.head.contains("\r\nAuthorization: Bearer t\r\n") && !pair.head.contains("evil"))
        #expect(pair.socket.subprotocol == "b")
        #expect(pair.socket.fields.contains { $0.name.canonical == "x-y" && $0.value == "z" })
        // Bytes in the same piece as the 101 response are not lost.
        #expect(try await pair.socket.receive() == .text("first"))
        await pair.peer.send(WirePeer.frame(2, [1, 2, 3]))
        #expect(try await pair.socket.receive() == .binary([1, 2, 3]))
        try await pair.socket.send("hé")
        try await pair.socket.send(.binary([9]))
        #expect(try await pair.peer.readFrame().text == "hé")
        let second = try await pair.peer.readFrame()
        #expect(second.opcode == 2 && second.payload == [9] && second.isFinal)
    }

    @Test func `every frame has a mask of its own, from the injected randomness`() async throws {
        func masks(_ seed: UInt64) async throws -> [[UInt8]?] {
            let pair = try await WebSocketPair.connect(seed: seed)
            var masks: [[UInt8]?] = []
            for _ in 0..<3 {
                try await pair.socket.send("x")
                masks.append(try await pair.peer.readFrame().mask)
            }
            return masks
        }
        let first = try await masks(1)
        #expect(Set(first).count == 3 && !first.contains(nil))
        #expect(try await masks(1) == first)
        #expect(try await masks(2) != first)
    }

    @Test func `messages arrive in order, with control frames between fragments and in any pieces`() async throws {
        let pair = try await WebSocketPair.connect()
        let bytes =
            WirePeer.frame(1, Array("ab".utf8), isFinal: false) + WirePeer.frame(9, [7])
            + WirePeer.frame(0, Array("c".utf8)) + WirePeer.frame(2, []) + text(String(repeating: "€", count: 50_000))
        for byte in bytes.prefix(20) { await pair.peer.send([byte]) }
        await pair.peer.send(Array(bytes.dropFirst(20)))
        #expect(try await pair.socket.receive() == .text("abc"))
        #expect(try await pair.socket.receive() == .binary([]))
        #expect(try await pair.socket.receive() == .text(String(repeating: "€", count: 50_000)))
        let pong = try await pair.peer.readFrame()
        #expect(pong.opcode == 10 && pong.payload == [7] && pong.mask != nil)
    }

    // MARK: Closing

    @Test func `closing sends a close frame, waits for the peer's and ends the sequence`() async throws {
        let pair = try await WebSocketPair.connect()
        await pair.peer.send(text("before"))
        #expect(try await pair.socket.receive() == .text("before"))
        async let closed = pair.socket.close(WebSocketClient.Close(code: 4_000, reason: "done"))
        let frame = try await pair.peer.readFrame()
        #expect(frame.opcode == 8 && frame.payload == [0x0F, 0xA0] + Array("done".utf8))
        await pair.peer.send(text("too late"))
        await pair.peer.sendClose(4_000, "me too")
        #expect(await closed == WebSocketClient.Close(code: 4_000, reason: "me too"))
        #expect(try await pair.socket.receive() == nil)
        #expect(await failure { () async throws(WebSocketError) in try await pair.socket.send("x") }?.code == .closed)
        #expect(await failure { () async throws(WebSocketError) in try await pair.socket.ping() }?.code == .closed)
        #expect(await pair.socket.close() == WebSocketClient.Close(code: 4_000, reason: "me too"))
        #expect(await pair.peer.isEnded())
    }

    @Test func `after the server's close earlier messages are read, its code is known and it is answered`() async throws
    {
        let pair = try await WebSocketPair.connect()
        await pair.peer.send(text("1") + text("2"))
        await pair.peer.sendClose(4_401, "the session has ended")
        var texts: [WebSocketClient.Message] = []
        while let message = try await pair.socket.receive() { texts.append(message) }
        #expect(texts == [.text("1"), .text("2")])
        #expect(pair.socket.closing == WebSocketClient.Close(code: 4_401, reason: "the session has ended"))
        let echo = try await pair.peer.readFrame()
        #expect(echo.opcode == 8 && echo.payload.prefix(2) == [0x11, 0x31])
        pair.peer.finish()
        #expect(try await pair.socket.receive() == nil)
    }

    @Test func `a close frame without a code has a nil code`() async throws {
        let pair = try await WebSocketPair.connect()
        await pair.peer.sendFrame(8, [])
        #expect(try await pair.socket.receive() == nil)
        #expect(pair.socket.closing == WebSocketClient.Close(code: nil))
        #expect(try await pair.peer.readFrame().payload == [])
    }

    @Test func `an unanswered close ends after its timeout`() async throws {
        let clock = ManualClock()
        let pair = try await WebSocketPair.connect(clock: clock)
        let closing = Task { await pair.socket.close() }
        #expect(try await pair.peer.readFrame().opcode == 8)
        clock.advance(by: .seconds(5))
        #expect(await closing.value == nil)
        #expect(try await pair.socket.receive() == nil)
        #expect(await pair.peer.isEnded())
    }

    @Test func `waiting senders fail when the WebSocket is closed`() async throws {
        var configuration = WebSocketClient.Configuration()
        configuration.outputBytesMaximum = 1_000
        let clock = ManualClock()
        let pair = try await WebSocketPair.connect(configuration, clock: clock, receiveBufferBytes: 262_144)
        let large = [UInt8](repeating: 1, count: 16 << 20)
        // The server reads nothing, so the first message fills the socket buffers and the others wait.
        try await pair.socket.send(.binary(large))
        let waiting = Task { await failure { () async throws(WebSocketError) in try await pair.socket.send("x") } }
        let closing = Task { await pair.socket.close() }
        #expect(await waiting.value?.code == .closed)
        pair.peer.reset()
        #expect(await closing.value == nil)
    }

    // MARK: Broken connections

    @Test(arguments: [true, false])
    func `a connection lost within a frame is an error after the earlier messages`(resets: Bool) async throws {
        let pair = try await WebSocketPair.connect()
        await pair.peer.send(text("whole") + Array(text("half of it").prefix(6)))
        #expect(try await pair.socket.receive() == .text("whole"))
        if resets { pair.peer.reset() } else { pair.peer.finish() }
        for _ in 0..<2 {
            #expect(
                await failure { () async throws(WebSocketError) in _ = try await pair.socket.receive() }?.code
                    == .interrupted
            )
        }
        #expect(
            await failure { () async throws(WebSocketError) in try await pair.socket.send("x") }?.code == .interrupted
        )
        #expect(await pair.socket.close() == nil)
        #expect(pair.socket.closing == nil)
    }

    @Test func `an end before the first receive is reported`() async throws {
        let pair = try await WebSocketPair.connect(rest: text("1") + WirePeer.frame(8, [0x03, 0xE8]))
        _ = try await pair.peer.readFrame()
        pair.peer.finish()
        var texts: [WebSocketClient.Message] = []
        while let message = try await pair.socket.receive() { texts.append(message) }
        #expect(texts == [.text("1")] && pair.socket.closing?.code == 1_000)
    }

    @Test func `a half-open connection fails after its timeouts, and any byte prevents that`() async throws {
        let clock = ManualClock()
        let pair = try await WebSocketPair.connect(clock: clock)
        let reading = Task { await failure { () async throws(WebSocketError) in _ = try await pair.socket.receive() } }
        for _ in 0..<3 {
            clock.advance(by: .seconds(25))
            let ping = try await pair.peer.readFrame()
            #expect(ping.opcode == 9 && ping.mask != nil)
            clock.advance(by: .seconds(9))
            await pair.peer.sendFrame(10, ping.payload)
            // The reply to this message proves that the earlier pong was read.
            async let pinged: Void = pair.socket.ping()
            await pair.peer.sendFrame(10, try await pair.peer.readFrame().payload)
            try await pinged
        }
        clock.advance(by: .seconds(25))
        #expect(try await pair.peer.readFrame().opcode == 9)
        clock.advance(by: .seconds(10))
        #expect(await reading.value?.code == .silent)
        #expect(await pair.peer.isEnded())
    }

    @Test func `a ping waits for its own pong or a later one`() async throws {
        let pair = try await WebSocketPair.connect()
        let first = Task { await failure { () async throws(WebSocketError) in try await pair.socket.ping() } }
        _ = try await pair.peer.readFrame()
        let second = Task { await failure { () async throws(WebSocketError) in try await pair.socket.ping() } }
        let payload = try await pair.peer.readFrame().payload
        await pair.peer.sendFrame(10, [])
        await pair.peer.sendFrame(10, Array("unasked!".utf8))
        await pair.peer.sendFrame(10, payload)
        #expect(await first.value == nil)
        #expect(await second.value == nil)
    }

    @Test(arguments: [
        (WirePeer.frame(1, [0xFF]), 1_007), (WirePeer.frame(2, [UInt8](repeating: 0, count: 101)), 1_009),
        (WirePeer.frame(3, []), 1_002), ([0x81, 0x81, 0, 0, 0, 0, 0x41], 1_002), (WirePeer.frame(0, []), 1_002),
        (WirePeer.frame(8, [0x03, 0xED]), 1_002),
    ])
    func `a protocol error closes with its code`(frame: [UInt8], code: Int) async throws {
        var configuration = WebSocketClient.Configuration()
        configuration.messageBytesMaximum = 100
        let pair = try await WebSocketPair.connect(configuration)
        await pair.peer.send(text("good") + frame + text("never read"))
        #expect(try await pair.socket.receive() == .text("good"))
        #expect(
            await failure { () async throws(WebSocketError) in _ = try await pair.socket.receive() }?.code
                == .protocolError
        )
        let close = try await pair.peer.readFrame()
        #expect(close.opcode == 8 && close.payload.prefix(2) == [UInt8(code >> 8), UInt8(code & 255)])
    }

    @Test func `replies to messages before an invalid frame are sent before the close`() async throws {
        let pair = try await WebSocketPair.connect()
        await pair.peer.send(text("first") + text("second") + WirePeer.frame(3, []) + text("never read"))
        for word in ["first", "second"] {
            #expect(try await pair.socket.receive() == .text(word))
            try await pair.socket.send("\(word) answered")
        }
        let error = await failure { () async throws(WebSocketError) in _ = try await pair.socket.receive() }
        #expect(error?.code == .protocolError)
        for word in ["first", "second"] {
            let frame = try await pair.peer.readFrame()
            #expect(frame.opcode == 1 && frame.payload == Array("\(word) answered".utf8))
        }
        let close = try await pair.peer.readFrame()
        #expect(close.opcode == 8 && close.payload.prefix(2) == [0x03, 0xEA])
        let late = await failure { () async throws(WebSocketError) in try await pair.socket.send("late") }
        #expect(late?.code == .protocolError)
    }

    @Test func `an invalid frame after an unread message closes when its timeout is over`()
        async throws
    {
        let clock = ManualClock()
        var configuration = WebSocketClient.Configuration()
        configuration.pingInterval = nil
        let pair = try await WebSocketPair.connect(configuration, clock: clock)
        await pair.peer.send(text("read") + text("not read") + WirePeer.frame(3, []))
        #expect(try await pair.socket.receive() == .text("read"))
        // Independent of when the invalid frame is read: its timeout has ended after this.
        let moving = Task {
            while !Task.isCancelled {
                clock.advance(by: .seconds(1))
                await Task.yield()
            }
        }
        defer { moving.cancel() }
        let frame = try await pair.peer.readFrame()
        moving.cancel()
        #expect(frame.opcode == 8 && frame.payload.prefix(2) == [0x03, 0xEA])
        #expect(try await pair.socket.receive() == .text("not read"))
        let error = await failure { () async throws(WebSocketError) in _ = try await pair.socket.receive() }
        #expect(error?.code == .protocolError)
    }

    // MARK: Limits

    @Test func `a slow reader pauses the server and loses nothing`() async throws {
        var configuration = WebSocketClient.Configuration()
        configuration.inboxBytesMaximum = 100_000
        let clock = ManualClock()
        let pair = try await WebSocketPair.connect(configuration, clock: clock)
        let message = [UInt8](repeating: 7, count: 10_000)
        let frame = WirePeer.frame(2, message)
        // Until the socket blocks: a client that continued to read would take everything.
        var (sent, rest, idle) = (0, [UInt8](), 0)
        let limit = 1 << 30
        while idle < 200, sent < limit {
            if rest.isEmpty { rest = frame }
            let count = pair.peer.sendNow(rest)
            rest.removeFirst(count)
            sent += count
            idle = count == 0 ? idle + 1 : 0
            if count == 0 { await Task.yield() }
        }
        #expect(sent < limit)
        // Reading is paused, so silence is no failure.
        clock.advance(by: .seconds(3_600))
        let whole = (sent + rest.count) / frame.count
        let (peer, tail) = (pair.peer, rest)
        let finishing = Task.detached {
            await peer.send(tail)
            await peer.sendClose(1_000)
        }
        var count = 0
        while let received = try await pair.socket.receive() {
            #expect(received == .binary(message))
            count += 1
        }
        await finishing.value
        #expect(count == whole)
    }

    @Test func `senders wait for the network in order`() async throws {
        var configuration = WebSocketClient.Configuration()
        configuration.outputBytesMaximum = 100_000
        let pair = try await WebSocketPair.connect(configuration)
        let socket = pair.socket
        let sending = Task {
            for number in 0..<400 {
                try await socket.send(.binary([UInt8](repeating: UInt8(number & 255), count: 50_000)))
            }
        }
        for number in 0..<400 {
            let frame = try await pair.peer.readFrame()
            #expect(frame.payload.count == 50_000 && frame.payload.allSatisfy { $0 == UInt8(number & 255) })
        }
        try await sending.value
    }

    // MARK: Cancellation and lifetime

    @Test func `a cancelled reader loses no message`() async throws {
        let pair = try await WebSocketPair.connect()
        for number in 0..<50 {
            let reading = Task { () -> WebSocketClient.Message? in try await pair.socket.receive() }
            if number % 2 == 0 { await Task.yield() }
            async let sent: Void = pair.peer.send(text("\(number)"))
            reading.cancel()
            await sent
            if case .success(let message) = await reading.result {
                #expect(message == .text("\(number)"))
            } else {
                #expect(try await pair.socket.receive() == .text("\(number)"))
            }
        }
    }

    @Test func `a cancelled sender has sent nothing, and the next one continues`() async throws {
        var configuration = WebSocketClient.Configuration()
        configuration.outputBytesMaximum = 1_000
        // The message exceeds the system's buffers, so "never" waits.
        let pair = try await WebSocketPair.connect(configuration, receiveBufferBytes: 262_144)
        let large = [UInt8](repeating: 1, count: 16 << 20)
        try await pair.socket.send(.binary(large))
        let waiting = Task { await failure { () async throws(WebSocketError) in try await pair.socket.send("never") } }
        await Task.yield()
        waiting.cancel()
        #expect(await waiting.value?.code == .cancelled)
        let socket = pair.socket
        let next = Task { try await socket.send("next") }
        #expect(try await pair.peer.readFrame().payload == large)
        #expect(try await pair.peer.readFrame().text == "next")
        try await next.value
    }

    @Test func `a cancelled ping returns, and a cancelled close ends the connection`() async throws {
        let pair = try await WebSocketPair.connect()
        let pinging = Task { await failure { () async throws(WebSocketError) in try await pair.socket.ping() } }
        #expect(try await pair.peer.readFrame().opcode == 9)
        pinging.cancel()
        #expect(await pinging.value?.code == .cancelled)
        let closing = Task { await pair.socket.close() }
        #expect(try await pair.peer.readFrame().opcode == 8)
        closing.cancel()
        #expect(await closing.value == nil)
        #expect(await pair.peer.isEnded())
        #expect(
            await failure { () async throws(WebSocketError) in _ = try await pair.socket.receive() }?.code == .cancelled
        )
    }

    @Test func `releasing or cutting a WebSocket closes its connection`() async throws {
        let server = try WireServer()
        let client = SocketTransport(clock: ManualClock()).webSockets()
        for cuts in [true, false] {
            let url = "ws://127.0.0.1:\(server.port)/"
            let using = Task {
                let socket = try await client.connect(url)
                if cuts { socket.cut() }
                return socket.subprotocol
            }
            let peer = try await server.accept()
            try await peer.acceptWebSocket()
            #expect(try await using.value == nil)
            #expect(await peer.isEnded())
        }
    }

    @Test func `random connects, messages and closes leave no handler behind`() async throws {
        let seed = UInt64.random(in: 0 ... .max)
        var random = SeededGenerator(seed: seed)
        for round in 0..<60 {
            let server = try WireServer()
            let url = "ws://127.0.0.1:\(server.port)/"
            let client = SocketTransport(clock: ManualClock()).webSockets(random: SeededGenerator(seed: random.next()))
            let task = Task { () -> Int in
                let socket = try await client.connect(url)
                var count = 0
                while try await socket.receive() != nil {
                    count += 1
                    try await socket.send("\(count)")
                }
                return count
            }
            let when = random.uniform(in: 0..<5)
            if when == 0 { task.cancel() }
            if when > 0 {
                let peer = try await server.accept()
                if when == 1 { task.cancel() }
                if when > 1 {
                    try await peer.acceptWebSocket(rest: text("a") + Array(text("b").prefix(random.uniform(in: 0..<3))))
                    if when == 2 { task.cancel() }
                    if when == 3 { peer.reset() }
                    if when == 4 { peer.finish() }
                } else {
                    _ = await peer.isEnded()
                }
            }
            guard case .failure = await task.result else {
                Issue.record("seed \(seed), round \(round): it ended in order")
                return
            }
        }
    }
}
