import LarderTime

/// Requests to other servers.
extension EventLoop {
    /// Sends a request to another server. Must be called on the loop's thread; the receiver is called there.
    package func send(
        _ request: UpstreamRequest,
        to address: UpstreamAddress,
        _ receiver: any UpstreamReceiver
    ) -> UpstreamExchange {
        precondition(isCurrent, "Requests to other servers must be sent on the loop's thread.")
        let pool = pool(of: address)
        let exchange = UpstreamExchange(request, in: pool, for: receiver)
        pool.begin(exchange)
        return exchange
    }

    /// There are few: comparing is cheaper than hashing an address for each request.
    private func pool(of address: UpstreamAddress) -> UpstreamPool {
        if let pool = pools.first(where: { $0.address == address }) { return pool }
        let pool = UpstreamPool(address, self)
        pools.append(pool)
        return pool
    }
}
