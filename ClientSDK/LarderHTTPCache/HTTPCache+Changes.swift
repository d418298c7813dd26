import LarderHTTP
import LarderTime
import LarderTransport

/// Requests that the cache does not answer: unsafe methods, and `GET` with content.
extension HTTPCache {
    /// Sends a request without reading the cache. An unsafe method invalidates stored responses (RFC 9111 §4.4), also
    /// if its outcome is unknown. The response to a `POST` may be stored in their place (RFC 9110 §9.3.3).
    func forward(
        _ request: TransportRequest,
        _ url: HTTPURL?,
        _ explanation: String
    ) async throws(TransportError) -> HTTPCache.Response {
        count { $0.exchanges += 1 }
        let ticket = url.map { issueTicket($0.text) }
        defer { ticket.map(takeBack) }
        let requestedAt = configuration.clock.now
        do throws(TransportError) {
            var reply = try await transport.send(request)
            var response = HTTPCache.Response(
                status: reply.status,
                fields: reply.fields,
                body: reply.body,
                source: .network,
                explanation: explanation
            )
            guard let url, let ticket else { return response }
            for rule in rules(request.method, url) { rule.rewrite(reply.status, &reply.fields) }
            response.fields = reply.fields
            await noteChange(request.method, url, reply.status, reply.fields, ticket)
            guard mayKeep(request, url, reply.status, reply.fields, isRedirected: reply.redirectedTo != nil) else {
                return response
            }
            let receivedAt = configuration.clock.now
            let decision = HTTPCacheStorageDecision.decide(
                request: request,
                response: reply,
                requestedAt: requestedAt,
                receivedAt: receivedAt,
                policy: configuration.policy
            )
            let plan = Plan(changing: request, url, explanation)
            await onDiskThread { [reply] in self.keep(decision.entry, reply, plan, ticket) }
            response.explanation += " \(decision.explanation)"
            response.times = decision.entry.map {
                HTTPCache.Response.Times($0, now: receivedAt, policy: configuration.policy)
            }
            return response
        } catch {
            await noteFailedChange(request.method, url, error)
            throw error
        }
    }

    /// Opens a request without reading the cache, as `forward(_:_:_:)` sends it.
    func openPast(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
        count { statistics in
            statistics.requests += 1
            statistics.exchanges += 1
        }
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
            let plan = Plan(changing: request, url, "")
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

extension HTTPCache.Plan {
    /// A request that stored responses do not answer.
    fileprivate init(changing request: TransportRequest, _ url: HTTPURL, _ explanation: String) {
        self.init(
            request: request,
            url: url,
            entries: [],
            entry: nil,
            conditions: Fields(),
            explanation: explanation
        )
    }
}
