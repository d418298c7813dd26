public import LarderHTTP
import Synchronization

/// A request as a transport sends it.
public struct TransportRequest: Sendable, Hashable {
    /// The method.
    public var method: Method
    /// The absolute URL.
    public var url: String
    /// The header fields, in order.
    public var fields: Fields
    /// The content, if there is any.
    public var body: [UInt8]
    /// How long the reply's head may take, and then each further piece of its content; nil: what the transport holds right.
    public var timeout: Duration?
    /// How many bytes of content are taken at most; beyond them the exchange fails with `.tooLarge`.
    public var bodyLimit: Int

    /// A request.
    public init(
        method: Method = .get,
        url: String,
        fields: Fields = Fields(),
        body: [UInt8] = [],
        timeout: Duration? = nil,
        bodyLimit: Int = 64 << 20
    ) {
        self.method = method
        self.url = url
        self.fields = fields
        self.body = body
        self.timeout = timeout
        self.bodyLimit = bodyLimit
    }
}

/// A reply as it came.
public struct TransportResponse: Sendable, Hashable {
    /// The status.
    public var status: Status
    /// The header fields; repeats may have been joined by the system's own client.
    public var fields: Fields
    /// The whole content.
    public var body: [UInt8]
    /// The URL that answered, where the transport has followed a redirect to it; nil where the request's own URL did.
    public var redirectedTo: String?

    /// A reply.
    public init(status: Status, fields: Fields = Fields(), body: [UInt8] = [], redirectedTo: String? = nil) {
        self.status = status
        self.fields = fields
        self.body = body
        self.redirectedTo = redirectedTo
    }
}

/// Why there is no reply.
public struct TransportError: Error, Sendable, CustomStringConvertible {
    /// What kind of failure it was. A struct, because systems fail in more ways than a list can name.
    public struct Code: RawRepresentable, Sendable, Hashable {
        /// The code's name.
        public let rawValue: String

        /// A code by its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The server could not be reached, so nothing has happened there.
        public static let unreachable = Code(rawValue: "unreachable")
        /// The connection broke after the request had begun to leave: what happened at the server is not known.
        public static let interrupted = Code(rawValue: "interrupted")
        /// The reply did not come in time: what happened at the server is not known.
        public static let timedOut = Code(rawValue: "timedOut")
        /// The caller does not wait any more.
        public static let cancelled = Code(rawValue: "cancelled")
        /// The content is larger than the request allows. What came was thrown away.
        public static let tooLarge = Code(rawValue: "tooLarge")
        /// No connection that can be trusted could be made: a certificate is wrong. Nothing was sent.
        public static let untrusted = Code(rawValue: "untrusted")
        /// The request is none that can be sent. Nothing was sent.
        public static let invalidRequest = Code(rawValue: "invalidRequest")
        /// The URL is none.
        public static let invalidURL = Code(rawValue: "invalidURL")
    }

    /// What kind of failure it was.
    public let code: Code
    /// What the system said.
    public let description: String

    /// A failure of a kind.
    public init(_ code: Code, _ description: String) {
        self.code = code
        self.description = description
    }
}

/// Sends requests. It caches nothing and retries nothing.
///
/// Safe from any task. When the task that calls is cancelled, the exchange is given up and its connection with it.
public protocol Transport: Sendable {
    /// Sends a request and gives back the whole reply. A reply that broke off is an error and never half a body.
    func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse

    /// Sends a request and gives back the reply as soon as its head is there; the content follows in pieces.
    func open(_ request: TransportRequest) async throws(TransportError) -> TransportStream
}

extension Transport {
    /// Sends the request and gives the whole content as one piece, for transports that cannot do better.
    public func open(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
        let response = try await send(request)
        let rest = Mutex<[UInt8]?>(response.body.isEmpty ? nil : response.body)
        return TransportStream(
            status: response.status,
            fields: response.fields,
            body: TransportBody { rest.withLock { $0.take() } },
            redirectedTo: response.redirectedTo
        )
    }
}
