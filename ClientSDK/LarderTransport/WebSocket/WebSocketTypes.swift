public import LarderHTTP
public import LarderTime

extension WebSocketClient {
    /// A message of a WebSocket.
    public enum Message: Sendable, Hashable {
        /// Text, which is UTF-8 on the wire.
        case text(String)
        /// Binary data.
        case binary([UInt8])

        var byteCount: Int {
            switch self {
            case .text(let text): text.utf8.count
            case .binary(let bytes): bytes.count
            }
        }
    }
}

extension WebSocketClient {
    /// How a WebSocket was closed (RFC 6455 §7).
    public struct Close: Sendable, Hashable {
        /// The close code; nil if the frame has none.
        public var code: UInt16?
        /// The reason, at most 123 bytes in UTF-8.
        public var reason: String

        /// Creates a close frame. Code 1000 is a normal closure.
        public init(code: UInt16? = 1000, reason: String = "") {
            self.code = code
            self.reason = reason
        }
    }
}

extension WebSocketClient {
    package struct Request: Sendable, Hashable {
        /// An absolute `ws` or `wss` URL.
        package var url: String
        /// Additional fields. Fields of the handshake are ignored.
        package var fields: Fields
        /// The offered subprotocols, in order of preference.
        package var subprotocols: [String]

        package init(url: String, fields: Fields = Fields(), subprotocols: [String] = []) {
            self.url = url
            self.fields = fields
            self.subprotocols = subprotocols
        }
    }
}

extension WebSocketClient {
    /// Limits and timeouts.
    public struct Configuration: Sendable, Hashable {
        /// The timeout for connecting and the handshake together, and for waiting while as many WebSockets of the host are opening as may
        /// (`SocketTransport.Configuration.connectionsPerHost`).
        public var openTimeout: Duration = .seconds(15)
        /// The silence after which a ping is sent; nil: no pings.
        public var pingInterval: Duration? = .seconds(25)
        /// The silence after a ping at which the connection fails with `.silent`.
        public var pongTimeout: Duration = .seconds(10)
        /// The timeout for the peer's close frame, and for the reader after a protocol error of the peer.
        public var closeTimeout: Duration = .seconds(5)
        /// The maximum size of a received message, in bytes. A larger one closes with code 1009.
        public var messageBytesMaximum = 1 << 20
        /// The size of unread messages at which reading pauses, in bytes. One more message always fits.
        public var inboxBytesMaximum = 1 << 20
        /// The size of unsent output at which senders wait, in bytes. One message always fits.
        public var outputBytesMaximum = 1 << 20

        /// The defaults.
        public init() {}
    }
}

/// A failure to open a WebSocket, or the reason of its end.
public struct WebSocketError: Error, Sendable, CustomStringConvertible {
    /// The kind of failure.
    public let code: ErrorCode<WebSocketError>
    /// What happened and what to do.
    public let description: String
    /// The status of the response, if the code is `.rejected`.
    public let status: Status?
    /// The fields of that response.
    public let fields: Fields
    /// The content of that response, such as a problem document (RFC 9457), at most 64 KiB.
    public let body: [UInt8]
    /// How long no request may be sent to the host (`HostGate`); nil if that is not known.
    public let retryAfter: Duration?

    /// Creates an error.
    public init(
        _ code: ErrorCode<WebSocketError>,
        _ description: String,
        status: Status? = nil,
        fields: Fields = Fields(),
        body: [UInt8] = [],
        retryAfter: Duration? = nil
    ) {
        self.code = code
        self.description = description
        self.status = status
        self.fields = fields
        self.body = body
        self.retryAfter = retryAfter
    }

    /// The error of a WebSocket whose handshake has failed.
    init(unopened cause: TransportError) {
        let codes: [ErrorCode<WebSocketError>] = [.cancelled, .interrupted, .proxyRejected, .untrusted]
        self.init(codes.first { $0.rawValue == cause.code.rawValue } ?? .unreachable, cause.description)
    }
}

extension ErrorCode where Scope == WebSocketError {
    /// The URL, a field or a subprotocol is invalid.
    public static var invalidRequest: Self { Self(rawValue: "invalidRequest") }
    /// The server was not reached.
    public static var unreachable: Self { Self(rawValue: "unreachable") }
    /// The proxy rejects the connection, such as with 407 for missing credentials, or its setting cannot be used.
    public static var proxyRejected: Self { Self(rawValue: "proxyRejected") }
    /// The server's certificate is not trusted, or cannot be checked.
    public static var untrusted: Self { Self(rawValue: "untrusted") }
    /// The response is not 101: see `status`, `fields` and `body`.
    public static var rejected: Self { Self(rawValue: "rejected") }
    /// The response is 101 and does not accept what was asked for, or selects something that was not offered.
    public static var handshake: Self { Self(rawValue: "handshake") }
    /// `openTimeout` was exceeded.
    public static var timedOut: Self { Self(rawValue: "timedOut") }
    /// The connection ended without a close frame, or the answer to the handshake is no HTTP.
    public static var interrupted: Self { Self(rawValue: "interrupted") }
    /// The peer did not react to a ping.
    public static var silent: Self { Self(rawValue: "silent") }
    /// The peer violated the protocol or a limit.
    public static var protocolError: Self { Self(rawValue: "protocolError") }
    /// The WebSocket is closed or closing: nothing can be sent.
    public static var closed: Self { Self(rawValue: "closed") }
    /// The waiting task was cancelled, or the WebSocket was released.
    public static var cancelled: Self { Self(rawValue: "cancelled") }
}
