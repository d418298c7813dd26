import LarderHTTP

/// Reads requests, one after the other, from bytes in any pieces: a value without I/O.
struct RequestReader {
    private enum Stage {
        case head(HeadScanner)
        // Boxed, because bodies are rare and the stage is looked at for every request.
        indirect case body(Request, left: Int)
        indirect case chunks(Request, ChunkedDecoder)
    }

    enum Outcome {
        /// More bytes are needed.
        case incomplete
        case request(Request)
        /// The head of a request whose body is still to be read; told only to who asked for it.
        case head(Request)
        /// The client waits for a 100 before it sends the body.
        case awaitsContinue
        case refused(Refusal)
    }

    private let headBytesMaximum: Int
    private let bodyBytesMaximum: Int
    private var stage = Stage.head(HeadScanner())
    private var mustAskForContinue = false

    init(headBytesMaximum: Int, bodyBytesMaximum: Int) {
        self.headBytesMaximum = headBytesMaximum
        self.bodyBytesMaximum = bodyBytesMaximum
    }

    /// Whether a request has begun and is not complete.
    var isInside: Bool {
        if case .head(let scanner) = stage { scanner.scanned > scanner.start } else { true }
    }

    /// Reads on. `consumed` counts the bytes that need not be given again: a head is given again until it is complete.
    ///
    /// - Parameter tellsHeads: whether the head of a request that has a body is told before the body is read.
    mutating func next(_ bytes: Span<UInt8>, _ consumed: inout Int, tellsHeads: Bool = false) -> Outcome {
        switch stage {
        case .head(var scanner):
            let unread = bytes.extracting(consumed..<bytes.count)
            let outcome = scanner.scan(unread)
            stage = .head(scanner)
            switch outcome {
            case .incomplete:
                return unread.count > headBytesMaximum ? .refused(tooLarge(scanner)) : .incomplete
            case .malformed(let what): return .refused(Refusal(.malformed, "The head has \(what)."))
            case .head(let range):
                guard range.count <= headBytesMaximum else { return .refused(tooLarge(scanner)) }
                let head = unsafe unread.extracting(range).withUnsafeBufferPointer { unsafe Array($0) }
                consumed += scanner.scanned
                stage = .head(HeadScanner())
                do {
                    let request = try HeadParser.parse(head)
                    if let outcome = try begin(request, hasMore: consumed < bytes.count) { return outcome }
                    return tellsHeads ? .head(request) : next(bytes, &consumed)
                } catch { return .refused(error) }
            }
        case .body(var request, let left):
            let count = min(left, bytes.count - consumed)
            unsafe bytes.extracting(consumed..<(consumed + count)).withUnsafeBufferPointer {
                unsafe request.body.append(contentsOf: $0)
            }
            consumed += count
            guard count == left else {
                stage = .body(request, left: left - count)
                return askForContinue() ?? .incomplete
            }
            stage = .head(HeadScanner())
            return .request(request)
        case .chunks(var request, var decoder):
            do {
                consumed = try decoder.decode(bytes, from: consumed, into: &request.body)
            } catch { return .refused(error) }
            guard decoder.isDone else {
                stage = .chunks(request, decoder)
                return askForContinue() ?? .incomplete
            }
            stage = .head(HeadScanner())
            return .request(request)
        }
    }

    /// Says which part of a head is too long: what no field can be blamed for is the target's.
    private func tooLarge(_ scanner: HeadScanner) -> Refusal {
        guard scanner.lineCount ?? .max <= HeadParser.targetBytesMaximum else {
            return Refusal(.targetTooLong, "The request line is longer than a target or a head may be.")
        }
        return Refusal(.headTooLarge, "The head has more than \(headBytesMaximum) bytes.")
    }

    /// Looks at a head; nil where its body is to be read first.
    private mutating func begin(_ request: Request, hasMore: Bool) throws(Refusal) -> Outcome? {
        let hosts = request.fields.count(of: .host)
        guard hosts == 1 || (request.minorVersion == 0 && hosts == 0) else {
            throw Refusal(.malformed, "There must be one Host field.")
        }
        let framing = try BodyFraming(
            request.fields,
            minorVersion: request.minorVersion,
            bodyBytesMaximum: bodyBytesMaximum
        )
        mustAskForContinue = false
        if request.minorVersion == 1, request.fields.range(of: "expect") != nil {
            guard request.fields.combined(.expect)?.lowercased() == "100-continue" else {
                throw Refusal(.unsupportedExpectation, "Only Expect: 100-continue is understood.")
            }
            mustAskForContinue = framing != .none && !hasMore
        }
        switch framing {
        case .none: return .request(request)
        case .length(let length):
            var request = request
            request.body.reserveCapacity(length)
            stage = .body(request, left: length)
        case .chunked: stage = .chunks(request, ChunkedDecoder(bodyBytesMaximum: bodyBytesMaximum))
        }
        return nil
    }

    private mutating func askForContinue() -> Outcome? {
        guard mustAskForContinue else { return nil }
        mustAskForContinue = false
        return .awaitsContinue
    }
}
