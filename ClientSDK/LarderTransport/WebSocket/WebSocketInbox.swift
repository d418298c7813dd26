import LarderEvents
package import LarderTime

/// Received messages, waiting readers, and the end. The connection pauses reading by `byteCount`.
///
/// Guarded by its owner's lock, because the decision to pause reading depends on the connection's state. A message
/// goes to the first reader that is not cancelled, or is queued.
package struct WebSocketInbox {
    package typealias Received = Result<WebSocketClient.Message?, WebSocketError>

    private var messages = FIFO<WebSocketClient.Message>()
    private var readers: [(id: UInt64, reader: Pending<Received>)] = []
    /// The size of queued messages, in bytes. Each message counts 32 more, which bounds the number of empty ones.
    package private(set) var byteCount = 0
    package private(set) var end: Received?

    package init() {}

    private static func cost(_ message: WebSocketClient.Message) -> Int { message.byteCount + 32 }

    /// Delivers a message to the first waiting reader, or queues it.
    package mutating func put(_ message: WebSocketClient.Message) {
        guard end == nil else { return }
        while !readers.isEmpty {
            if readers.removeFirst().reader.finish(.success(message)) { return }
        }
        messages.append(message)
        byteCount += Self.cost(message)
    }

    /// Returns the next message or the end; nil if there is neither.
    package mutating func take() -> Received? {
        guard let message = messages.popFirst() else { return end }
        byteCount -= Self.cost(message)
        return .success(message)
    }

    /// Adds a waiting reader.
    package mutating func wait(_ id: UInt64, _ reader: Pending<Received>) { readers.append((id, reader)) }

    /// Removes a waiting reader.
    package mutating func forget(_ id: UInt64) { readers.removeAll { $0.id == id } }

    /// Sets the end. Queued messages can still be read. Only the first end has an effect.
    package mutating func finish(_ end: Received) {
        guard self.end == nil else { return }
        self.end = end
        for waiting in readers { waiting.reader.finish(end) }
        readers = []
    }

    /// Drops the queued messages.
    package mutating func dropMessages() {
        messages.removeAll()
        byteCount = 0
    }
}
