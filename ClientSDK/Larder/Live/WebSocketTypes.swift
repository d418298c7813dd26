public import LarderHTTP

/// A message of a WebSocket.
public enum WebSocketMessage: Sendable, Hashable {
    /// Text, which is UTF-8 on the wire.
    case text(String)
    /// Bytes.
    case binary([UInt8])

    var byteCount: Int {
        switch self {
        case .text(let text): text.utf8.count
        case .binary(let bytes): bytes.count
        }
    }
}

/// How a WebSocket was closed (RFC 6455 §7).
public struct WebSocketClose: Sendable, Hashable {
    /// The code; nil where the close frame had none.
    public var code: UInt16?
    /// The reason, at most 123 bytes in UTF-8.
    public var reason: String

    /// A way to close. 1000 says that all is done.
    public init(code: UInt16? = 1000, reason: String = "") {
        self.code = code
        self.reason = reason
    }
}

/// What a WebSocket is asked for.
public struct WebSocketRequest: Sendable, Hashable {
    /// Where it is: `ws://…` or `wss://…`.
    public var url: String
    /// What to say besides what the handshake needs; fields of the handshake itself are left out.
    public var fields: Fields
    /// The sub-protocols that are spoken here, the preferred one first.
    public var subprotocols: [String]

    /// A request.
    public init(url: String, fields: Fields = Fields(), subprotocols: [String] = []) {
        self.url = url
        self.fields = fields
        self.subprotocols = subprotocols
    }
}

/// Limits and habits of WebSockets.
public struct WebSocketConfiguration: Sendable, Hashable {
    /// How long it may take to connect and to agree, in all.
    public var openTimeout: Duration = .seconds(15)
    /// How long nothing may come before a ping asks for a sign of life; nil never asks.
    public var pingInterval: Duration? = .seconds(25)
    /// How long after that ping nothing may come before the connection counts as dead.
    public var pongTimeout: Duration = .seconds(10)
    /// How long the peer may take to answer a close, and the reader to take what came before the peer broke the protocol.
    public var closeTimeout: Duration = .seconds(5)
    /// How large a message that comes may be, in bytes; a larger one is answered with 1009.
    public var messageBytesMaximum = 1 << 20
    /// How much may wait for its reader before nothing more is read from the connection, in bytes; one message more fits always.
    public var inboxBytesMaximum = 1 << 20
    /// How much may wait for the network before senders wait, in bytes; one message fits always.
    public var outputBytesMaximum = 1 << 20

    /// The defaults.
    public init() {}
}

/// Why a WebSocket could not be opened, or is over.
public struct WebSocketError: Error, Sendable, CustomStringConvertible {
    /// What kind of failure it was.
    public struct Code: RawRepresentable, Sendable, Hashable {
        /// The code's name.
        public let rawValue: String

        /// A code by its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The URL is none that a WebSocket can have, or a field or sub-protocol cannot be sent.
        public static let invalidRequest = Code(rawValue: "invalidRequest")
        /// No connection could be made.
        public static let unreachable = Code(rawValue: "unreachable")
        /// The server answered with another status than 101: see `status`, `fields` and `body`.
        public static let refused = Code(rawValue: "refused")
        /// The server agreed to something that was not offered, or did not prove that it speaks WebSocket.
        public static let handshake = Code(rawValue: "handshake")
        /// It took too long to open.
        public static let timedOut = Code(rawValue: "timedOut")
        /// The connection ended without a close.
        public static let interrupted = Code(rawValue: "interrupted")
        /// The peer gave no sign of life although it was asked for one.
        public static let silent = Code(rawValue: "silent")
        /// The peer broke the protocol, or sent more than may be.
        public static let protocolError = Code(rawValue: "protocolError")
        /// The WebSocket is closed, or being closed: nothing can be sent.
        public static let closed = Code(rawValue: "closed")
        /// The waiting task was cancelled, or nobody held the WebSocket any more.
        public static let cancelled = Code(rawValue: "cancelled")
    }

    /// What kind of failure it was.
    public let code: Code
    /// What to know about it.
    public let description: String
    /// What the server answered, where it refused.
    public let status: Status?
    /// The fields of the refusal.
    public let fields: Fields
    /// The content of the refusal, such as a problem (RFC 9457); its first 64 KiB.
    public let body: [UInt8]

    /// A failure of a kind.
    public init(
        _ code: Code,
        _ description: String,
        status: Status? = nil,
        fields: Fields = Fields(),
        body: [UInt8] = []
    ) {
        self.code = code
        self.description = description
        self.status = status
        self.fields = fields
        self.body = body
    }
}
