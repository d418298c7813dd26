import LarderHTTP

/// Reads one HTTP/1 reply from bytes that come in any pieces (RFC 9112). A value without I/O.
///
/// It is strict where two readers could understand two things: bare CR and LF, control characters, contradicting lengths and
/// broken chunks are failures. What it gave before a failure is not a whole reply: only `.end` says that it is.
struct ReplyReader: Sendable {
    enum Event: Sendable, Hashable {
        /// The head of the reply that counts; interim ones (1xx) are passed over (RFC 9110 §15.2).
        case head(Status, Fields)
        case content([UInt8])
        /// The reply is whole.
        case end
    }

    enum Failure: Error, Sendable, Hashable {
        /// The connection ended before a single byte came.
        case noReply
        /// The connection ended in the middle.
        case cutShort(String)
        /// It is not HTTP/1, or could mean two things.
        case malformed(String)
    }

    /// What a peer may make us keep.
    struct Limits: Sendable, Hashable {
        var headBytes = 64 << 10
        var interimReplies = 16
        var chunkLineBytes = 4 << 10
        var trailerBytes = 16 << 10
    }

    private enum State: Sendable {
        case head
        case fixed(left: Int)
        case chunked(ReplyChunks)
        case untilClose
        case over
        case failed(Failure)
    }

    /// Where in a line of the head we are.
    private enum Line: Sendable {
        case text
        case beforeLF
        case start
        case beforeLastLF
    }

    private let isHead: Bool
    private let limits: Limits
    private var state = State.head
    private var line = Line.text
    private var head: [UInt8] = []
    private var interimReplies = 0

    /// Whether anything has come.
    private(set) var hasBegun = false
    /// Whether another request may follow on the connection. It counts at the end.
    private(set) var keepsAlive = false

    /// - Parameter isHead: whether the reply is to a `HEAD`, so that its lengths are of content that does not come.
    init(isHead: Bool = false, limits: Limits = Limits()) {
        self.isHead = isHead
        self.limits = limits
    }

    /// Whether the reply has come to its end.
    var isOver: Bool { if case .over = state { true } else { false } }

    /// Reads bytes as they came. What lies behind the reply's end is not read, and the connection not kept for it.
    mutating func receive(_ bytes: Span<UInt8>, _ events: inout [Event]) throws(Failure) {
        guard bytes.count > 0 else { return }
        hasBegun = true
        var index = 0
        var piece: [UInt8] = []
        defer { if !piece.isEmpty { events.append(.content(piece)) } }
        do throws(Failure) {
            while index < bytes.count {
                switch state {
                case .head: index = try readHead(bytes, from: index, &events)
                case .fixed(let left):
                    let end = index + min(left, bytes.count - index)
                    Self.append(bytes.extracting(index..<end), to: &piece)
                    state = .fixed(left: left - (end - index))
                    index = end
                    if case .fixed(left: 0) = state { finish(&piece, &events) }
                case .chunked(var chunks):
                    index = try chunks.read(bytes, from: index, into: &piece)
                    state = .chunked(chunks)
                    if chunks.isOver { finish(&piece, &events) }
                case .untilClose:
                    Self.append(bytes.extracting(index...), to: &piece)
                    index = bytes.count
                case .over:
                    keepsAlive = false
                    return
                case .failed(let failure): throw failure
                }
            }
        } catch {
            state = .failed(error)
            throw error
        }
    }

    /// The connection has ended in order: content without a length is whole, everything else is cut short.
    mutating func end(_ events: inout [Event]) throws(Failure) {
        switch state {
        case .over: return
        case .untilClose:
            state = .over
            events.append(.end)
        case .head where !hasBegun: throw .noReply
        case .head: throw .cutShort("The connection ended within the reply's head.")
        case .fixed(let left): throw .cutShort("The connection ended, and \(left) bytes of the content are missing.")
        case .chunked: throw .cutShort("The connection ended before the last chunk.")
        case .failed(let failure): throw failure
        }
    }

    private mutating func finish(_ piece: inout [UInt8], _ events: inout [Event]) {
        if !piece.isEmpty { events.append(.content(piece)) }
        piece = []
        state = .over
        events.append(.end)
    }

    private static func append(_ bytes: Span<UInt8>, to piece: inout [UInt8]) {
        unsafe bytes.withUnsafeBufferPointer { unsafe piece.append(contentsOf: $0) }
    }

    // MARK: The head

    private mutating func readHead(
        _ bytes: Span<UInt8>,
        from start: Int,
        _ events: inout [Event]
    ) throws(Failure) -> Int {
        var index = start
        while index < bytes.count {
            let byte = bytes[index]
            index += 1
            // What speaks another protocol may never end a line: it is known by its first bytes.
            if head.count < Self.beginning.count, byte != Self.beginning[head.count] {
                throw .malformed("The reply does not begin with HTTP/1.")
            }
            head.append(byte)
            switch line {
            case .text:
                if byte == 0x0D { line = .beforeLF }
                if byte == 0x0A { throw .malformed("A line of the reply's head ends with a bare LF.") }
            case .beforeLF:
                guard byte == 0x0A else { throw .malformed("The reply's head has a bare CR.") }
                line = .start
            case .start:
                if byte == 0x0A { throw .malformed("A line of the reply's head ends with a bare LF.") }
                line = byte == 0x0D ? .beforeLastLF : .text
            case .beforeLastLF:
                guard byte == 0x0A else { throw .malformed("The reply's head has a bare CR.") }
                try take(try ReplyHead(head), &events)
                head = []
                line = .text
                return index
            }
            guard head.count < limits.headBytes else {
                throw .malformed("The reply's head is larger than \(limits.headBytes) bytes.")
            }
        }
        return index
    }

    private static let beginning = Array("HTTP/1.".utf8)

    private mutating func take(_ head: ReplyHead, _ events: inout [Event]) throws(Failure) {
        if head.status.code < 200 {
            guard head.status != .switchingProtocols else {
                throw .malformed("The server changes the protocol, which nobody asked for.")
            }
            interimReplies += 1
            guard interimReplies <= limits.interimReplies else {
                throw .malformed("More than \(limits.interimReplies) interim replies came.")
            }
            return
        }
        let framing = try ReplyFraming(head, isHead: isHead)
        keepsAlive = framing.keepsAlive
        events.append(.head(head.status, head.fields))
        switch framing.content {
        case .none, .length(0):
            state = .over
            events.append(.end)
        case .length(let length): state = .fixed(left: length)
        case .chunked: state = .chunked(ReplyChunks(limits))
        case .untilClose: state = .untilClose
        }
    }
}
