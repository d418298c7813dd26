import LarderHTTP
import LarderTime
import LarderTransport
import Synchronization

/// Access to the storage, and removal.
extension HTTPCache {
    // MARK: Removing

    /// Removes all responses. Responses in flight are not stored.
    public func removeAll() {
        revokeTickets { _ in true }
        attempt { try configuration.storage.removeAll() }
    }

    /// Removes the responses of a URL.
    public func remove(url: String) {
        guard let url = HTTPURL(url) else { return }
        revokeTickets { $0 == url.text }
        change(url.text) { $0 = [] }
    }

    /// Removes the responses of all URLs with a prefix, such as `https://api.example.com/v1/feed`. Cost: reads all
    /// keys.
    public func remove(urlPrefix: String) {
        // Normalised like the keys.
        guard let prefix = HTTPURL(urlPrefix)?.text else { return }
        remove { $0.utf8.starts(with: prefix.utf8) }
    }

    /// Removes the responses of the chosen URLs, which have scheme and host in lower case and no default port or
    /// fragment. Cost: reads all keys.
    public func remove(where isChosen: @Sendable (String) -> Bool) {
        revokeTickets(isChosen)
        for key in attempt({ try configuration.storage.keys() }) ?? [] where isChosen(key) { change(key) { $0 = [] } }
    }

    /// Invalidates the responses of a URL: they are validated before their next use (RFC 9111 §4.4).
    public func invalidate(url: String) { HTTPURL(url).map { invalidate($0) } }

    func invalidate(_ url: HTTPURL) {
        revokeTickets { $0 == url.text }
        change(url.text) { entries in
            for index in entries.indices { entries[index].isInvalidated = true }
        }
    }

    // MARK: Requests that change something

    /// Sends a request without reading the cache. An unsafe method invalidates stored responses (RFC 9111 §4.4), also
    /// if its outcome is unknown.
    func forward(
        _ request: TransportRequest,
        _ url: HTTPURL?,
        _ explanation: String
    ) async throws(TransportError) -> HTTPCache.Response {
        count { $0.exchanges += 1 }
        do throws(TransportError) {
            var reply = try await transport.send(request)
            if let url {
                for rule in rules(request.method, url) { rule.rewrite(reply.status, &reply.fields) }
                noteChange(request.method, url, reply.status, reply.fields)
            }
            return HTTPCache.Response(
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

    /// Invalidates the URL of a successful change, and its `Location` and `Content-Location` in the same origin.
    func noteChange(_ method: Method, _ url: HTTPURL, _ status: Status, _ fields: Fields) {
        guard !method.isSafe, (200..<400).contains(status.code) else { return }
        var targets: Set<HTTPURL> = [url]
        for name in [FieldName.location, .contentLocation] {
            guard let target = fields[name].flatMap({ url.resolve($0) }), target.origin == url.origin else { continue }
            targets.insert(target)
        }
        for target in targets { invalidate(target) }
    }

    /// Invalidates a URL after a change with an unknown outcome.
    func noteFailedChange(_ method: Method, _ url: HTTPURL?, _ error: TransportError) {
        guard let url, !method.isSafe, error.code != .unreachable, error.code != .invalidURL else { return }
        invalidate(url)
    }

    // MARK: The storage

    func storedEntries(_ key: String) -> [HTTPCacheEntry] {
        attempt { try configuration.storage.entries(for: key) } ?? []
    }

    func storedBody(_ entry: HTTPCacheEntry, _ key: String) -> [UInt8]? {
        let body = attempt { try configuration.storage.body(of: entry, for: key) } ?? nil
        // Content of another length is damaged.
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

    /// Forbids exchanges in flight to store, and closes them for further requests.
    private func revokeTickets(_ isChosen: (String) -> Bool) {
        let revoked = state.withLock { state in
            state.flights = state.flights.filter { !isChosen($0.key.url.text) }
            return state.tickets.values.filter { isChosen($0.key) }
        }
        for ticket in revoked { ticket.revoke() }
    }
}
