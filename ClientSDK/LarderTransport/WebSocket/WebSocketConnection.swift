public import LarderHTTP

/// An open WebSocket. Releasing it ends the connection. Safe from any task; one task reads messages.
public protocol WebSocketConnection: AnyObject, Sendable {
    /// The negotiated subprotocol; nil: none.
    var subprotocol: String? { get }

    /// The fields of the 101 response.
    var fields: Fields { get }

    /// The peer's close frame; nil until it was received.
    var closing: WebSocketClient.Close? { get }

    /// Returns the next message; nil after a regular close by either side, with any code (see `closing`).
    ///
    /// Messages before the end are returned first. After a protocol error of the peer, replies can be sent until the
    /// next call, for at most `closeTimeout`. A cancelled call loses no message and leaves the WebSocket open.
    /// - Throws: the reason of any other end; the same in each call.
    func receive() async throws(WebSocketError) -> WebSocketClient.Message?

    /// Sends a message. Returns when it is in the output buffer, and waits while that is full. Messages are sent in
    /// call order.
    ///
    /// - Throws: `.cancelled` if nothing was sent; `.closed` or the reason of the end.
    func send(_ message: WebSocketClient.Message) async throws(WebSocketError)

    /// Sends a ping and waits for the pong.
    func ping() async throws(WebSocketError)

    /// Sends a close frame and waits for the peer's, for at most `closeTimeout`. Messages received meanwhile are
    /// dropped; waiting senders get `.closed`. Has no effect on a closed WebSocket. Cancelling ends the connection.
    ///
    /// - Returns: the peer's close frame; nil if none was received in time.
    @discardableResult func close(_ close: WebSocketClient.Close) async -> WebSocketClient.Close?

    /// Ends the connection without a close frame.
    func cut()
}

extension WebSocketConnection {
    public func send(_ text: String) async throws(WebSocketError) { try await send(.text(text)) }

    /// Closes with code 1000.
    @discardableResult public func close() async -> WebSocketClient.Close? { await close(WebSocketClient.Close()) }
}

/// Opens WebSockets. Safe from any task.
package protocol WebSocketConnector: Sendable {
    /// Connects and performs the handshake.
    ///
    /// - Throws: `.rejected` with status and content if the response is not 101, or another code.
    func connect(
        _ request: WebSocketClient.Request,
        _ configuration: WebSocketClient.Configuration
    ) async throws(WebSocketError) -> any WebSocketConnection
}
