import LarderHTTPWire
import TestSupport
import Testing

@testable import LarderEngine

/// RFC 6455 over a socket, like an external conformance suite: the bytes of one write, and the frames received before the
/// connection ends or is left open.
@Suite("WebSocket conformance", .oneMinute)
struct WebSocketConformanceTests {
    /// A frame as a client sends it, right or wrong.
    private static func frame(
        _ opcode: UInt8,
        _ payload: [UInt8] = [],
        isFinal: Bool = true,
        reserved: UInt8 = 0,
        isMasked: Bool = true,
        announced: UInt64? = nil,
        lengthBytes: Int? = nil
    ) -> [UInt8] {
        let length = announced ?? UInt64(payload.count)
        let width = lengthBytes ?? (length < 126 ? 0 : length < 65_536 ? 2 : 8)
        let flag: UInt8 = isMasked ? 0x80 : 0
        var bytes: [UInt8] = [(isFinal ? 0x80 : 0) | reserved << 4 | opcode]
        bytes.append(flag | (width == 0 ? UInt8(length) : width == 2 ? 126 : 127))
        for place in (0..<width).reversed() { bytes.append(UInt8(truncatingIfNeeded: length >> UInt64(place * 8))) }
        guard isMasked else { return bytes + payload }
        let mask: [UInt8] = [0x37, 0xFA, 0x21, 0x3D]
        return bytes + mask + payload.enumerated().map { $1 ^ mask[$0 & 3] }
    }

    private static func close(_ code: UInt16, _ reason: [UInt8] = []) -> [UInt8] {
        [UInt8(code >> 8), UInt8(code & 0xFF)] + reason
    }

    struct Case {
        let name: String
        let frames: [[UInt8]]
        /// Opcode and payload of each received frame; the code of a close frame.
        let replies: [(UInt8, [UInt8])]
        /// Whether the server ends the connection.
        var isEnd = true
    }

    private static let greek = Array("κόσμε€𝄞".utf8)
    private static func ends(_ name: String, _ code: UInt16, _ frames: [UInt8]...) -> Case {
        Case(name: name, frames: frames, replies: [(8, close(code))])
    }

    private static let text: [Case] = [
        Case(name: "nothing", frames: [frame(1)], replies: [(1, [])], isEnd: false),
        Case(
            name: "a ping within a message that is cut within a character",
            frames: [
                frame(1, Array(greek[..<1]), isFinal: false), frame(0, Array(greek[1..<4]), isFinal: false),
                frame(9, [7]), frame(0, Array(greek[4...])),
            ],
            replies: [(10, [7]), (1, greek)],
            isEnd: false
        ),
        Case(
            name: "a noncharacter",
            frames: [frame(1, [0xEF, 0xBF, 0xBF])],
            replies: [(1, [0xEF, 0xBF, 0xBF])],
            isEnd: false
        ),
        ends("bad UTF-8 before its message ends", 1007, frame(1, [0xCE, 0xBA, 0xF4, 0x90], isFinal: false)),
        ends(
            "bad UTF-8 before its frame ends",
            1007,
            Array(frame(1, [0x61, 0xFF] + [UInt8](repeating: 0x78, count: 90)).prefix(12))
        ),
        ends("half a character", 1007, frame(1, [0xF0, 0x9F])),
        ends("a surrogate", 1007, frame(1, [0xED, 0xA0, 0x80])),
        ends("an overlong form", 1007, frame(1, [0xC0, 0xAF])),
        ends("beyond the last character", 1007, frame(1, [0xF4, 0x90, 0x80, 0x80])),
    ]

    private static let frames: [Case] = [
        Case(
            name: "lengths around the borders of their forms",
            frames: [125, 126, 65_535, 65_536].map { frame(2, [UInt8](repeating: 3, count: $0)) },
            replies: [125, 126, 65_535, 65_536].map { (2, [UInt8](repeating: 3, count: $0)) },
            isEnd: false
        ),
        ends("a reserved bit", 1002, frame(1, [1], reserved: 4)), ends("another", 1002, frame(1, [1], reserved: 1)),
        ends("a reserved opcode", 1002, frame(3)), ends("a reserved control opcode", 1002, frame(11)),
        ends("a continuation of nothing", 1002, frame(0, [1])),
        ends("a message within a message", 1002, frame(1, [0x61], isFinal: false), frame(1, [0x62])),
        ends("no mask", 1002, frame(1, [0x61], isMasked: false)),
        ends("a length that is too long for itself", 1002, frame(1, [1, 2, 3, 4, 5], lengthBytes: 2)),
        ends("the longest form for a short one", 1002, frame(1, [1, 2, 3, 4, 5], lengthBytes: 8)),
        ends("a length of 64 bits", 1002, frame(2, announced: 1 << 63, lengthBytes: 8)),
        ends("a length of 63 bits", 1009, frame(2, announced: 1 << 63 - 1, lengthBytes: 8)),
        ends(
            "a message that is too long in sum",
            1009,
            frame(2, [UInt8](repeating: 1, count: 90_000), isFinal: false),
            frame(0, announced: 20_000)
        ),
    ]

    private static let control: [Case] = [
        Case(
            name: "the longest ping",
            frames: [frame(9, [UInt8](repeating: 1, count: 125))],
            replies: [(10, [UInt8](repeating: 1, count: 125))],
            isEnd: false
        ),
        Case(
            name: "a pong for nothing",
            frames: [frame(10, [1]), frame(1, [0x61])],
            replies: [(1, [0x61])],
            isEnd: false
        ),
        ends("a ping that is too long", 1002, frame(9, [UInt8](repeating: 1, count: 126))),
        ends("a ping in fragments", 1002, frame(9, [1], isFinal: false)),
        Case(name: "a close without a code", frames: [frame(8)], replies: [(8, [])]),
        ends("half a code", 1002, frame(8, [3])), ends("a reason that is no text", 1007, frame(8, close(1000, [0xFF]))),
        ends("a close within a message", 1000, frame(1, [0x61], isFinal: false), frame(8, close(1000))),
        Case(
            name: "messages, and a close in the same write",
            frames: [frame(1, [0x61]), frame(2, [0x62]), frame(8, close(1000, [0x62]))],
            replies: [(1, [0x61]), (2, [0x62]), (8, close(1000))]
        ),
        Case(
            name: "a message, and what breaks the protocol in the same write",
            frames: [frame(1, [0x61]), frame(3)],
            replies: [(1, [0x61]), (8, close(1002))]
        ),
        ends("words after the close", 1000, frame(8, close(1000)), frame(1, [0x61]), frame(9)),
    ]

    private static let codes: [Case] =
        [1000, 1001, 1003, 1007, 1011, 1014, 3000, 3999, 4000, 4999].map { ends("\($0)", $0, frame(8, close($0))) }
        + [0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535].map {
            ends("\($0), which may not be sent", 1002, frame(8, close($0)))
        }

    private static func connect(_ port: Int) async throws -> RawClient {
        let client = try RawClient(port: port)
        try client.send(
            """
            GET /socket HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
            Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n
            """
        )
        #expect(try await client.reply().status == 101)
        return client
    }

    private static func read(_ client: RawClient) async throws -> (UInt8, [UInt8]) {
        let head = try await client.read(count: 2)
        var length = Int(head[1])
        if length > 125 {
            length = try await client.read(count: length == 126 ? 2 : 8).reduce(0) { $0 << 8 | Int($1) }
        }
        let payload = try await client.read(count: length)
        return (head[0], head[0] == 0x88 ? Array(payload.prefix(2)) : payload)
    }

    @Test(arguments: [1 << 20, 1])
    func `valid and invalid frames are answered as RFC 6455 requires`(step: Int) async throws {
        try await EchoHandler.serve({ $0.webSocketMessageBytesMaximum = 100_000 }) { port in
            // Only small cases are sent byte by byte; large ones add no coverage.
            for one in Self.text + Self.frames + Self.control + Self.codes
            where step > 1 || one.frames.joined().count < 1_000 {
                let client = try await Self.connect(port)
                let bytes = Array(one.frames.joined())
                for start in stride(from: 0, to: bytes.count, by: step) {
                    // A server that has closed may reject the rest.
                    guard (try? client.send(Array(bytes[start..<min(start + step, bytes.count)]))) != nil else { break }
                }
                for (opcode, payload) in one.replies {
                    let (first, content) = try await Self.read(client)
                    #expect(first == 0x80 | opcode && content == payload, "\(one.name), in pieces of \(step)")
                }
                if one.isEnd {
                    client.finishSending()
                    #expect(await client.isClosedByPeer(), "\(one.name)")
                } else {
                    try client.send(Self.frame(9, [0x7A]))
                    #expect(try await Self.read(client) == (0x8A, [0x7A]), "\(one.name)")
                }
            }
        }
    }

    @Test func `a peer that exceeds the message limit receives the close code before the connection ends`() async throws
    {
        try await EchoHandler.serve({ $0.webSocketMessageBytesMaximum = 1_000 }) { port in
            let client = try await Self.connect(port)
            let large = [UInt8](repeating: 7, count: 100_000)
            try client.send(Self.frame(2, announced: 600_000, lengthBytes: 8))
            for _ in 0..<6 { try client.send(large) }
            #expect(try await Self.read(client) == (0x88, Self.close(1009)))
            try client.send(Self.frame(8, Self.close(1009)))
            client.finishSending()
            let (rest, ending) = await client.readToEnd()
            #expect(rest.isEmpty && ending == .closed)
        }
    }

    @Test func `every ping is answered, and pongs wait for a slow reader`() async throws {
        try await EchoHandler.serve { port in
            let client = try await Self.connect(port)
            let ping = Self.frame(9, [1])
            let flood = Array(repeatElement(ping, count: 1_000).joined())
            for _ in 0..<20 { try client.send(flood) }
            for _ in 0..<20_000 { #expect(try await Self.read(client) == (0x8A, [1])) }
        }
    }
}
