import LarderHTTP

/// Reads consecutive requests from bytes in any pieces: a value without I/O.
package struct RequestReader {
    private enum Stage {
        case head(HeadScanner)
        // Boxed, because bodies are rare and the stage is examined for every request. The requests are without what has arrived of
        // their bodies.
        indirect case body(Request, left: Int)
        indirect case chunks(Request, ChunkedDecoder)
    }

    package enum Outcome {
        /// More bytes are needed.
        case incomplete
        case request(Request)
        /// The head of a request whose body is not read yet.
        case head(Request)
        /// The client waits for a 100 before it sends the body.
        case awaitsContinue
        case rejected(Rejection)
    }

    private let headBytesMaximum: Int
    private let bodyBytesMaximum: Int
    private var stage = Stage.head(HeadScanner(skipsEmptyLines: true))
    /// What has arrived of the current request's body. It has one owner, and so nothing is copied when it grows.
    private(set) var body: [UInt8] = []
    private var mustAskForContinue = false
    /// How many bytes of the current request's body are read; nil: all.
    var bodyLimit: Int?

    package init(headBytesMaximum: Int, bodyBytesMaximum: Int) {
        self.headBytesMaximum = headBytesMaximum
        self.bodyBytesMaximum = bodyBytesMaximum
    }

    /// Whether a request has begun and is not complete.
    var isInside: Bool {
        if case .head(let scanner) = stage { scanner.scanned > scanner.start } else { true }
    }

    /// Continues reading. `consumed` counts the bytes that must not be passed again: a head is passed again until it is
    /// complete.
    package mutating func next(_ bytes: Span<UInt8>, _ consumed: inout Int) -> Outcome {
        switch stage {
        case .head(var scanner):
            let unread = bytes.extracting(consumed..<bytes.count)
            let outcome = scanner.scan(unread)
            stage = .head(scanner)
            switch outcome {
            case .incomplete:
                return unread.count > headBytesMaximum ? .rejected(tooLarge(scanner)) : .incomplete
            case .malformed(let what): return .rejected(Rejection(.badRequest, "The head has \(what)."))
            case .head(let range):
                guard range.count <= headBytesMaximum else { return .rejected(tooLarge(scanner)) }
                let head = unsafe unread.extracting(range).withUnsafeBufferPointer { unsafe Array($0) }
                consumed += scanner.scanned
                stage = .head(HeadScanner(skipsEmptyLines: true))
                do { return try begin(try RequestHead(head), hasMore: consumed < bytes.count) } catch {
                    return .rejected(error)
                }
            }
        case .body(let request, let left):
            let count = min(left, bytes.count - consumed, bodyLimit.map { $0 - body.count } ?? .max)
            unsafe bytes.extracting(consumed..<(consumed + count)).withUnsafeBufferPointer {
                unsafe body.append(contentsOf: $0)
            }
            consumed += count
            guard count == left else {
                if body.count == bodyLimit { return complete(request, isCut: true) }
                stage = .body(request, left: left - count)
                return askForContinue() ?? .incomplete
            }
            return complete(request)
        case .chunks(let request, var decoder):
            do {
                consumed = try decoder.decode(bytes, from: consumed, into: &body)
            } catch { return .rejected(error) }
            if let bodyLimit, body.count > bodyLimit || body.count == bodyLimit && !decoder.isDone {
                body.removeSubrange(bodyLimit...)
                return complete(request, isCut: true)
            }
            guard decoder.isDone else {
                stage = .chunks(request, decoder)
                return askForContinue() ?? .incomplete
            }
            return complete(request)
        }
    }

    private mutating func complete(_ request: Request, isCut: Bool = false) -> Outcome {
        var request = request
        request.isCut = isCut
        bodyLimit = nil
        request.body = exchange(&body, with: [])
        stage = .head(HeadScanner(skipsEmptyLines: true))
        return .request(request)
    }

    /// Returns 414 if the start line is too long, otherwise 431.
    private func tooLarge(_ scanner: HeadScanner) -> Rejection {
        guard scanner.lineCount ?? .max <= RequestHead.targetBytesMaximum else {
            return Rejection(.uriTooLong, "The request line is longer than a target or a head may be.")
        }
        return Rejection(.requestHeaderFieldsTooLarge, "The head has more than \(headBytesMaximum) bytes.")
    }

    /// Processes a complete head.
    private mutating func begin(_ head: RequestHead, hasMore: Bool) throws(Rejection) -> Outcome {
        let hosts = head.fields.count(of: "host")
        guard hosts == 1 || (head.minorVersion == 0 && hosts == 0) else {
            throw Rejection(.badRequest, "There must be exactly one Host field.")
        }
        let framing = try BodyFraming(head, bodyBytesMaximum: bodyBytesMaximum)
        mustAskForContinue = false
        if head.minorVersion == 1, head.fields.range(of: "expect") != nil {
            guard head.fields.combined(.expect)?.lowercased() == "100-continue" else {
                return .rejected(Rejection(.expectationFailed, "Only Expect: 100-continue is supported."))
            }
            mustAskForContinue = framing != .none && !hasMore
        }
        let request = Request(head)
        switch framing {
        case .length(let length):
            body.reserveCapacity(length)
            stage = .body(request, left: length)
        case .chunked:
            stage = .chunks(request, ChunkedDecoder(.request(bodyBytesMaximum: bodyBytesMaximum)))
        // Only a response can end with its connection.
        case .none, .untilClose: return .request(request)
        }
        return .head(request)
    }

    private mutating func askForContinue() -> Outcome? {
        guard mustAskForContinue else { return nil }
        mustAskForContinue = false
        return .awaitsContinue
    }
}
