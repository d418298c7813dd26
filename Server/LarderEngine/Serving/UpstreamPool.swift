import LarderTime

/// The connections of one loop to another server. Confined to its loop.
///
/// A connection carries one exchange at a time and is used again if both sides allow it.
final class UpstreamPool {
    static let connectionsMaximum = 128
    private static let idleMaximum = 32
    private static let waitingMaximum = 1_024

    unowned let loop: EventLoop
    let address: UpstreamAddress
    /// The index of the address that was reached last.
    var preferredPlace = 0
    private var idle: [UpstreamConnection] = []
    private var active: [UInt64: UpstreamConnection] = [:]
    private var openCount = 0
    private var waiting: [UpstreamExchange] = []

    init(_ address: UpstreamAddress, _ loop: EventLoop) {
        self.address = address
        self.loop = loop
    }

    func connection(_ id: UInt64) -> UpstreamConnection? { active[id] }

    func begin(_ exchange: UpstreamExchange) {
        if let connection = idle.popLast() {
            active[exchange.id] = connection
            connection.begin(exchange)
        } else if openCount < Self.connectionsMaximum {
            openCount += 1
            let connection = UpstreamConnection(self)
            active[exchange.id] = connection
            connection.open(for: exchange)
        } else if waiting.count < Self.waitingMaximum {
            waiting.append(exchange)
        } else {
            exchange.receive(.failed(.tooMany(Self.waitingMaximum)))
        }
    }

    /// The exchange is over, and the connection can carry another one.
    func finished(_ connection: UpstreamConnection, _ id: UInt64) {
        active[id] = nil
        if !waiting.isEmpty {
            let next = waiting.removeFirst()
            active[next.id] = connection
            connection.begin(next)
        } else if idle.count < Self.idleMaximum {
            idle.append(connection)
        } else {
            connection.cancel()
        }
    }

    /// The connection is closed.
    func closed(_ connection: UpstreamConnection, _ id: UInt64?) {
        if let id { active[id] = nil } else { idle.removeAll { $0 === connection } }
        openCount -= 1
        if !waiting.isEmpty { begin(waiting.removeFirst()) }
    }

    /// Closes everything, because the loop ends.
    func end() {
        waiting = []
        for connection in idle + active.values { connection.cancel() }
    }

    func checkDeadlines(_ now: MonotonicTime) {
        for connection in Array(active.values) { connection.checkDeadline(now) }
    }
}
