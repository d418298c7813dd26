import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime

/// Applies faults to the bytes of a reply before it is sent. A value without I/O.
struct ReplyMutator {
    /// The changed reply, without its cut.
    var reply: Reply
    /// How fast it is sent.
    var pace = ReplyPace()
    /// The offset at which the reply is cut off, counted from its first byte, and how the connection ends.
    private(set) var cut: (at: Int, how: FaultAction.ExchangeCut)?

    init(_ reply: Reply) { self.reply = reply }

    /// Whether it is an event stream, a WebSocket or a tunnel, whose content is not known.
    private var isChannel: Bool { if case .bytes = reply.body { false } else { true } }

    var head: ReplyHead {
        get { reply.head }
        set { reply.head = newValue }
    }

    /// Empty for a channel. Each change copies it.
    var body: [UInt8] {
        get { reply.bytes }
        set { reply.body = .bytes(newValue) }
    }

    /// Head, empty line and body.
    var bytes: [UInt8] {
        head.bytes + "\r\n".utf8 + body
    }

    var headCount: Int { head.bytes.count + 2 }

    /// The offset of a byte of the body, or of its end; of its last byte if the offset must be `inside`.
    func offset(ofBody byte: Int, inside: Bool = false) -> Int {
        headCount + (isChannel ? byte : min(byte, inside ? max(0, body.count - 1) : body.count))
    }

    /// Whether all bytes are sent before the connection ends.
    var isCutAtEnd: Bool { !isChannel && cut.map { $0.at >= headCount + body.count } ?? false }

    /// The earliest cut wins.
    mutating func breakOff(at offset: Int, _ how: FaultAction.ExchangeCut) {
        if let cut, cut.at <= offset { return }
        cut = (offset, how)
    }

    /// Splits the body into two chunks; returns the offset of the second chunk's size. Nil without a body: then it may not have the field
    /// (RFC 9112 §6.1).
    mutating func chunk(sizeOfSecond: String?) -> Int? {
        guard !body.isEmpty else { return nil }
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

    /// Whether the reply, and where it is cut, are those of another one.
    func isSame(as other: ReplyMutator) -> Bool {
        cut?.at == other.cut?.at && head.bytes == other.head.bytes && body == other.body
    }

    /// Replaces the body and its length.
    mutating func replaceBody(_ body: [UInt8]) {
        self.body = body
        head.set("Content-Length", "\(body.count)")
    }
}
