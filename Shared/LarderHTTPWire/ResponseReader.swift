import LarderHTTP

/// Reads one HTTP/1 response from bytes in any pieces (RFC 9112). A value without I/O.
///
/// Ambiguous input is a failure: bare CR and LF, control characters, contradicting lengths and broken chunks. The response is
/// complete only after `.end`; events before a failure are a part of it.
package struct ResponseReader: Sendable {
    package enum Event: Sendable, Hashable {
        /// The head of the final response. Interim responses (1xx) are skipped (RFC 9110 §15.2).
        case head(ResponseHead)
        case content([UInt8])
        case end
    }

    package enum Failure: Error, Sendable, Hashable, CustomStringConvertible {
        /// The connection ended before the first byte.
        case noResponse
        /// The connection ended within the response.
        case truncated(String)
        /// The response is not valid HTTP/1, or is ambiguous.
        case malformed(String)

        package var description: String {
            switch self {
            case .noResponse: "The server closed the connection without a response."
            case .truncated(let reason), .malformed(let reason): reason
            }
        }
    }

    private static let headBytesMaximum = 64 << 10
    private static let interimResponsesMaximum = 16

    private enum State: Sendable {
        case head
        case fixed(left: Int)
        case chunked(ChunkedDecoder)
        case untilClose
        case complete
        case failed(Failure)
    }

    package enum Request: Sendable {
        case usual
        /// `HEAD`: the response has no content whatever its fields say.
        case head
        /// `CONNECT`: a 2xx is followed by the tunnel, whatever its fields say (RFC 9110 §9.3.6). The content of a rejection is not read.
        case connect
        /// An upgrade: a 101 is final, and the other protocol follows.
        case upgrade
    }

    private let request: Request
    private var state = State.head
    private var scanner = HeadScanner(skipsEmptyLines: false)
    private var head: [UInt8] = []
    private var interimResponses = 0

    /// Whether any byte was received.
    package private(set) var hasBegun = false
    /// Whether another request may follow on the connection. Final after `.end`.
    package private(set) var keepsAlive = false

    package init(_ request: Request) { self.request = request }

    /// - Parameter isHead: whether the request was a `HEAD`.
    package init(isHead: Bool = false) { self.init(isHead ? .head : .usual) }

    package var isComplete: Bool { if case .complete = state { true } else { false } }

    /// Reads received bytes. After bytes behind the end of the response `keepsAlive` is false.
    ///
    /// - Returns: the number of bytes that belong to the response.
    @discardableResult
    package mutating func receive(_ bytes: Span<UInt8>, _ events: inout [Event]) throws(Failure) -> Int {
        guard bytes.count > 0 else { return 0 }
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
                    do throws(Rejection) {
                        index = try chunks.decode(bytes, from: index, into: &piece)
                    } catch { throw .malformed(error.detail) }
                    state = .chunked(chunks)
                    if chunks.isDone { finish(&piece, &events) }
                case .untilClose:
                    Self.append(bytes.extracting(index...), to: &piece)
                    index = bytes.count
                case .complete:
                    keepsAlive = false
                    return index
                case .failed(let failure): throw failure
                }
            }
        } catch {
            state = .failed(error)
            throw error
        }
        return index
    }

    /// Handles the regular end of the connection, which completes content without a length.
    package mutating func end(_ events: inout [Event]) throws(Failure) {
        switch state {
        case .complete: return
        case .untilClose:
            state = .complete
            events.append(.end)
        case .head where !hasBegun: throw .noResponse
        case .head: throw .truncated("The connection ended within the response's head.")
        case .fixed(let left): throw .truncated("The connection ended \(left) bytes before the end of the content.")
        case .chunked: throw .truncated("The connection ended before the last chunk.")
        case .failed(let failure): throw failure
        }
    }

    private mutating func finish(_ piece: inout [UInt8], _ events: inout [Event]) {
        if !piece.isEmpty { events.append(.content(piece)) }
        piece = []
        state = .complete
        events.append(.end)
    }

    private static func append(_ bytes: Span<UInt8>, to piece: inout [UInt8]) {
        unsafe bytes.withUnsafeBufferPointer { unsafe piece.append(contentsOf: $0) }
    }

    // MARK: Head

    private static let beginning = Array("HTTP/1.".utf8)

    private mutating func readHead(
        _ bytes: Span<UInt8>,
        from start: Int,
        _ events: inout [Event]
    ) throws(Failure) -> Int {
        let held = head.count
        let end = start + min(bytes.count - start, Self.headBytesMaximum - held)
        let fresh = bytes.extracting(start..<end)
        // A head that arrives in one piece is copied once, without what follows it.
        if held > 0 { Self.append(fresh, to: &head) }
        var scanner = scanner
        let outcome = try held == 0 ? Self.scan(fresh, &scanner) : Self.scan(head.span, &scanner)
        self.scanner = scanner
        switch outcome {
        case .malformed(let what): throw .malformed("The response's head has \(what).")
        case .incomplete:
            if held == 0 { Self.append(fresh, to: &head) }
            guard head.count < Self.headBytesMaximum else {
                throw .malformed("The response's head has more than \(Self.headBytesMaximum) bytes.")
            }
            return end
        case .head(let range):
            let next = start + scanner.scanned - held
            var complete: [UInt8] = []
            if held == 0 {
                Self.append(fresh.extracting(range), to: &complete)
            } else {
                complete.append(contentsOf: head[range])
            }
            head = []
            self.scanner = HeadScanner(skipsEmptyLines: false)
            do throws(Rejection) {
                try begin(ResponseHead(complete), &events)
            } catch { throw .malformed(error.detail) }
            return next
        }
    }

    /// Searches the end of the head in what has arrived of it.
    private static func scan(
        _ bytes: Span<UInt8>,
        _ scanner: inout HeadScanner
    ) throws(Failure) -> HeadScanner.Outcome {
        // Another protocol may never end a line: it is detected by its first bytes.
        for index in 0..<min(bytes.count, beginning.count) where bytes[index] != beginning[index] {
            throw .malformed("The response does not begin with HTTP/1.")
        }
        return scanner.scan(bytes)
    }

    private mutating func begin(_ head: ResponseHead, _ events: inout [Event]) throws(Rejection) {
        if head.status == .switchingProtocols && request == .upgrade
            || head.status.code >= 200 && request == .connect
        {
            state = .complete
            events += [.head(head), .end]
            return
        }
        if head.status.code < 200 {
            guard head.status != .switchingProtocols else {
                throw Rejection(.badRequest, "The server switches the protocol without a request for it.")
            }
            interimResponses += 1
            guard interimResponses <= Self.interimResponsesMaximum else {
                throw Rejection(
                    .badRequest,
                    "More than \(Self.interimResponsesMaximum) interim responses were received."
                )
            }
            return
        }
        let framing = try BodyFraming(head, isHead: request == .head)
        keepsAlive = head.keepsAlive(after: framing)
        events.append(.head(head))
        switch framing {
        case .none:
            state = .complete
            events.append(.end)
        case .length(let length): state = .fixed(left: length)
        case .chunked: state = .chunked(ChunkedDecoder(.response))
        case .untilClose: state = .untilClose
        }
    }
}
