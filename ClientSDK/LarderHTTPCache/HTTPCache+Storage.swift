import LarderHTTP
import LarderTime
import LarderTransport
import Synchronization

/// Access to the storage, and removal.
extension HTTPCache {
    // MARK: Removing

    /// Removes all responses. Responses in flight are not stored.
    nonisolated(nonsending) public func removeAll() async {
        abandonExchanges()
        await onDiskThread { _ = self.attempt { try self.configuration.storage.removeAll() } }
    }

    /// Removes the responses of a URL.
    nonisolated(nonsending) public func remove(url: String) async {
        guard let url = HTTPURL(url) else { return }
        revokeTickets { $0 == url.text }
        await onDiskThread { self.change(url.text) { $0 = [] } }
    }

    /// Invalidates the responses of a URL: they are validated before their next use (RFC 9111 §4.4).
    nonisolated(nonsending) public func invalidate(url: String) async {
        guard let url = HTTPURL(url) else { return }
        await onDiskThread { self.invalidate(url) }
    }

    func invalidate(_ url: HTTPURL) {
        revokeTickets { $0 == url.text }
        change(url.text) { entries in
            for index in entries.indices { entries[index].isInvalidated = true }
        }
    }

    // MARK: The storage

    func storedEntries(_ key: String) -> [HTTPCacheEntry] {
        attempt { try configuration.storage.entries(for: key) } ?? []
    }

    /// The result of reading the content of an entry.
    enum StoredContent {
        case found([UInt8])
        /// It is missing or damaged.
        case lost
        /// The storage failed, for example because no descriptor is left.
        case unreadable
    }

    func storedContent(_ entry: HTTPCacheEntry, _ key: String, _ file: HTTPCacheFile? = nil) -> StoredContent {
        guard let stored = attempt({ try configuration.storage.body(of: entry, for: key) }) else { return .unreadable }
        // Content of another length is damaged.
        guard let body = stored, body.count == entry.bodyCount, file?.accepts(entry.status, body, true) != false else {
            return .lost
        }
        return .found(body)
    }

    func storedBody(_ entry: HTTPCacheEntry, _ key: String, _ file: HTTPCacheFile? = nil) -> [UInt8]? {
        if case .found(let body) = storedContent(entry, key, file) { body } else { nil }
    }

    func change(_ key: String, body: [UInt8]? = nil, _ change: @Sendable (inout [HTTPCacheEntry]) -> Void) {
        _ = attempt { try configuration.storage.update(key, body: body, change) }
    }

    private func attempt<Result>(_ body: () throws -> Result) -> Result? {
        do { return try body() } catch {
            configuration.onStorageFailure(error)
            return nil
        }
    }

    // MARK: Tickets

    func issueTicket(_ key: String, _ condition: (@Sendable () -> Bool)? = nil) -> HTTPCacheTicket {
        let ticket = HTTPCacheTicket(key, condition)
        state.withLock { $0.tickets[ObjectIdentifier(ticket)] = ticket }
        return ticket
    }

    func takeBack(_ ticket: HTTPCacheTicket) { state.withLock { $0.tickets[ObjectIdentifier(ticket)] = nil } }

    /// Forbids all exchanges in flight to store.
    package func abandonExchanges() { revokeTickets { _ in true } }

    /// Forbids exchanges in flight to store, and closes them for further requests.
    private func revokeTickets(_ isChosen: (String) -> Bool) {
        let revoked = state.withLock { state in
            state.flights = state.flights.filter { !isChosen($0.key.key) }
            return state.tickets.values.filter { isChosen($0.key) }
        }
        for ticket in revoked { ticket.revoke() }
    }
}
