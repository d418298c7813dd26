import LarderBackend
import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime

/// Applies faults to the bytes of a reply before it is sent. A value without I/O.
struct ReplyMutator {
    var reply: RenderedReply
    /// The offset at which the reply is cut off, counted from its first byte, and how the connection ends.
    private(set) var cut: (at: Int, how: FaultAction.ExchangeCut)?

    init(_ reply: RenderedReply) { self.reply = reply }

    /// Head, empty line and body.
    var bytes: [UInt8] {
        var bytes = reply.head
        bytes.append(contentsOf: "\r\n".utf8)
        bytes.append(contentsOf: reply.body)
        return bytes
    }

    var headCount: Int { reply.head.count + 2 }

    /// Applies a decision, as far as it changes bytes.
    mutating func apply(_ decision: FaultDecision) {
        var generator = decision.generator
        switch decision.fault.action {
        case .reset: cut(decision, .reset)
        case .close: cut(decision, .close)
        case .never: cut(decision, .never)
        case .truncate(.byte(let byte)): breakOff(at: headCount + min(byte, max(0, reply.body.count - 1)), .close)
        case .truncate(.insideCharacter):
            // A continuation byte is never the first of a character, so the text before it is incomplete.
            let middle = reply.body.count / 2
            let inside =
                reply.body.indices[middle...].first { reply.body[$0] & 0xC0 == 0x80 }
                ?? reply.body.indices[..<middle].last { reply.body[$0] & 0xC0 == 0x80 }
            breakOff(at: headCount + (inside ?? middle), .close)
        case .truncate(.insideChunkHeader):
            let second = chunk(sizeOfSecond: nil)
            breakOff(at: second + 1, .close)
        case .malformedChunk:
            _ = chunk(sizeOfSecond: "zz")
            breakOff(at: bytes.count, .close)
        case .corrupt(let count):
            guard !reply.body.isEmpty else { return }
            for _ in 0..<count {
                let position = generator.uniform(in: 0..<reply.body.count)
                reply.body[position] ^= UInt8(1) << UInt8(generator.uniform(in: 0..<8))
            }
        case .contentType(let value): setField("content-type", "Content-Type", value)
        case .malformedJSON:
            // The length is unchanged: only a parser detects the error.
            guard let last = reply.body.lastIndex(where: { $0 > 0x20 }) else { return }
            reply.body[last] = reply.body[last] == UInt8(ascii: "]") ? UInt8(ascii: "}") : UInt8(ascii: "]")
        case .validators(let mode): spoilValidators(mode, decision)
        default: break
        }
    }

    private mutating func cut(_ decision: FaultDecision, _ how: FaultAction.ExchangeCut) {
        switch decision.fault.stage {
        case .head: breakOff(at: min(decision.fault.at, reply.head.count), how)
        case .body: breakOff(at: headCount + min(decision.fault.at, reply.body.count), how)
        case .end: breakOff(at: headCount + reply.body.count, how)
        case .beforeRead, .afterRead, .afterCommit: break
        }
    }

    /// The earliest cut wins.
    private mutating func breakOff(at offset: Int, _ how: FaultAction.ExchangeCut) {
        if let cut, cut.at <= offset { return }
        cut = (offset, how)
    }

    /// Splits the body into two chunks; returns the offset of the second chunk's size.
    private mutating func chunk(sizeOfSecond: String?) -> Int {
        removeField("content-length")
        reply.head.append(contentsOf: "Transfer-Encoding: chunked\r\n".utf8)
        let middle = reply.body.count / 2
        var chunked: [UInt8] = []
        if middle > 0 {
            chunked.append(contentsOf: "\(String(middle, radix: 16))\r\n".utf8)
            chunked.append(contentsOf: reply.body[..<middle])
            chunked.append(contentsOf: "\r\n".utf8)
        }
        let second = headCount + chunked.count
        chunked.append(contentsOf: "\(sizeOfSecond ?? String(reply.body.count - middle, radix: 16))\r\n".utf8)
        chunked.append(contentsOf: reply.body[middle...])
        chunked.append(contentsOf: "\r\n0\r\n\r\n".utf8)
        reply.body = chunked
        return second
    }

    private mutating func spoilValidators(_ mode: FaultAction.ValidatorFault, _ decision: FaultDecision) {
        let tag = field("etag")
        switch mode {
        case .missing:
            removeField("etag")
            removeField("last-modified")
        case .weak:
            guard let tag, !tag.hasPrefix("W/") else { return }
            setField("etag", "ETag", "W/" + tag)
        case .changing:
            guard tag != nil else { return }
            setField("etag", "ETag", "\"changing-\(decision.ordinal)\"")
        case .wrong:
            guard tag != nil else { return }
            setField("etag", "ETag", Self.wrongTag)
        }
    }

    static let wrongTag = "\"never-changes\""

    /// Turns the reply into a 304, as for a client that has the constant tag.
    mutating func makeNotModified() {
        removeField("content-length")
        removeField("content-type")
        guard let end = reply.head.firstIndex(of: 0x0A) else { return }
        reply.head.replaceSubrange(...end, with: "HTTP/1.1 304 Not Modified\r\n".utf8)
        reply.status = .notModified
        reply.body = []
    }

    // MARK: Field lines

    func field(_ name: String) -> String? {
        guard let line = line(name) else { return nil }
        let text = String(decoding: reply.head[line], as: UTF8.self)
        guard let colon = text.firstIndex(of: ":") else { return nil }
        return String(text[text.index(after: colon)...].drop { $0 == " " }.prefix { !$0.isNewline })
    }

    mutating func setField(_ name: String, _ spelling: String, _ value: String) {
        removeField(name)
        reply.head.append(contentsOf: "\(spelling): \(value)\r\n".utf8)
    }

    mutating func removeField(_ name: String) {
        while let line = line(name) { reply.head.removeSubrange(line) }
    }

    /// Replaces the body and its length.
    mutating func replaceBody(_ body: [UInt8]) {
        reply.body = body
        setField("content-length", "Content-Length", "\(body.count)")
    }

    /// The range of a field line with its CRLF.
    private func line(_ name: String) -> Range<Int>? {
        let wanted = Array(name.utf8)
        var start = (reply.head.firstIndex(of: 0x0A) ?? reply.head.count - 1) + 1
        while start < reply.head.count {
            let end = reply.head[start...].firstIndex(of: 0x0A).map { $0 + 1 } ?? reply.head.count
            if end - start > wanted.count, reply.head[start + wanted.count] == UInt8(ascii: ":"),
                zip(reply.head[start...], wanted).allSatisfy({ $0 | 0x20 == $1 | 0x20 })
            {
                return start..<end
            }
            start = end
        }
        return nil
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
