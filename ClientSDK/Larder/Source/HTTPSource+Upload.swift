public import LarderHTTP
public import LarderResources
public import LarderTransport

extension HTTPSource {
    /// Sends a request with a body from a file, a sequence or a form, and decodes the reply.
    ///
    /// The content type is that of `fields` or the body's, and nothing is read into memory as a whole. `RequestBody.onProgress` reports
    /// what was sent. A body that can be read only once is not sent again after a 401.
    ///
    /// - Throws: as `send(_: TransportRequest)`; `.invalidArgument` if the body could not be read or does not have its stated length;
    ///   `.unexpectedReply` with a 2xx status if the server has accepted the request but its reply cannot be decoded.
    public func send<Value: Decodable & Sendable>(
        _ method: LarderHTTP.Method,
        _ path: String,
        upload: RequestBody,
        _ fields: Fields = Fields(),
        as type: Value.Type = Value.self
    ) async throws(LarderError) -> Reply<Value> {
        var request = request(method, path, fields)
        request.upload = upload
        return try decode(type, try await send(request), request)
    }

    /// Sends a request with a body from a file, a sequence or a form. Succeeds with any 2xx status; the content of the reply is ignored.
    ///
    /// - Throws: as the variant with a type.
    public func send(
        _ method: LarderHTTP.Method,
        _ path: String,
        upload: RequestBody,
        _ fields: Fields = Fields()
    ) async throws(LarderError) {
        var request = request(method, path, fields)
        request.upload = upload
        let response = try await send(request)
        // A captive portal may reply with any status.
        guard (200..<300).contains(response.status.code), !Self.isForeign(response) else {
            throw error(for: response, url(path))
        }
    }
}
