import LarderTime

/// Requests to other servers.
extension EventLoop {
    /// Sends a request to another server. Must be called on the loop's thread; `receive` is called there.
    package func send(
        _ request: UpstreamRequest,
        to address: UpstreamAddress,
        _ receive: @escaping @Sendable (UpstreamEvent) -> Void
    ) -> UpstreamTask {
        precondition(isCurrent, "Requests to other servers must be sent on the loop's thread.")
        lastUpstream += 1
        let deadline = now + UpstreamPool.waitTimeout
        pool(of: address)
            .begin(UpstreamExchange(id: lastUpstream, request: request, receive: receive, deadline: deadline))
        return UpstreamTask(loop: self, id: lastUpstream)
    }

    /// There are few: comparing is cheaper than hashing an address for each request.
    private func pool(of address: UpstreamAddress) -> UpstreamPool {
        if let pool = pools.first(where: { $0.address == address }) { return pool }
        let pool = UpstreamPool(address, self)
        pools.append(pool)
        return pool
    }

    /// The connection that carries an exchange with another server. On the loop's thread only.
    func upstreamConnection(_ exchange: UInt64) -> UpstreamConnection? {
        precondition(isCurrent, "Connections must be used on their loop's thread.")
        return pools.lazy.compactMap { $0.connection(exchange) }.first
    }

    /// Ends an exchange with another server that is in flight or waits for a connection. On the loop's thread only.
    func cancelUpstream(_ exchange: UInt64) {
        precondition(isCurrent, "Connections must be used on their loop's thread.")
        for pool in pools { pool.cancel(exchange) }
    }
}
