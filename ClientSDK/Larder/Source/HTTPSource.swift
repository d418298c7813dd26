import Foundation
import LarderEvents
public import LarderHTTP
public import LarderResources
import LarderStorage
import LarderTime
public import LarderTransport

/// An HTTP API as a source of resources: conditional requests, cache directives, problem documents, renewed credentials.
///
/// It neither caches nor retries: reads are repeated by the cache, and writes by its outbox. Safe from any task.
///
/// ```swift
/// let source = HTTPSource("http://127.0.0.1:8080", transport: SocketTransport())
/// let article = Resource<Article>.entity("7") { try await source.fetch("/articles/7", context: $0) }
/// try await source.send(.delete, "/articles/7/star")
/// ```
public struct HTTPSource: Sendable {
    /// Adds credentials to requests, and renews them after a 401.
    public protocol Authorizer: Sendable {
        /// Adds the credentials to a request.
        func authorize(_ request: inout TransportRequest) async throws(LarderError)

        /// Renews the credentials after a 401, unless they were renewed after the request was authorized.
        ///
        /// Concurrent calls share one renewal. After any error the request counts as not carried out: an outbox operation waits and is not
        /// rejected.
        ///
        /// - Returns: whether the request should be sent again, once.
        func renew(after request: TransportRequest) async throws(LarderError) -> Bool
    }

    /// The base URL without a trailing slash: `http://127.0.0.1:8080`.
    public let base: String
    /// The transport of all requests.
    public let transport: any Transport
    /// Adds credentials to requests to the origin of `base` that have no `Authorization` field; nil: requests are anonymous.
    public var authorizer: (any Authorizer)?
    /// Whether the network may be used. If not, requests fail at once as unreachable, and nothing is sent.
    public var mayUseNetwork: @Sendable () -> Bool

    /// How the API writes its requests and replies.
    public var configuration: Configuration
    /// Used for a `Retry-After` date if the reply has no `Date` field.
    public var wallClock: any WallClock = SystemWallClock()

    /// A source for the API at the URL `base`.
    public init(
        _ base: String,
        transport: any Transport,
        authorizer: (any Authorizer)? = nil,
        configuration: Configuration = Configuration(),
        mayUseNetwork: @escaping @Sendable () -> Bool = { true }
    ) {
        self.base = base.hasSuffix("/") ? String(base.dropLast()) : base
        self.transport = transport
        self.authorizer = authorizer
        self.configuration = configuration
        self.mayUseNetwork = mayUseNetwork
    }

    /// The URL of a path and a query. Query names and values are escaped, the path is not: see `escape`.
    public func url(_ path: String, _ query: [(String, String?)] = []) -> String {
        let items = query.compactMap { name, value in value.map { "\(Self.escape(name))=\(Self.escape($0))" } }
        return base + path + (items.isEmpty ? "" : "?" + items.joined(separator: "&"))
    }

    /// Whether a URL has the origin of the API; `ws` counts as `http`. No other origin gets credentials.
    func isOwn(_ url: String) -> Bool {
        let url = url.prefix(2).lowercased() == "ws" ? "http" + url.dropFirst(2) : url
        guard let origin = HTTPURL(url)?.origin else { return false }
        return origin == HTTPURL(base)?.origin
    }

    /// Whether a reply is of the origin of the API, and not of another one to which it redirects.
    func isOwn(_ response: TransportResponse) -> Bool { response.redirectedTo.map { isOwn($0) } ?? true }

    /// Whether a reply says that there is nothing.
    func isGone(_ response: TransportResponse) -> Bool {
        isOwn(response) && configuration.isGone(response, isAccepted(response))
    }

    /// Whether credentials are added to a request.
    func takesCredentials(_ request: TransportRequest) -> Bool {
        request.fields[.authorization] == nil && isOwn(request.url)
    }

    /// Percent-encodes a path segment or a query component (RFC 3986 §2.1).
    public static func escape(_ text: String) -> String {
        text.addingPercentEncoding(withAllowedCharacters: unreserved) ?? ""
    }

    private static let unreserved = CharacterSet(
        charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
    )

    /// Fetches the value of a resource, conditionally if the context has a validator.
    ///
    /// Validators are the entity tag of the last reply, or its modification date. The lifetime, `no-cache`, `must-revalidate`, `Age` and
    /// `no-store` of the reply apply to the value (RFC 9111; see `Fetched`).
    ///
    /// A 404 or 410 of the API (`Configuration.isGone`) means that the resource is gone. With any other content type it may come from
    /// a proxy or a gateway: it is an error, and the stored value is kept.
    ///
    /// - Throws: `.offline`; `.untrusted`; `.timedOut`; `.unauthorized` if the request could not be authorized; `.rejected` with status and problem
    ///   type; `.unexpectedReply` if the reply cannot be decoded, as after a captive portal has answered, or is partial (206).
    public func fetch<Value: Decodable & Sendable>(
        _ path: String,
        _ query: [(String, String?)] = [],
        context: FetchContext,
        as type: Value.Type = Value.self,
        completeness: Completeness = .complete
    ) async throws(LarderError) -> Fetched<Value> {
        var fetched = try await fetch(url: url(path, query), context: context, as: type) { $0.value }
        fetched.completeness = completeness
        return fetched
    }

    /// Fetches the value of a resource that is made of the content and the fields of a reply: a count in a field, an envelope.
    ///
    /// - Parameters:
    ///   - path: a path of the API; it is not escaped.
    ///   - query: names and values, which are escaped; nil values are left out.
    ///   - context: the validator, and whether the origin must answer.
    ///   - type: the type of the content.
    ///   - reading: makes the value. It is not called if the stored value is confirmed or gone.
    /// - Throws: as `fetch`; an error of `reading` as `.unexpectedReply`, unless it is a `LarderError`.
    public func fetch<Content: Decodable & Sendable, Value: Sendable>(
        _ path: String,
        _ query: [(String, String?)] = [],
        context: FetchContext,
        as type: Content.Type = Content.self,
        reading: (Reply<Content>) throws -> Value
    ) async throws(LarderError) -> Fetched<Value> {
        let target = url(path, query)
        return try await fetch(url: target, context: context, as: type) { (reply) throws(LarderError) in
            do { return try reading(reply) } catch let error as LarderError { throw error } catch {
                throw LarderError(
                    .unexpectedReply,
                    "The reply of \(target) cannot be used: \(error)",
                    cause: error,
                    status: Int(reply.status.code)
                ).marked(isFromAPI: true)
            }
        }
    }

    func fetch<Content: Decodable & Sendable, Value: Sendable>(
        url: String,
        context: FetchContext,
        as type: Content.Type,
        reading: (Reply<Content>) throws(LarderError) -> Value
    ) async throws(LarderError) -> Fetched<Value> {
        var request = TransportRequest(
            url: url,
            fields: configuration.fields,
            bodyLimit: configuration.replyBytesMaximum
        )
        let plain = request
        Self.addConditions(context, to: &request, now: wallClock.now)
        var response = try await send(request)
        if response.status == .notModified, response.redirectedTo != nil {
            // It confirms what the redirect leads to, which may be something else by now (RFC 9110 §15.4).
            request = plain
            response = try await send(request)
        }
        if isGone(response) { return .gone }
        var fetched: Fetched<Value>
        switch response.status.code {
        case 304: fetched = .notModified()
        case 404 where !isAccepted(response), 410 where !isAccepted(response): throw foreign(response, url)
        case 206:
            throw LarderError(
                .unexpectedReply,
                "\(url) returned partial content (206) to a request without Range.",
                status: 206
            )
        default:
            let reply = try decode(type, response, request)
            let validator = response.redirectedTo == nil ? validator(of: response.fields) : nil
            fetched = .value(try reading(reply), validator: validator)
        }
        apply(response, to: &fetched)
        return fetched
    }

    /// Sends a request with an encoded body, and decodes the reply.
    ///
    /// For an endpoint that replies without content, as with 204, use the variant without a type.
    ///
    /// - Throws: as `fetch`; `.unexpectedReply` with a 2xx status if the server has accepted the request but its reply cannot be decoded.
    ///   The change has then been made. The outbox retries with the same idempotency key, in case the reply was damaged in transit,
    ///   and fails the operation after the fifth attempt.
    public func send<Value: Decodable & Sendable>(
        _ method: LarderHTTP.Method,
        _ path: String,
        _ body: (some Encodable & Sendable)?,
        _ fields: Fields = Fields(),
        as type: Value.Type = Value.self
    ) async throws(LarderError) -> Reply<Value> {
        let request = try request(method, path, body, fields)
        return try decode(type, try await send(request), request)
    }

    /// Sends a request with an encoded body. Succeeds with any 2xx status; the content of the reply is ignored.
    ///
    /// - Throws: as `fetch`.
    public func send(
        _ method: LarderHTTP.Method,
        _ path: String,
        _ body: (some Encodable & Sendable)?,
        _ fields: Fields = Fields()
    ) async throws(LarderError) {
        let response = try await send(request(method, path, body, fields))
        // A captive portal may reply with any status.
        guard (200..<300).contains(response.status.code), !Self.isForeign(response) else {
            throw error(for: response, url(path))
        }
    }

    /// Sends a request without a body. Succeeds with any 2xx status; the content of the reply is ignored.
    ///
    /// - Throws: as `fetch`.
    public func send(_ method: LarderHTTP.Method, _ path: String, _ fields: Fields = Fields()) async throws(LarderError)
    {
        try await send(method, path, String?.none, fields)
    }

    func request(_ method: LarderHTTP.Method, _ path: String, _ fields: Fields) -> TransportRequest {
        var request = TransportRequest(
            method: method,
            url: url(path),
            fields: configuration.fields,
            bodyLimit: configuration.replyBytesMaximum
        )
        for field in fields { request.fields.remove(field.name) }
        for field in fields { request.fields.add(field.name, field.value) }
        return request
    }

    private func request(
        _ method: LarderHTTP.Method,
        _ path: String,
        _ body: (some Encodable & Sendable)?,
        _ fields: Fields
    ) throws(LarderError) -> TransportRequest {
        var request = request(method, path, fields)
        guard let body else { return request }
        do {
            request.body = Array(try configuration.encoder.encode(body))
        } catch {
            throw LarderError(.encoding, "The body for \(path) could not be encoded: \(error)", cause: error)
        }
        if request.fields[.contentType] == nil { request.fields.set(.contentType, configuration.contentType) }
        return request
    }

    /// Authorizes and sends a request, and once more after a 401 if the credentials were renewed. A request to another origin, and one with an
    /// `Authorization` field of its own, is sent as it is.
    ///
    /// - Throws: `.offline` or another transport error if there is no reply; `.unauthorized` if the authorizer fails, or if the request
    ///   cannot be repeated because its body can be read only once; `cause` is a `TransportError` with `.bodyNotReplayable` then.
    public func send(_ request: TransportRequest) async throws(LarderError) -> TransportResponse {
        guard let authorizer, takesCredentials(request) else { return try await attempt(request) }
        return try await LostCopies.sending(request, error: { LarderError($0) }) { () async throws(LarderError) in
            try await authorizer.sending(
                request,
                isRejected: { $0.status == .unauthorized && isOwn($0) },
                failed: { (error, _) throws(LarderError) in throw Self.unauthorized(error, request.url) },
                attempt
            )
        }
    }

    /// Maps a failure of the authorizer: the request was not sent, or was rejected with a 401.
    private static func unauthorized(_ error: LarderError, _ url: String) -> LarderError {
        let text = "\(url) could not be authorized: \(error.description)"
        switch error.code {
        case .cancelled, .closed, .unauthorized: return error
        // Not sent, or rejected with a 401: nothing was carried out. Retried when the network is back.
        case .offline, .timedOut, .untrusted:
            let code: ErrorCode<TransportError> = error.code == .untrusted ? .untrusted : .unreachable
            let cause = (error.cause as? TransportError)?.cause
            return LarderError(TransportError(code, text, retryAfter: error.retryAfter, cause: cause))
        default:
            return LarderError(
                .unauthorized,
                text,
                cause: error,
                status: error.status,
                problem: error.problem,
                retryAfter: error.retryAfter
            )
        }
    }

    private func attempt(_ request: TransportRequest) async throws(LarderError) -> TransportResponse {
        guard mayUseNetwork() else {
            throw LarderError(
                TransportError(.unreachable, "The network may not be used; \(request.url) was not requested.")
            )
        }
        do {
            var response = try await transport.send(request)
            configuration.correctFields(&response.fields, request.url)
            return response
        } catch { throw LarderError(error) }
    }
}
