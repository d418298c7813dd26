import LarderCoding
import LarderHTTP

@testable import LarderEngine
@testable import LarderHTTPWire
@testable import LarderTransport

/// What a reader of requests has found.
private enum Found: Equatable {
    case request(String, [UInt8], [UInt8])
    case rejected
}

/// Reads requests as a connection does: what is not consumed is passed again.
private func requests(_ pieces: [ArraySlice<UInt8>], headBytesMaximum: Int) -> [Found] {
    var reader = RequestReader(headBytesMaximum: headBytesMaximum, bodyBytesMaximum: 4_096)
    var held: [UInt8] = []
    var found: [Found] = []
    for piece in pieces {
        held += piece
        var consumed = 0
        reading: while true {
            let before = consumed
            switch reader.next(held.span, &consumed) {
            case .incomplete: break reading
            case .awaitsContinue, .head: continue
            case .request(let request):
                require(request.body.count <= 4_096, "A body is larger than its maximum.")
                found.append(.request(request.method.rawValue, request.head, request.body))
                // A request without progress would be answered for ever.
                require(consumed > before || !request.body.isEmpty, "A request has no bytes.")
            case .rejected: return found + [.rejected]
            }
        }
        held.removeFirst(consumed)
    }
    return found
}

/// Requests of a server: pieces of any size give the same requests.
func fuzzRequest(_ bytes: [UInt8]) {
    let whole = requests([bytes[...]], headBytesMaximum: 1 << 16)
    requireEqual(whole, requests(pieces(bytes), headBytesMaximum: 1 << 16), "Pieces give other requests.")
    _ = requests(pieces(bytes), headBytesMaximum: 256)
    for case .request(_, let head, _) in whole {
        guard let parsed = try? RequestHead(head) else { fail("A head is accepted once only.") }
        let target = text(Array(head[parsed.target]))
        require(target == "*" || target.hasPrefix("/"), "The target is '\(target)'.")
        for line in parsed.fields.lines {
            let name = Array(head[Int(line.name.lowerBound)..<Int(line.name.upperBound)])
            require(!name.isEmpty && name.allSatisfy(isTokenByte), "A name is '\(text(name))'.")
        }
        _ = parsed.fields.combined(.cookie)
    }
}

/// The content, the end and the failure of a response.
private func response(_ pieces: [ArraySlice<UInt8>], isHead: Bool) -> (String, [UInt8], keepsAlive: Bool) {
    var reader = ResponseReader(isHead: isHead)
    var events: [ResponseReader.Event] = []
    var end = "open"
    do throws(ResponseReader.Failure) {
        for piece in pieces { try reader.receive(Array(piece).span, &events) }
        try reader.end(&events)
        end = "complete"
    } catch {
        switch error {
        case .malformed: end = "malformed"
        case .noResponse: end = "none"
        case .truncated: end = "truncated"
        }
    }
    var content: [UInt8] = []
    var heads = 0
    for (index, event) in events.enumerated() {
        switch event {
        case .head(let head):
            heads += 1
            end += " \(head.status.code) " + head.fields.map { "\($0.name): \($0.value)" }.joined(separator: "\n")
        case .content(let bytes): content += bytes
        case .end: require(index == events.count - 1, "An event follows the end.")
        }
    }
    require(heads <= 1, "There are \(heads) heads.")
    return (end, content, reader.keepsAlive)
}

/// Responses to a client, after a byte that says whether the request was a `HEAD`.
func fuzzResponse(_ bytes: [UInt8]) {
    let isHead = bytes.first == UInt8(ascii: "!")
    let rest = isHead ? Array(bytes.dropFirst()) : bytes
    let whole = response([rest[...]], isHead: isHead)
    let parts = response(pieces(rest), isHead: isHead)
    requireEqual(whole.0, parts.0, "Pieces give another head or end.")
    requireEqual(whole.1, parts.1, "Pieces give other content.")
    if whole.0.hasPrefix("complete") {
        requireEqual(whole.keepsAlive, parts.keepsAlive, "Pieces change the life of the connection.")
    }
}

private func chunks(_ pieces: [ArraySlice<UInt8>], _ limits: ChunkedDecoder.Limits) -> (Bool, [UInt8], Bool, Int) {
    var decoder = ChunkedDecoder(limits)
    var body: [UInt8] = []
    var taken = 0
    for piece in pieces {
        do throws(Rejection) {
            let end = try decoder.decode(Array(piece).span, from: 0, into: &body)
            taken += end
            if decoder.isDone { break }
            require(end == piece.count, "A decoder stops before the end of its bytes.")
        } catch { return (true, body, false, 0) }
    }
    return (false, body, decoder.isDone, taken)
}

/// Chunked bodies, as a server and as a client read them; what the encoder writes is read back.
func fuzzChunked(_ bytes: [UInt8]) {
    for limits in [.request(bodyBytesMaximum: 512), ChunkedDecoder.Limits.response] {
        let whole = chunks([bytes[...]], limits)
        let parts = chunks(pieces(bytes), limits)
        require(whole == parts, "Pieces give another body: \(whole) \(parts)")
        require(limits.bodyBytesMaximum >= whole.1.count, "The body has \(whole.1.count) bytes.")
    }
    let coded = pieces(bytes).flatMap { ChunkedEncoder.chunk(Array($0)) } + ChunkedEncoder.end
    let back = chunks(pieces(coded), .response)
    require(back == (false, bytes, true, coded.count), "The encoder's body is not read back.")
}

private func content(_ pieces: [ArraySlice<UInt8>], _ coding: ContentCoding) -> [UInt8]? {
    var decoder = ContentDecoder(coding, bytesMaximum: 1 << 20, ratioMaximum: 500)
    var content: [UInt8] = []
    do {
        for piece in pieces {
            decoder.receive(Array(piece))
            while let more = try decoder.next() {
                require(!more.isEmpty && more.count <= 65_536, "A piece has \(more.count) bytes.")
                content += more
            }
        }
        try decoder.end()
    } catch { return nil }
    require(content.count <= 1 << 20, "The content has \(content.count) bytes.")
    return content
}

/// Compressed content of a response, after a byte that chooses the coding.
func fuzzContent(_ bytes: [UInt8]) {
    guard let first = bytes.first else { return }
    let coding: ContentCoding = first & 1 == 0 ? .gzip : .deflate
    let rest = Array(bytes.dropFirst())
    requireEqual(content([rest[...]], coding), content(pieces(rest), coding), "Pieces give other content.")
}
