import LarderHTTP
import LarderTime
import LarderTransport

/// Requests that the cache does not answer: unsafe methods, and `GET` with content.
extension HTTPCache {
    /// Sends a request without reading the cache, as `openPast` does, and reads its response.
    func forward(
        _ request: TransportRequest,
        _ explanation: String
    ) async throws(TransportError) -> HTTPCache.Response {
        let reply = try await openPast(request).whole()
        return HTTPCache.Response(
            status: reply.status,
            fields: reply.fields,
            body: reply.body,
            source: .network,
            explanation: explanation
        )
    }

    /// Opens a request without reading the cache. An unsafe method invalidates stored responses (RFC 9111 §4.4), also if its outcome is
    /// unknown. The response to a `POST` may be stored in their place (RFC 9110 §9.3.3).
    func openPast(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
        let url = HTTPURL(request.url)
        let ticket = url.map { issueTicket($0.text) }
        var isTicketGiven = false
        defer { if !isTicketGiven { ticket.map(takeBack) } }
        let requestedAt = configuration.clock.now
        do throws(TransportError) {
            let stream = try await transport.open(request)
            guard let url, let ticket else { return stream }
            var fields = stream.fields
            for rule in rules(request.method, url) { rule.rewrite(stream.status, &fields) }
            await noteChange(request.method, url, stream.status, fields, ticket)
            guard mayKeep(request, url, stream.status, fields, isRedirected: stream.redirectedTo != nil) else {
                return Self.rewritten(stream, fields)
            }
            isTicketGiven = true
            let plan = Plan(request: request, url: url, explanation: "")
            let tee = HTTPCacheTee(self, plan, stream, fields, requestedAt: requestedAt, ticket: ticket)
            return TransportStream(status: stream.status, fields: fields, body: tee.body)
        } catch {
            await noteFailedChange(request.method, url, error)
            throw error
        }
    }

    /// Whether the head of a response to a `POST` allows storing it.
    private func mayKeep(
        _ request: TransportRequest,
        _ url: HTTPURL,
        _ status: Status,
        _ fields: Fields,
        isRedirected: Bool
    ) -> Bool {
        request.method == .post && !isRedirected
            && rules(request.method, url).allSatisfy { !$0.forbidsStorage && $0.accepts(status, fields) }
            && HTTPCacheStorageDecision.rejection(request, status, fields, configuration.policy) == nil
    }

    /// Invalidates the URL of a successful change, and its `Location` and `Content-Location` in the same origin.
    ///
    /// - Parameter ticket: the permission of the change itself, which is not revoked.
    private func noteChange(
        _ method: Method,
        _ url: HTTPURL,
        _ status: Status,
        _ fields: Fields,
        _ ticket: HTTPCacheTicket
    ) async {
        guard !method.isSafe, (200..<400).contains(status.code) else { return }
        var targets: Set<HTTPURL> = [url]
        for name in [FieldName.location, .contentLocation] {
            guard let target = fields[name].flatMap({ url.resolve($0) }), target.origin == url.origin else { continue }
            targets.insert(target)
        }
        let changed = targets
        await onDiskThread { for target in changed { self.invalidate(target, except: ticket) } }
    }

    /// Invalidates a URL after a change with an unknown outcome.
    private func noteFailedChange(_ method: Method, _ url: HTTPURL?, _ error: TransportError) async {
        guard let url, !method.isSafe, error.code != .unreachable, error.code != .invalidURL else { return }
        await onDiskThread { self.invalidate(url) }
    }
}
