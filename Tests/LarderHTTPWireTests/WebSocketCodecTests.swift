import LarderCoding
import LarderHTTP
import TestSupport
import Testing

@testable import LarderHTTPWire

@Suite("WebSocket codec", .oneMinute)
struct WebSocketCodecTests {
    private func events(_ bytes: [UInt8], role: WebSocketRole = .server, limit: Int = 1 << 20, step: Int = .max)
        -> [WebSocketEvent]
    {
        var parser = WebSocketParser(role: role, messageBytesMaximum: limit)
        var events: [WebSocketEvent] = []
        var index = 0
        while index < bytes.count {
            let end = min(bytes.count, index + min(step, bytes.count))
            parser.receive(bytes.span.extracting(index..<end), &events)
            index = end
        }
        return events
    }

    private func frame(
        _ opcode: WebSocketEncoder.Opcode,
        _ payload: [UInt8],
        isFinal: Bool = true,
        mask: UInt32? = 0x1234_5678
    ) -> [UInt8] {
        var bytes: [UInt8] = []
        WebSocketEncoder.append(opcode, payload, mask: mask, isFinal: isFinal, to: &bytes)
        return bytes
    }

    @Test func `the examples of RFC 6455 are decoded`() {
        #expect(events([0x81, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f], role: .client) == [.text(Array("Hello".utf8))])
        #expect(
            events([0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58]) == [.text(Array("Hello".utf8))]
        )
        let fragments: [UInt8] = [0x01, 0x03, 0x48, 0x65, 0x6c, 0x89, 0x00, 0x80, 0x02, 0x6c, 0x6f]
        #expect(events(fragments, role: .client) == [.ping([]), .text(Array("Hello".utf8))])
        #expect(WebSocketHandshake.accept(forKey: "dGhlIHNhbXBsZSBub25jZQ==") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
    }

    @Test(arguments: [0, 1, 125, 126, 127, 65_535, 65_536, 70_000])
    func `every length encoding round-trips for any split of the bytes`(count: Int) {
        let payload = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        for step in [1, 7, 4_096, .max] where step > 1 || count < 1_000 {
            #expect(events(frame(.binary, payload), step: step) == [.binary(payload)])
        }
    }

    @Test(
        "breaches of the protocol are failed with 1002",
        arguments: [
            [0xC1, 0x80, 0, 0, 0, 0], [0x83, 0x80, 0, 0, 0, 0], [0x8B, 0x80, 0, 0, 0, 0], [0x09, 0x80, 0, 0, 0, 0],
            [0x89, 0xFE, 0, 126], [0x80, 0x80, 0, 0, 0, 0], [0x81, 0x05, 1], [0x82, 0xFE, 0, 125, 0, 0, 0, 0],
            [0x82, 0xFF, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0, 0, 0, 0],
            [0x82, 0xFF, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            [0x01, 0x80, 0, 0, 0, 0, 0x01, 0x80, 0, 0, 0, 0], [0x88, 0x81, 0, 0, 0, 0, 3],
        ] as [[UInt8]]
    )
    func fails(bytes: [UInt8]) {
        guard case .failed(.protocolError, _)? = events(bytes).last else {
            Issue.record("\(bytes) gave \(events(bytes))")
            return
        }
    }

    @Test(
        "text that is not UTF-8 is failed with 1007 at the byte that makes it wrong",
        arguments: [
            [0x80], [0xC0, 0xAF], [0xE0, 0x80, 0xAF], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80], [0xF8, 0x88],
            [0xFF],
            [0x41, 0xC3, 0x28], [0xF0, 0x8F, 0xBF, 0xBF],
        ] as [[UInt8]]
    )
    func failsText(bytes: [UInt8]) {
        // An unfinished message: the failure must not wait for its end.
        let opening = frame(.text, bytes, isFinal: false)
        guard case .failed(.invalidPayload, _)? = events(opening).last else {
            Issue.record("\(bytes) was accepted")
            return
        }
    }

    @Test func `a character may be split between frames but must be complete at the end of the message`() {
        let smile = Array("😀".utf8)
        let split =
            frame(.text, Array(smile[..<2]), isFinal: false) + frame(.ping, [1])
            + frame(.continuation, Array(smile[2...]))
        #expect(events(split, step: 1) == [.ping([1]), .text(smile)])
        guard case .failed(.invalidPayload, _)? = events(frame(.text, Array(smile[..<3]))).last else {
            Issue.record("half a character was accepted")
            return
        }
    }

    @Test func `a message above the limit fails with 1009 before its payload is read`() {
        let large = frame(.binary, [UInt8](repeating: 0, count: 101))
        guard case .failed(.messageTooBig, _)? = events(Array(large.prefix(8)), limit: 100).last else {
            Issue.record("the length alone should have been enough")
            return
        }
        let pieces =
            frame(.binary, [UInt8](repeating: 0, count: 60), isFinal: false)
            + frame(.continuation, [UInt8](repeating: 0, count: 60))
        guard case .failed(.messageTooBig, _)? = events(pieces, limit: 100).last else {
            Issue.record("fragments count together")
            return
        }
    }

    @Test(arguments: [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1014, 3000, 3999, 4000, 4999] as [UInt16])
    func `valid close codes are accepted`(code: UInt16) {
        let payload = [UInt8(code >> 8), UInt8(code & 255)] + Array("bye".utf8)
        #expect(events(frame(.close, payload)) == [.close(code: WebSocketCloseCode(rawValue: code), reason: "bye")])
    }

    @Test(arguments: [0, 999, 1004, 1005, 1006, 1015, 1016, 2000, 2999, 5000, 65_535] as [UInt16])
    func `invalid close codes are protocol errors`(code: UInt16) {
        guard case .failed(.protocolError, _)? = events(frame(.close, [UInt8(code >> 8), UInt8(code & 255)])).last
        else {
            Issue.record("\(code) was accepted")
            return
        }
    }

    @Test func `messages in any fragments and pieces are reassembled unchanged`() {
        for seed in UInt64(1)...200 {
            var random = SplitMix(state: seed)
            var bytes: [UInt8] = []
            var expected: [WebSocketEvent] = []
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                let isText = Bool.random(using: &random)
                let payload: [UInt8] =
                    isText
                    ? Array(String(repeating: "aß€😀", count: Int.random(in: 0...30, using: &random)).utf8)
                    : (0..<Int.random(in: 0...400, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random)
                    }
                var start = 0
                var isFirst = true
                repeat {
                    let end = Int.random(in: start...payload.count, using: &random)
                    let isLast = end == payload.count
                    let opcode: WebSocketEncoder.Opcode = isFirst ? (isText ? .text : .binary) : .continuation
                    bytes += frame(
                        opcode,
                        Array(payload[start..<end]),
                        isFinal: isLast,
                        mask: UInt32.random(in: 0 ... .max, using: &random)
                    )
                    if !isLast, Bool.random(using: &random) {
                        bytes += frame(.pong, [7])
                        expected.append(.pong([7]))
                    }
                    start = end
                    isFirst = false
                    if isLast { break }
                } while true
                expected.append(isText ? .text(payload) : .binary(payload))
            }
            let step = Int.random(in: 1...50, using: &random)
            #expect(events(bytes, step: step) == expected, "seed \(seed)")
        }
    }

    @Test func `mutated bytes give events or a failure, never a trap`() {
        for seed in UInt64(1)...500 {
            var random = SplitMix(state: seed &* 77)
            var bytes =
                frame(.text, Array("hello wörld".utf8), isFinal: false) + frame(.ping, [])
                + frame(.continuation, [0x21])
            for _ in 0..<3 {
                bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            let failures = events(bytes, step: 3).filter { if case .failed = $0 { true } else { false } }
            #expect(failures.count <= 1, "seed \(seed)")
        }
    }

    private struct SplitMix: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var z = state
            z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
            z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
            return z ^ (z >> 31)
        }
    }

    @Test func `a handshake without version 13 or with an invalid key is rejected`() {
        let fields = [
            "upgrade": "websocket", "connection": "keep-alive, Upgrade", "sec-websocket-version": "13",
            "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
        ]
        let look = { (fields: [String: String]) in { (name: StaticString) in fields[name.description] } }
        #expect(throws: Never.self) { try WebSocketHandshake.accept(look(fields)) }
        func rejection(_ name: String, _ value: String) -> Status? {
            do throws(Rejection) {
                _ = try WebSocketHandshake.accept(look(fields.merging([name: value]) { $1 }))
                return nil
            } catch { return error.status }
        }
        #expect(rejection("sec-websocket-version", "8") == .upgradeRequired)
        #expect(rejection("sec-websocket-key", "abc") == .badRequest)
        #expect(rejection("upgrade", "h2c") == .badRequest)
        #expect(WebSocketHandshake.subprotocol(offered: "b, a", supported: ["a", "b"]) == "b")
    }
}
