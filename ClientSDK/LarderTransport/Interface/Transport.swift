import LarderEvents
public import LarderHTTP
public import LarderTLS
public import LarderTime

/// A request to send.
public struct TransportRequest: Sendable, Hashable {
    public var method: Method
    /// The absolute URL. Spaces and control characters in the text that a request is made from are percent-encoded.
    public var url: String
    /// The header fields, in order.
    public var fields: Fields
    /// The content; empty for none.
    public var body: [UInt8]
    /// Content that is sent in pieces, from a file, a sequence or a form; nil: `body` is the content. Not both.
    ///
    /// A transport of your own must send it or throw `.invalidRequest`.
    public var upload: RequestBody?
    /// The timeout for the response's head, and then for each further piece of content; nil: the transport's default.
    public var timeout: Duration?
    /// The maximum size of the response's content in bytes, decoded and received. A larger one fails with `.tooLarge`.
    public var bodyLimit: Int
    /// Whether redirects are followed, at most 16 (RFC 9110 §15.4). Otherwise a redirect is returned as the response.
    ///
    /// Followed redirects keep the method, except that `POST` becomes `GET` after 302, and every method but `HEAD`
    /// after 303. To another origin only fields of negotiation, conditions, ranges and caching are sent. A redirect from https to http, and one that would
    /// carry content to another origin, is returned as the response: send a request to its `Location` if you trust that origin.
    public var followsRedirects: Bool

    /// Whether a person waits for the response: it is sent although its host has asked to wait (`HostGate`).
    ///
    /// A request that is made within a refresh, a sign-in or a sign-out is one from the start, also if it only renews the tokens.
    public var isUserInitiated: Bool

    /// Whether the server holds the reply back on purpose, as in a long poll or an event stream: its duration says nothing about the
    /// network. Set by `LiveSync.longPoll` and `EventStreamClient`.
    public var isLongPoll: Bool

    /// A request.
    public init(
        method: Method = .get,
        url: String,
        fields: Fields = Fields(),
        body: [UInt8] = [],
        timeout: Duration? = nil,
        bodyLimit: Int = 64 << 20,
        followsRedirects: Bool = true
    ) {
        self.method = method
        self.url = HTTPURL.encoded(url)
        self.fields = fields
        self.body = body
        self.timeout = timeout
        self.bodyLimit = bodyLimit
        self.followsRedirects = followsRedirects
        isUserInitiated = RequestReason.isUserWaiting
        isLongPoll = RequestReason.current?.isLongPoll ?? false
    }

    package var hasContent: Bool { !body.isEmpty || upload != nil }

    /// The fields, with the content type of `upload` if they state none.
    package var fieldsWithContentType: Fields {
        guard let type = upload?.contentType, !fields.contains(.contentType) else { return fields }
        var all = fields
        all.set(.contentType, type)
        return all
    }
}

/// A complete response.
public struct TransportResponse: Sendable, Hashable {
    public var status: Status
    /// The header fields, in order.
    public var fields: Fields
    /// The whole content.
    public var body: [UInt8]
    /// The URL of the response if redirects were followed; nil if it is the request's URL.
    public var redirectedTo: String?

    /// Creates a response.
    public init(status: Status, fields: Fields = Fields(), body: [UInt8] = [], redirectedTo: String? = nil) {
        self.status = status
        self.fields = fields
        self.body = body
        self.redirectedTo = redirectedTo
    }
}

/// A failure to get a response.
public struct TransportError: Error, Sendable, CustomStringConvertible {
    /// The kind of failure.
    public let code: ErrorCode<TransportError>
    /// The reason.
    public let description: String

    /// How long the host has asked not to be sent requests; nil if it has not.
    public let retryAfter: Duration?

    /// What was wrong with the TLS connection or a certificate; nil if that was not the reason.
    public let cause: TLSError?

    /// Creates an error.
    public init(
        _ code: ErrorCode<TransportError>,
        _ description: String,
        retryAfter: Duration? = nil,
        cause: TLSError? = nil
    ) {
        self.code = code
        self.description = description
        self.retryAfter = retryAfter
        self.cause = cause
    }

    /// The error of a request of which nothing was sent, because there was no TLS connection for it.
    init(unsent cause: TLSError) {
        let isLocal = cause.code == .unavailable || cause.code == .invalidSettings
        self.init(cause.isAboutCertificate || isLocal ? .untrusted : .unreachable, cause.description, cause: cause)
    }
}

extension ErrorCode where Scope == TransportError {
    /// The server was not reached: the request had no effect. A transport that sends a request more than once throws it only if no attempt
    /// has reached the server, and `interrupted` otherwise.
    public static var unreachable: Self { Self(rawValue: "unreachable") }
    /// The connection broke after the first byte of the request was sent: its effect is unknown.
    public static var interrupted: Self { Self(rawValue: "interrupted") }
    /// The response did not arrive in time: the effect of the request is unknown. If nothing was sent in time, it is `unreachable`.
    public static var timedOut: Self { Self(rawValue: "timedOut") }
    /// The calling task was cancelled.
    public static var cancelled: Self { Self(rawValue: "cancelled") }
    /// The content is larger than the request's `bodyLimit`, or expands more than the transport allows. It was discarded.
    public static var tooLarge: Self { Self(rawValue: "tooLarge") }
    /// The response has a content coding that was not offered. The request may have had its effect.
    public static var unsupportedCoding: Self { Self(rawValue: "unsupportedCoding") }
    /// The server's certificate is not trusted, or cannot be checked: see `cause`. The request was not sent.
    public static var untrusted: Self { Self(rawValue: "untrusted") }
    /// The proxy rejects the request, such as with 407 for missing credentials, or its setting cannot be used. The server got nothing.
    public static var proxyRejected: Self { Self(rawValue: "proxyRejected") }
    /// The request cannot be encoded. It was not sent.
    public static var invalidRequest: Self { Self(rawValue: "invalidRequest") }
    /// The request would have to be sent again, and its body can be read only once. What was sent before has failed, was redirected or
    /// was rejected. Send a new request with a new body.
    public static var bodyNotReplayable: Self { Self(rawValue: "bodyNotReplayable") }
    /// The body could not be read, or does not have its stated length. The server has received at most a part of the request.
    public static var bodyFailed: Self { Self(rawValue: "bodyFailed") }
    /// The URL is not a valid absolute http or https URL. The request was not sent.
    public static var invalidURL: Self { Self(rawValue: "invalidURL") }
}

/// Sends HTTP requests. A transport does not cache and does not retry.
///
/// A transport of your own implements `open`; without streaming it returns `TransportStream(response)`.
///
/// A redirect is followed by the outermost transport that knows how, which sends each request with `followsRedirects`
/// off to the transports below. So an `HTTPCache` sees every response under its own URL. A transport of your own returns
/// redirects as responses, or at least never follows one if `followsRedirects` is off.
///
/// Safe from any task. Cancelling the calling task closes the connection of the exchange.
public protocol Transport: Sendable {
    /// Sends a request and returns when the response's head has arrived. The content follows in pieces.
    func open(_ request: TransportRequest) async throws(TransportError) -> TransportStream

    /// Sends a request and returns the complete response. A truncated response is an error.
    func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse
}

extension Transport {
    /// Sends a request and reads its content to the end.
    public func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        try await open(request).whole()
    }
}
