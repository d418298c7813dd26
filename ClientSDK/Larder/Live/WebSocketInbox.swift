package import LarderTime

/// Messages that have come and readers that wait, in order; and then the end.
///
/// A value under its owner's lock. Readers are told under it: a message goes to the first that has not just been cancelled, or
/// it stays, and none overtakes another.
package struct WebSocketInbox {
    package typealias Received = Result<WebSocketMessage?, WebSocketError>

    private var messages: [WebSocketMessage] = []
    private var first = 0
    private var readers: [(id: UInt64, reader: Pending<Received>)] = []
    /// What waits, in bytes. Messages without content count too: there may be as many of them as the peer likes.
    package private(set) var byteCount = 0
    package private(set) var end: Received?

    package init() {}

    private static func cost(_ message: WebSocketMessage) -> Int { message.byteCount + 32 }

    /// Takes a message, for the first reader that waits or the next that comes.
    package mutating func put(_ message: WebSocketMessage) {
        guard end == nil else { return }
        while !readers.isEmpty {
            if readers.removeFirst().reader.finish(.success(message)) { return }
        }
        messages.append(message)
        byteCount += Self.cost(message)
    }

    /// The next message or the end; nil where neither has come.
    package mutating func take() -> Received? {
        guard first < messages.count else { return end }
        let message = messages[first]
        first += 1
        byteCount -= Self.cost(message)
        if first == messages.count {
            messages.removeAll(keepingCapacity: true)
            first = 0
        } else if first > 64, first * 2 > messages.count {
            messages.removeFirst(first)
            first = 0
        }
        return .success(message)
    }

    /// Has a reader wait.
    package mutating func wait(_ id: UInt64, _ reader: Pending<Received>) { readers.append((id, reader)) }

    /// Forgets a reader that waits no more.
    package mutating func forget(_ id: UInt64) { readers.removeAll { $0.id == id } }

    /// Ends; what has come can still be read. Only the first end counts.
    package mutating func finish(_ end: Received) {
        guard self.end == nil else { return }
        self.end = end
        for waiting in readers { waiting.reader.finish(end) }
        readers = []
    }

    /// Throws away what nobody will read.
    package mutating func dropMessages() {
        messages = []
        first = 0
        byteCount = 0
    }
}
