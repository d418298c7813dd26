import LarderBackend
import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime

/// Applies faults to the bytes of a reply before it is sent. A value without I/O.
struct ReplyMutator {
    var head: ReplyHead
    var body: [UInt8]
    /// The offset at which the reply is cut off, counted from its first byte, and how the connection ends.
    private(set) var cut: (at: Int, how: FaultAction.ExchangeCut)?

    var bytesSavedByCoding: Int
    private let lease: (any AnyObject & Sendable)?

    init(_ reply: Reply) {
        head = reply.head
        body = reply.bytes
        bytesSavedByCoding = reply.bytesSavedByCoding
        lease = reply.lease
    }

    /// The changed reply, without its cut.
    var reply: Reply {
        var reply = Reply(head, body: .bytes(body), bytesSavedByCoding: bytesSavedByCoding)
        reply.lease = lease
        return reply
    }

    /// Head, empty line and body.
    var bytes: [UInt8] {
        head.bytes + "\r\n".utf8 + body
    }

    var headCount: Int { head.bytes.count + 2 }

    /// Applies a decision, as far as it changes bytes.
    mutating func apply(_ decision: FaultDecision) {
        var generator = decision.generator
        switch decision.fault.action {
        case .reset: cut(decision, .reset)
        case .close: cut(decision, .close)
        case .never: cut(decision, .never)
        case .truncate(.byte(let byte)): breakOff(at: headCount + min(byte, max(0, body.count - 1)), .close)
        case .truncate(.insideCharacter):
            // A continuation byte is never the first of a character, so the text before it is incomplete.
            let middle = body.count / 2
            let inside =
                body.indices[middle...].first { body[$0] & 0xC0 == 0x80 }
                ?? body.indices[..<middle].last { body[$0] & 0xC0 == 0x80 }
            breakOff(at: headCount + (inside ?? middle), .close)
        case .truncate(.insideChunkHeader):
            let second = chunk(sizeOfSecond: nil)
            breakOff(at: second + 1, .close)
        case .malformedChunk:
            _ = chunk(sizeOfSecond: "zz")
            breakOff(at: bytes.count, .close)
        case .corrupt(let count):
            guard !body.isEmpty else { return }
            for _ in 0..<count {
                let position = generator.uniform(in: 0..<body.count)
                body[position] ^= UInt8(1) << UInt8(generator.uniform(in: 0..<8))
            }
        case .contentType(let value): head.set("Content-Type", value)
        case .malformedJSON:
            // The length is unchanged: only a parser detects the error.
            guard let last = body.lastIndex(where: { $0 > 0x20 }) else { return }
            body[last] = body[last] == UInt8(ascii: "]") ? UInt8(ascii: "}") : UInt8(ascii: "]")
        case .validators(let mode): spoilValidators(mode, decision)
        default: break
        }
    }

    private mutating func cut(_ decision: FaultDecision, _ how: FaultAction.ExchangeCut) {
        switch decision.fault.stage {
        case .head: breakOff(at: min(decision.fault.at, head.bytes.count), how)
        case .body: breakOff(at: headCount + min(decision.fault.at, body.count), how)
        case .end: breakOff(at: headCount + body.count, how)
        case .handshake, .beforeRead, .afterRead, .afterCommit: break
        }
    }

    /// The earliest cut wins.
    private mutating func breakOff(at offset: Int, _ how: FaultAction.ExchangeCut) {
        if let cut, cut.at <= offset { return }
        cut = (offset, how)
    }

    /// Splits the body into two chunks; returns the offset of the second chunk's size.
    private mutating func chunk(sizeOfSecond: String?) -> Int {
        head.remove("content-length")
        head.append("Transfer-Encoding", "chunked")
        let middle = body.count / 2
        var chunked: [UInt8] = []
        if middle > 0 {
            chunked.append(contentsOf: "\(String(middle, radix: 16))\r\n".utf8)
            chunked.append(contentsOf: body[..<middle])
            chunked.append(contentsOf: "\r\n".utf8)
        }
        let second = headCount + chunked.count
        chunked.append(contentsOf: "\(sizeOfSecond ?? String(body.count - middle, radix: 16))\r\n".utf8)
        chunked.append(contentsOf: body[middle...])
        chunked.append(contentsOf: "\r\n0\r\n\r\n".utf8)
        body = chunked
        return second
    }

    private mutating func spoilValidators(_ mode: FaultAction.ValidatorFault, _ decision: FaultDecision) {
        let tag = head["etag"]
        switch mode {
        case .missing:
            head.remove("etag")
            head.remove("last-modified")
        case .weak:
            guard let tag, !tag.hasPrefix("W/") else { return }
            head.set("ETag", "W/" + tag)
        case .changing:
            guard tag != nil else { return }
            head.set("ETag", "\"changing-\(decision.ordinal)\"")
        case .wrong:
            guard tag != nil else { return }
            head.set("ETag", Self.wrongTag)
        }
    }

    static let wrongTag = "\"never-changes\""

    /// Turns the reply into a 304, as for a client that has the constant tag.
    mutating func makeNotModified() {
        head.remove("content-length")
        head.remove("content-type")
        head.setStatus(.notModified)
        body = []
    }

    /// Replaces the body and its length.
    mutating func replaceBody(_ body: [UInt8]) {
        self.body = body
        head.set("Content-Length", "\(body.count)")
    }
}

extension [UInt8] {
    /// The bytes with an insertion wherever `suffix` follows `prefix`.
    func inserting(_ insertion: [UInt8], before suffix: StaticString, after prefix: StaticString) -> [UInt8] {
        let (prefix, suffix) = (Array("\(prefix)".utf8), Array("\(suffix)".utf8))
        var changed: [UInt8] = []
        var rest = self[...]
        while let place = rest.firstRange(of: prefix + suffix) {
            changed += rest[..<(place.lowerBound + prefix.count)] + insertion + suffix
            rest = rest[place.upperBound...]
        }
        return changed + rest
    }
}
