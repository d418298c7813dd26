import LarderHTTP
import Synchronization

/// The decoded content of a response in a content coding.
final class DecodedContent: Sendable {
    private let source: TransportStream.Body
    private let decoder: Mutex<ContentDecoder>
    private let received: CodedByteCount

    private init(_ source: TransportStream.Body, _ decoder: consuming ContentDecoder, _ received: CodedByteCount) {
        self.source = source
        self.decoder = Mutex(consume decoder)
        self.received = received
    }

    /// Returns the response with decoded content, if it has a content coding.
    ///
    /// The result has neither `Content-Encoding` nor `Content-Length`, which describe the coded content; its entity tag stays
    /// that of the coded representation, which is what later conditions must name. Fields of a response without content are kept.
    ///
    /// - Throws: `.unsupportedCoding` for a coding that was not offered.
    static func decoding(
        _ stream: TransportStream,
        of request: TransportRequest,
        ratioMaximum: Int
    ) throws(TransportError) -> TransportStream {
        // A caller that negotiates decodes as well.
        guard !request.fields.contains(.acceptEncoding), request.method != .head, !stream.status.hasNoContent else {
            return stream
        }
        let names = stream.fields.values(of: .contentEncoding).flatMap(FieldList.members)
            .filter { $0.lowercased() != "identity" }
        guard !names.isEmpty else { return stream }
        guard names.count == 1, let coding = ContentCoding(name: names[0]), SocketRequest.offersCodings(request) else {
            throw TransportError(
                .unsupportedCoding,
                "The response has the content coding '\(names.joined(separator: ", "))', which was not offered. "
                    + "Set 'Accept-Encoding' to receive it as it is."
            )
        }
        let received = CodedByteCount()
        let decoder = ContentDecoder(coding, bytesMaximum: request.bodyLimit, ratioMaximum: ratioMaximum)
        let content = DecodedContent(stream.body, consume decoder, received)
        var decoded = stream
        decoded.body = TransportStream.Body { () async throws(TransportError) in try await content.next() }
        decoded.fields.remove(.contentEncoding)
        decoded.fields.remove(.contentLength)
        // Digests are those of the coded content (RFC 9530 §2, §3).
        decoded.fields.removeAll { ["content-digest", "repr-digest", "digest", "content-md5"].contains($0.canonical) }
        decoded.codedBytes = received
        return decoded
    }

    private func next() async throws(TransportError) -> [UInt8]? {
        while true {
            if let piece = try decoder.withLock({ decoder throws(TransportError) in try decoder.next() }) {
                return piece
            }
            guard let coded = try await source.next() else {
                try decoder.withLock { decoder throws(TransportError) in try decoder.end() }
                return nil
            }
            received.add(coded.count)
            decoder.withLock { $0.receive(coded) }
        }
    }
}
