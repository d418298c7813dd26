import LarderHTTP
import LarderTime
import Synchronization

/// The storage, whose failures stay here; and what removes things from it.
extension HTTPCache {
    // MARK: Removing

    /// Removes everything. What is on its way is not stored either.
    public func removeAll() {
        revokeTickets { _ in true }
        attempt { try configuration.storage.removeAll() }
    }

    /// Removes what is stored under a URL.
    public func remove(url: String) {
        guard let url = CacheURL(url) else { return }
        revokeTickets { $0 == url.text }
        change(url.text) { $0 = [] }
    }

    /// Removes what is stored under all URLs that begin with this one: `https://api.example.com/v1/feed`. Cost: it looks at all
    /// keys.
    public func remove(urlPrefix: String) {
        // Taken apart and put together again, so that host and port are spelled as they are in keys.
        guard let prefix = CacheURL(urlPrefix)?.text else { return }
        remove { $0.utf8.starts(with: prefix.utf8) }
    }

    /// Removes what is stored under the URLs that are chosen. They are spelled with scheme and host in lower case, without
    /// default ports and fragments. Cost: it looks at all keys.
    public func remove(where isChosen: @Sendable (String) -> Bool) {
        revokeTickets(isChosen)
        for key in attempt({ try configuration.storage.keys() }) ?? [] where isChosen(key) { change(key) { $0 = [] } }
    }

    /// Declares what is stored under a URL invalid: it is validated before it is used again (RFC 9111 §4.4).
    public func invalidate(url: String) { CacheURL(url).map { invalidate($0) } }

    func invalidate(_ url: CacheURL) {
        revokeTickets { $0 == url.text }
        change(url.text) { entries in
            for index in entries.indices { entries[index].isInvalidated = true }
        }
    }

    // MARK: Requests that change something

    /// Sends a request past the cache. One that is not safe makes what is stored invalid (RFC 9111 §4.4), also where its
    /// outcome is not known.
    func forward(
        _ request: TransportRequest,
        _ url: CacheURL?,
        _ explanation: String
    ) async throws(TransportError) -> HTTPCacheResponse {
        count { $0.exchanges += 1 }
        do throws(TransportError) {
            var reply = try await transport.send(request)
            if let url {
                for rule in rules(request.method, url) { rule.rewrite(reply.status, &reply.fields) }
                noteChange(request.method, url, reply.status, reply.fields)
            }
            return HTTPCacheResponse(
                status: reply.status,
                fields: reply.fields,
                body: reply.body,
                source: .network,
                explanation: explanation
            )
        } catch {
            noteFailedChange(request.method, url, error)
            throw error
        }
    }

    /// Invalidates what a successful change names: its URL, and of the same origin what `Location` and `Content-Location` say.
    func noteChange(_ method: Method, _ url: CacheURL, _ status: Status, _ fields: Fields) {
        guard !method.isSafe, (200..<400).contains(status.code) else { return }
        var targets: Set<CacheURL> = [url]
        for name in [FieldName.location, .contentLocation] {
            guard let target = fields[name].flatMap({ url.resolve($0) }), target.origin == url.origin else { continue }
            targets.insert(target)
        }
        for target in targets { invalidate(target) }
    }

    /// Invalidates a URL at which something may have changed.
    func noteFailedChange(_ method: Method, _ url: CacheURL?, _ error: TransportError) {
        guard let url, !method.isSafe, error.code != .unreachable, error.code != .invalidURL else { return }
        invalidate(url)
    }

    // MARK: The storage

    func storedEntries(_ key: String) -> [HTTPCacheEntry] {
        attempt { try configuration.storage.entries(for: key) } ?? []
    }

    func storedBody(_ entry: HTTPCacheEntry, _ key: String) -> [UInt8]? {
        let body = attempt { try configuration.storage.body(of: entry, for: key) } ?? nil
        // What has another length is not what was stored.
        return body?.count == entry.bodyCount ? body : nil
    }

    @discardableResult func change(
        _ key: String,
        body: [UInt8]? = nil,
        _ change: @Sendable (inout [HTTPCacheEntry]) -> Void
    ) -> Bool {
        attempt { try configuration.storage.update(key, body: body, change) } != nil
    }

    private func attempt<Result>(_ body: () throws -> Result) -> Result? {
        do { return try body() } catch {
            count { $0.storageFailures += 1 }
            configuration.onStorageFailure(error)
            return nil
        }
    }

    // MARK: Tickets

    func issueTicket(_ key: String) -> HTTPCacheTicket {
        let ticket = HTTPCacheTicket(key)
        state.withLock { $0.tickets[ObjectIdentifier(ticket)] = ticket }
        return ticket
    }

    func takeBack(_ ticket: HTTPCacheTicket) { state.withLock { $0.tickets[ObjectIdentifier(ticket)] = nil } }

    /// Ends the right to store of exchanges that are under way, and lets nobody join them any more.
    private func revokeTickets(_ isChosen: (String) -> Bool) {
        let revoked = state.withLock { state in
            state.flights = state.flights.filter { !isChosen($0.key.url.text) }
            return state.tickets.values.filter { isChosen($0.key) }
        }
        for ticket in revoked { ticket.revoke() }
    }
}
