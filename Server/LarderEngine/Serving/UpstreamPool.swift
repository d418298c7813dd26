import LarderTime

/// The connections of one loop to another server. Confined to its loop.
///
/// A connection carries one exchange at a time and is used again if both sides allow it. At most
/// `ServerConfiguration.upstreamConnectionsMaximum` are open; further exchanges wait in order, for at most `waitTimeoutSeconds`.
final class UpstreamPool {
    /// The maximum time until an exchange has a connection.
    static let waitTimeoutSeconds: Int64 = 10
    private static let idleMaximum = 32

    let loop: EventLoop
    let address: UpstreamAddress
    /// The index of the address that was reached last.
    var preferredPlace = 0
    private var connections: [UpstreamConnection] = []
    private var idle: [UpstreamConnection] = []
    private var waiting: [UpstreamExchange] = []
    private var isStarting = false

    init(_ address: UpstreamAddress, _ loop: EventLoop) {
        self.address = address
        self.loop = loop
    }

    /// The number of exchanges that are in flight or wait.
    var exchangeCount: Int { waiting.count + connections.count - idle.count }

    private var hasFreeConnection: Bool {
        !idle.isEmpty || connections.count < loop.configuration.upstreamConnectionsMaximum
    }

    func begin(_ exchange: UpstreamExchange) {
        guard hasFreeConnection else {
            let maximum = loop.configuration.upstreamWaitingMaximum
            guard waiting.count < maximum else { return exchange.end(.failed(.tooMany(maximum))) }
            return waiting.append(exchange)
        }
        if let connection = idle.popLast() {
            connection.begin(exchange)
        } else {
            let connection = UpstreamConnection(self)
            connections.append(connection)
            connection.open(for: exchange)
        }
    }

    /// Ends an exchange that is in flight or waits; nothing more is received.
    func cancel(_ exchange: UpstreamExchange) {
        if let connection = exchange.connection {
            connection.cancel()
        } else {
            waiting.removeAll { $0 === exchange }
            exchange.leave()
        }
    }

    /// The exchange is over, and the connection can carry another one.
    func finished(_ connection: UpstreamConnection) {
        guard waiting.isEmpty, idle.count >= Self.idleMaximum else {
            idle.append(connection)
            return startWaiting()
        }
        connection.cancel()
    }

    func closeIdle() { for connection in idle { connection.cancel() } }

    func closed(_ connection: UpstreamConnection) {
        connections.removeAll { $0 === connection }
        idle.removeAll { $0 === connection }
        startWaiting()
    }

    private func startWaiting() {
        // A connection that fails at once calls back: the loop below continues, and the stack does not grow.
        guard !isStarting, !waiting.isEmpty else { return }
        isStarting = true
        defer { isStarting = false }
        while hasFreeConnection, !waiting.isEmpty { begin(waiting.removeFirst()) }
    }

    /// Closes everything, because the loop ends.
    func end() {
        for exchange in waiting { exchange.leave() }
        waiting = []
        for connection in connections { connection.cancel() }
    }

    func checkDeadlines(_ now: MonotonicTime) {
        for connection in connections { connection.checkDeadline(now) }
        guard let first = waiting.first, now >= first.deadline else { return }
        let end = waiting.firstIndex { now < $0.deadline } ?? waiting.endIndex
        let expired = Array(waiting[..<end])
        waiting.removeFirst(end)
        let reason =
            "All \(loop.configuration.upstreamConnectionsMaximum) connections to the server were in use for "
            + "\(Self.waitTimeoutSeconds) s while the request waited for one."
        for exchange in expired { exchange.end(.failed(.timedOut(reason))) }
    }
}
