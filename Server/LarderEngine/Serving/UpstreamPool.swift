import LarderTime

/// The connections of one loop to another server. Confined to its loop.
///
/// A connection carries one exchange at a time and is used again if both sides allow it. At most
/// `ServerConfiguration.upstreamConnectionsMaximum` are open; further exchanges wait in order, for at most `waitTimeout`.
final class UpstreamPool {
    /// The maximum time until an exchange has a connection.
    static let waitTimeout = Duration.seconds(10)
    private static let idleMaximum = 32

    unowned let loop: EventLoop
    let address: UpstreamAddress
    /// The index of the address that was reached last.
    var preferredPlace = 0
    private var idle: [UpstreamConnection] = []
    private var active: [UInt64: UpstreamConnection] = [:]
    private var openCount = 0
    private var waiting: [UpstreamExchange] = []
    private var isStarting = false

    init(_ address: UpstreamAddress, _ loop: EventLoop) {
        self.address = address
        self.loop = loop
    }

    func connection(_ id: UInt64) -> UpstreamConnection? { active[id] }

    private var hasFreeConnection: Bool {
        !idle.isEmpty || openCount < loop.configuration.upstreamConnectionsMaximum
    }

    func begin(_ exchange: UpstreamExchange) {
        guard hasFreeConnection else {
            let maximum = loop.configuration.upstreamWaitingMaximum
            guard waiting.count < maximum else { return exchange.receive(.failed(.tooMany(maximum))) }
            return waiting.append(exchange)
        }
        if let connection = idle.popLast() {
            active[exchange.id] = connection
            connection.begin(exchange)
        } else {
            openCount += 1
            let connection = UpstreamConnection(self)
            active[exchange.id] = connection
            connection.open(for: exchange)
        }
    }

    /// Ends an exchange that is in flight or waits; nothing more is received.
    func cancel(_ id: UInt64) {
        if let connection = active[id] {
            connection.cancel()
        } else {
            waiting.removeAll { $0.id == id }
        }
    }

    /// The exchange is over, and the connection can carry another one.
    func finished(_ connection: UpstreamConnection, _ id: UInt64) {
        active[id] = nil
        guard waiting.isEmpty, idle.count >= Self.idleMaximum else {
            idle.append(connection)
            return startWaiting()
        }
        connection.cancel()
    }

    /// The connection is closed.
    func closed(_ connection: UpstreamConnection, _ id: UInt64?) {
        if let id { active[id] = nil } else { idle.removeAll { $0 === connection } }
        openCount -= 1
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
        waiting = []
        for connection in idle + active.values { connection.cancel() }
    }

    func checkDeadlines(_ now: MonotonicTime) {
        for connection in Array(active.values) { connection.checkDeadline(now) }
        guard let first = waiting.first, now >= first.deadline else { return }
        let end = waiting.firstIndex { now < $0.deadline } ?? waiting.endIndex
        let expired = Array(waiting[..<end])
        waiting.removeFirst(end)
        let reason =
            "All \(loop.configuration.upstreamConnectionsMaximum) connections to the server were in use for "
            + "\(Self.waitTimeout.components.seconds) s while the request waited for one."
        for exchange in expired { exchange.receive(.failed(.timedOut(reason))) }
    }
}
