import LarderHTTP
import LarderResources
import LarderTransport

extension HTTPSource.Authorizer {
    /// Authorizes and sends a request, and once more after a 401 if the credentials were renewed.
    ///
    /// - Parameters:
    ///   - isRejected: whether a reply rejects the credentials.
    ///   - failed: the result if the authorizer fails, or if the body cannot be sent again, with the reply that has rejected the request.
    ///   - attempt: sends the authorized request.
    func sending<Reply, Failure: Error>(
        _ request: TransportRequest,
        isRejected: (Reply) -> Bool,
        failed: (LarderError, _ rejection: Reply?) throws(Failure) -> Reply,
        _ attempt: (TransportRequest) async throws(Failure) -> Reply
    ) async throws(Failure) -> Reply {
        var rejection: Reply?
        while true {
            var sent = request
            do throws(LarderError) { try await authorize(&sent) } catch { return try failed(error, rejection) }
            let reply = try await attempt(sent)
            guard rejection == nil, isRejected(reply) else { return reply }
            do throws(LarderError) {
                guard try await renew(after: sent) else { return reply }
                try Self.requireReplayable(request)
            } catch { return try failed(error, reply) }
            rejection = reply
        }
    }

    /// - Throws: `.unauthorized` with a `TransportError` as its cause if a request that was rejected with a 401 cannot be sent again.
    private static func requireReplayable(_ request: TransportRequest) throws(LarderError) {
        guard let upload = request.upload, !upload.canBeSent else { return }
        let error = TransportError(
            .bodyNotReplayable,
            "\(HTTPURL.redacted(request.url)) was rejected with 401 and the credentials were renewed, but the body can be read only "
                + "once. Send the request again with a new body."
        )
        throw LarderError(.unauthorized, error.description, cause: error, status: 401)
    }
}
