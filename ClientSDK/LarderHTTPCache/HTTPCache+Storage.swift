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
        await onDiskThread { _ = self.empty() }
    }

    /// Removes the responses of a URL.
    nonisolated(nonsending) public func remove(url: String) async {
        guard let url = HTTPURL(TransportRequest(url: url).url) else { return }
        revokeTickets { $0 == url.text }
        await onDiskThread { self.withdraw(url.text) { $0 = [] } }
    }

    /// Invalidates the responses of a URL: they are validated before their next use (RFC 9111 §4.4).
    nonisolated(nonsending) public func invalidate(url: String) async {
        guard let url = HTTPURL(TransportRequest(url: url).url) else { return }
        await onDiskThread { self.invalidate(url) }
    }

    func invalidate(_ url: HTTPURL) {
        revokeTickets { $0 == url.text }
        withdraw(url.text) { entries in
            for index in entries.indices { entries[index].isInvalidated = true }
        }
    }

    // MARK: The storage

    func storedEntries(_ key: String) -> [HTTPCacheEntry] {
        guard !state.withLock({ $0.hides(key) }) else { return [] }
        return attempt { try configuration.storage.entries(for: key) } ?? []
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
        _ = update(key, body, change)
    }

    /// Returns whether the storage has taken the change. What it refused to remove or to invalidate before is removed first.
    private func update(
        _ key: String,
        _ body: [UInt8]?,
        _ change: @Sendable (inout [HTTPCacheEntry]) -> Void
    ) -> Bool {
        let (refused, refusedAll) = state.withLock { ($0.refused[key], $0.refused[nil]) }
        guard refusedAll == nil || empty() else { return false }
        let done: Void? = attempt {
            try configuration.storage.update(key, body: body) { entries in
                if refused != nil { entries = [] }
                change(&entries)
            }
        }
        guard done != nil else { return false }
        if let refused {
            state.withLock { state in
                if state.refused[key] == refused { state.refused[key] = nil }
            }
        }
        return true
    }

    /// Removes or invalidates responses. If the storage refuses, they count as missing in this process until it takes a change of the key.
    private func withdraw(_ key: String, _ change: @Sendable (inout [HTTPCacheEntry]) -> Void) {
        if !update(key, nil, change) { noteRefusal(key) }
    }

    /// Removes everything; false if the storage refuses. Then everything counts as missing in this process until it is removed.
    private func empty() -> Bool {
        let before = state.withLock { $0.refusals }
        let done: Void? = attempt { try configuration.storage.removeAll() }
        guard done != nil else {
            noteRefusal(nil)
            return false
        }
        state.withLock { state in state.refused = state.refused.filter { $0.value > before } }
        return true
    }

    private func noteRefusal(_ key: String?) {
        state.withLock { state in
            state.refusals += 1
            // Bounded: beyond this number of keys, all count as refused.
            let isForAll = key == nil || state.refused.count >= 1_024
            if isForAll { state.refused = [nil: state.refusals] } else { state.refused[key] = state.refusals }
        }
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
