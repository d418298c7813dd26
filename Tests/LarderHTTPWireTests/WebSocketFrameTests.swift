import LarderCoding
import TestSupport
import Testing

@testable import LarderHTTPWire

/// The rules of RFC 6455 for frames. Every case is decoded in one piece and byte by byte.
@Suite("WebSocket frames", .oneMinute)
struct WebSocketFrameTests {
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

    private func read(_ bytes: [UInt8], _ role: WebSocketRole = .client, limit: Int = 1 << 20, cuts: [Int]? = nil)
        -> [WebSocketEvent]
    {
        var parser = WebSocketParser(role: role, messageBytesMaximum: limit)
        var events: [WebSocketEvent] = []
        var start = 0
        for end in (cuts ?? []) + [bytes.count] {
            parser.receive(bytes.span.extracting(start..<end), &events)
            start = end
        }
        return events
    }

    /// Decodes the bytes in different pieces; all results must be equal.
    private func events(_ bytes: [UInt8], _ role: WebSocketRole = .client, limit: Int = 1 << 20) -> [WebSocketEvent] {
        let whole = read(bytes, role, limit: limit)
        #expect(read(bytes, role, limit: limit, cuts: Array(0..<bytes.count)) == whole, "\(bytes.prefix(40))")
        return whole
    }

    private func frame(
        _ opcode: WebSocketEncoder.Opcode,
        _ payload: [UInt8] = [],
        isFinal: Bool = true,
        mask: UInt32? = nil
    ) -> [UInt8] {
        var bytes: [UInt8] = []
        WebSocketEncoder.append(opcode, payload, mask: mask, isFinal: isFinal, to: &bytes)
        return bytes
    }

    private func failure(_ events: [WebSocketEvent]) -> UInt16? {
        if case .failed(let code, _)? = events.last { code.rawValue } else { nil }
    }

    // MARK: Fragmentation

    @Test func `fragments, also empty ones, form one message`() {
        let pieces =
            frame(.binary, [1], isFinal: false) + frame(.continuation, [], isFinal: false)
            + frame(.continuation, [2, 3], isFinal: false) + frame(.continuation, [])
        #expect(events(pieces) == [.binary([1, 2, 3])])
        #expect(events(frame(.text, [], isFinal: false) + frame(.continuation, [])) == [.text([])])
    }

    @Test func `control frames between fragments are delivered in order`() {
        let pieces =
            frame(.ping, [0]) + frame(.text, Array("a".utf8), isFinal: false) + frame(.ping, [1])
            + frame(.pong, [2]) + frame(.continuation, Array("b".utf8), isFinal: false) + frame(.ping, [3])
            + frame(.continuation, Array("c".utf8)) + frame(.ping, [4])
        #expect(
            events(pieces) == [
                .ping([0]), .ping([1]), .pong([2]), .ping([3]), .text(Array("abc".utf8)), .ping([4]),
            ]
        )
    }

    @Test func `a close between fragments discards the incomplete message`() {
        let pieces = frame(.text, [65], isFinal: false) + frame(.close, [3, 232]) + frame(.continuation, [66])
        #expect(events(pieces) == [.close(code: .normal, reason: "")])
    }

    @Test func `a continuation without a start and a message inside a message are protocol errors`() {
        for bytes in [
            frame(.continuation), frame(.continuation, isFinal: false), frame(.text) + frame(.continuation),
            frame(.text, isFinal: false) + frame(.text), frame(.text, isFinal: false) + frame(.binary),
            frame(.binary, isFinal: false) + frame(.continuation) + frame(.continuation),
        ] { #expect(failure(events(bytes)) == 1_002, "\(bytes)") }
    }

    // MARK: Control frames

    @Test func `control frames above 125 bytes or in fragments are protocol errors`() {
        let full = [UInt8](repeating: 7, count: 125)
        #expect(events(frame(.ping, full)) == [.ping(full)])
        for opcode: UInt8 in [8, 9, 10] {
            #expect(failure(events([0x80 | opcode, 126, 0, 126])) == 1_002)
            #expect(failure(events([0x80 | opcode, 127])) == 1_002)
            #expect(failure(events([opcode, 0])) == 1_002)
        }
    }

    @Test func `reserved opcodes and bits are rejected at the first byte`() {
        for opcode: UInt8 in [3, 4, 5, 6, 7, 11, 12, 13, 14, 15] { #expect(failure(events([0x80 | opcode])) == 1_002) }
        for bit: UInt8 in [0x10, 0x20, 0x40, 0x70] { #expect(failure(events([0x80 | bit | 1])) == 1_002) }
    }

    @Test func `bytes after a close or a failure are ignored`() {
        #expect(events(frame(.close) + frame(.text, [65])) == [.close(code: nil, reason: "")])
        #expect(events([0x83] + frame(.text, [65])).count == 1)
        #expect(events([0x81, 0x01, 0xFF] + frame(.text, [65])).count == 1)
    }

    @Test func `a close frame is empty, or has a code of two bytes and a reason in UTF-8`() {
        #expect(failure(events(frame(.close, [3]))) == 1_002)
        #expect(failure(events(frame(.close, [3, 232, 0xFF]))) == 1_007)
        let reason = String(repeating: "€", count: 41)
        #expect(
            events(frame(.close, WebSocketEncoder.closePayload(.goingAway, reason)))
                == [.close(code: .goingAway, reason: reason)]
        )
    }

    @Test func `a long reason is truncated at a character boundary, and a reserved code is omitted`() {
        let cut = WebSocketEncoder.closePayload(.normal, String(repeating: "😀", count: 40))
        #expect(cut.count == 2 + 120)
        #expect(String(validating: cut[2...], as: UTF8.self) != nil)
        for code: UInt16 in [0, 999, 1_004, 1_005, 1_006, 1_015, 2_999, 5_000] {
            #expect(WebSocketEncoder.closePayload(WebSocketCloseCode(rawValue: code), "x") == [])
        }
        #expect(WebSocketEncoder.closePayload(nil, "x") == [])
    }

    // MARK: Masks

    @Test func `frames must be masked from clients and unmasked from servers`() {
        for opcode: WebSocketEncoder.Opcode in [.text, .binary, .ping, .pong, .close] {
            #expect(failure(events(frame(opcode, mask: 1), .client)) == 1_002)
            #expect(failure(events(frame(opcode), .server)) == 1_002)
            #expect(failure(events(frame(opcode, mask: 1), .server)) == nil)
            #expect(failure(events(frame(opcode), .client)) == nil)
        }
    }

    @Test func `each fragment has its own mask, and a mask of zero is valid`() {
        let pieces =
            frame(.binary, [1, 2, 3, 4, 5], isFinal: false, mask: 0xDEAD_BEEF)
            + frame(.ping, [9], mask: 0) + frame(.continuation, [6, 7, 8], mask: 0x0102_0304)
        #expect(events(pieces, .server) == [.ping([9]), .binary([1, 2, 3, 4, 5, 6, 7, 8])])
        // A masked payload of zeros shows the mask repeatedly.
        let zeros = Array(frame(.binary, [0, 0, 0, 0, 0], mask: 0x0102_0304).suffix(9))
        #expect(Array(zeros[4...]) == Array(zeros[..<4] + zeros[..<1]))
    }

    // MARK: UTF-8

    @Test func `a character split between frames or pieces is valid`() {
        for character in ["é", "€", "😀", "\u{10FFFF}", "\u{800}", "\u{0}"] {
            let bytes = Array(character.utf8)
            for cut in 0...bytes.count {
                let pieces =
                    frame(.text, Array(bytes[..<cut]), isFinal: false) + frame(.ping)
                    + frame(.continuation, Array(bytes[cut...]))
                #expect(events(pieces) == [.ping([]), .text(bytes)])
            }
            for cut in 1..<max(2, bytes.count) where cut < bytes.count {
                #expect(failure(events(frame(.text, Array(bytes[..<cut])))) == 1_007)
            }
        }
    }

    @Test func `invalid UTF-8 is detected in its own fragment`() {
        for wrong in [[0xC0, 0x80], [0xE0, 0x9F, 0xBF], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80], [0xFE]]
            as [[UInt8]]
        {
            let pieces = frame(.text, [65], isFinal: false) + frame(.continuation, wrong, isFinal: false)
            #expect(failure(events(pieces)) == 1_007)
            // Binary messages are not checked.
            #expect(events(frame(.binary, wrong)) == [.binary(wrong)])
        }
    }

    // MARK: Limits

    @Test func `a message of exactly the limit is accepted, and one more byte fails`() {
        let full = [UInt8](repeating: 0, count: 200)
        #expect(events(frame(.binary, full), limit: 200) == [.binary(full)])
        #expect(failure(events(frame(.binary, full), limit: 199)) == 1_009)
        let halves = frame(.binary, Array(full[..<100]), isFinal: false) + frame(.continuation, Array(full[100...]))
        #expect(events(halves, limit: 200) == [.binary(full)])
        #expect(failure(events(halves, limit: 199)) == 1_009)
        #expect(events(frame(.ping, [1]) + frame(.binary), limit: 0) == [.ping([1]), .binary([])])
    }

    @Test func `an announced length allocates no memory and must use the shortest encoding`() {
        #expect(failure(events([0x82, 127, 0x7F, 255, 255, 255, 255, 255, 255, 255])) == 1_009)
        #expect(failure(events([0x82, 127, 0x80, 0, 0, 0, 0, 0, 0, 0])) == 1_002)
        for bytes in [[0x82, 126, 0, 125], [0x82, 126, 0, 0], [0x82, 127, 0, 0, 0, 0, 0, 0, 255, 255]] as [[UInt8]] {
            #expect(failure(events(bytes)) == 1_002)
        }
    }

    // MARK: Properties

    @Test func `random messages in random fragments, masks and pieces are reassembled unchanged`() {
        let base = UInt64.random(in: 0 ... .max)
        for round in 0..<60 {
            let seed = base &+ UInt64(round)
            var random = SplitMix(state: seed)
            let role: WebSocketRole = Bool.random(using: &random) ? .client : .server
            var bytes: [UInt8] = []
            var expected: [WebSocketEvent] = []
            func mask() -> UInt32? { role == .server ? UInt32.random(in: 0 ... .max, using: &random) : nil }
            for _ in 0..<Int.random(in: 1...8, using: &random) {
                let isText = Bool.random(using: &random)
                let size = Bool.random(using: &random) ? Int.random(in: 0...300, using: &random) : 65_600
                let payload: [UInt8] =
                    isText
                    ? Array(String(repeating: "xé€😀", count: size / 10).utf8)
                    : (0..<size).map { _ in UInt8.random(in: 0...255, using: &random) }
                var cuts = (0..<Int.random(in: 0...4, using: &random)).map { _ in
                    Int.random(in: 0...payload.count, using: &random)
                }
                cuts = cuts.sorted() + [payload.count]
                var start = 0
                for (index, end) in cuts.enumerated() {
                    let opcode: WebSocketEncoder.Opcode = index > 0 ? .continuation : isText ? .text : .binary
                    let isLast = index == cuts.count - 1
                    bytes += frame(opcode, Array(payload[start..<end]), isFinal: isLast, mask: mask())
                    start = end
                    if !isLast, Bool.random(using: &random) {
                        let isPing = Bool.random(using: &random)
                        bytes += frame(isPing ? .ping : .pong, [UInt8(index)], mask: mask())
                        expected.append(isPing ? .ping([UInt8(index)]) : .pong([UInt8(index)]))
                    }
                }
                expected.append(isText ? .text(payload) : .binary(payload))
            }
            let cuts = (0..<Int.random(in: 0...40, using: &random)).map { _ in
                Int.random(in: 0...bytes.count, using: &random)
            }
            #expect(read(bytes, role, cuts: cuts.sorted()) == expected, "seed \(seed)")
        }
    }

    @Test func `random bytes give at most one failure, the same for any split`() {
        let base = UInt64.random(in: 0 ... .max)
        for round in 0..<2_000 {
            let seed = base &+ UInt64(round)
            var random = SplitMix(state: seed)
            let role: WebSocketRole = Bool.random(using: &random) ? .client : .server
            var bytes = (0..<Int.random(in: 1...60, using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            // A likely head, so that more than the first byte is looked at.
            if Bool.random(using: &random) { bytes = [0x81, UInt8.random(in: 0...255, using: &random)] + bytes }
            let whole = read(bytes, role, limit: 40)
            #expect(read(bytes, role, limit: 40, cuts: Array(0..<bytes.count)) == whole, "seed \(seed)")
            let ends = whole.filter { event in
                switch event {
                case .failed, .close: true
                default: false
                }
            }
            #expect(ends.count <= 1, "seed \(seed)")
        }
    }
}
