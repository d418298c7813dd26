import LarderEvents
import LarderHTTP
import LarderResources
import LarderTransport

extension LostCopies {
    /// Sends a request that is repeated after a 401. Once a copy of an unsafe request was lost, neither a failure of the repetition nor a reply
    /// that turns it away says that it was not carried out: both become `.interrupted`.
    ///
    /// - Parameters:
    ///   - error: makes the error for `.interrupted`.
    ///   - send: sends the request, and repeats it.
    static func sending<Reply: RedirectableReply, Failure: Error>(
        _ request: TransportRequest,
        isolation: isolated (any Actor)? = #isolation,
        error makeError: (TransportError) -> Failure,
        _ send: () async throws(Failure) -> Reply
    ) async throws(Failure) -> Reply {
        guard !request.method.isSafe else { return try await send() }
        let lostCopies = LostCopies()
        let result: Result<Reply, Failure> = await $current.withValue(lostCopies) {
            do throws(Failure) { return .success(try await send()) } catch { return .failure(error) }
        }
        guard !lostCopies.isEmpty else { return try result.get() }
        current?.note()
        var text =
            "A connection ended without a reply to \(HTTPURL.redacted(request.url)), and sending it again failed. It may have been "
            + "carried out. "
        var retryAfter: Duration?
        switch result {
        case .success(let reply):
            guard Outbox.Verdict(status: Int(reply.status.code)) == .undecided else { return reply }
            text += "(The status is \(reply.status.code).)"
        case .failure(let failure):
            let error = LarderError(failure)
            guard !error.mayHaveBeenCarriedOut else { throw failure }
            text += "(\(error.description))"
            retryAfter = error.retryAfter
        }
        throw makeError(TransportError(.interrupted, text, retryAfter: retryAfter))
    }
}
