/// Decides when the content of an event stream or a WebSocket is sent: it passes on with `Exchange.send` what it takes, and may end the exchange
/// instead. Called on the connection's loop.
package protocol ChannelPacer: AnyObject, Sendable {
    /// The head is written, and content may be sent.
    func opened()

    /// Takes content, without the framing of the connection.
    func take(_ content: [UInt8])

    /// The number of bytes that were taken and not sent.
    var waitingBytes: Int { get }

    /// No more content comes. `end` is called on the loop when all of it was sent, unless the pacer ends the exchange.
    func finish(_ end: @escaping @Sendable () -> Void)
}
