public import LarderHTTP

/// An open WebSocket. When nobody holds it any more, the connection is cut. Safe from any task; messages go to one reader.
public protocol WebSocketConnection: AnyObject, Sendable {
    /// The sub-protocol that was agreed on; nil for none.
    var subprotocol: String? { get }

    /// The fields of the server's agreement.
    var fields: Fields { get }

    /// How it was closed, once a close has come from the peer or been answered by it.
    var closing: WebSocketClose? { get }

    /// The next message; nil once it is closed in order, whoever began, and whatever the code: see `closing`.
    ///
    /// Messages that came before the end are given first. Where the peer breaks the protocol, replies to them can still be sent until
    /// the reader asks for the next message, for at most `WebSocketConfiguration.closeTimeout`. A cancelled wait takes no message with it, and leaves the WebSocket
    /// open.
    /// - Throws: where it ended in another way, the same each time.
    func receive() async throws(WebSocketError) -> WebSocketMessage?

    /// Sends a message: returns when it is on its way, waits while too much is. Messages leave in the order of the calls.
    ///
    /// - Throws: `.cancelled`, and then nothing of it was sent; `.closed` and what ended the connection.
    func send(_ message: WebSocketMessage) async throws(WebSocketError)

    /// Asks for a sign of life and waits for it.
    func ping() async throws(WebSocketError)

    /// Closes in order: says so, and waits until the peer has, or the time for it is over. Messages that come in between are
    /// dropped; senders that wait get `.closed`. Harmless when it is closed already; a cancelled wait cuts the connection.
    ///
    /// - Returns: what the peer said; nil where it said nothing in time.
    @discardableResult func close(_ close: WebSocketClose) async -> WebSocketClose?

    /// Cuts the connection without a word.
    func cut()
}

extension WebSocketConnection {
    /// The messages as they come, as `receive` gives them.
    public var messages: WebSocketMessages { WebSocketMessages(connection: self) }

    /// Sends text.
    public func send(_ text: String) async throws(WebSocketError) { try await send(.text(text)) }

    /// Closes with 1000.
    @discardableResult public func close() async -> WebSocketClose? { await close(WebSocketClose()) }
}

/// The messages of a WebSocket as a sequence, for one reader. It holds the connection.
public struct WebSocketMessages: AsyncSequence, Sendable {
    /// Gives the messages.
    public struct Iterator: AsyncIteratorProtocol {
        let connection: any WebSocketConnection

        /// The next message; nil once the WebSocket is closed in order.
        public mutating func next() async throws(WebSocketError) -> WebSocketMessage? {
            try await connection.receive()
        }

        /// The next message; nil once the WebSocket is closed in order.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(WebSocketError) -> WebSocketMessage? {
            try await connection.receive()
        }
    }

    let connection: any WebSocketConnection

    /// Begins to read, or goes on.
    public func makeAsyncIterator() -> Iterator { Iterator(connection: connection) }
}

/// Opens WebSockets. Safe from any task.
public protocol WebSocketConnector: Sendable {
    /// Connects and agrees.
    ///
    /// - Throws: `.refused` with what the server said, and everything else that can be in the way.
    func connect(
        _ request: WebSocketRequest,
        _ configuration: WebSocketConfiguration
    ) async throws(WebSocketError) -> any WebSocketConnection
}
