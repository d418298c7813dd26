import Foundation
public import LarderHTTP
public import LarderResources
import LarderStorage
import LarderTime
public import LarderTransport

/// A JSON API over HTTP as a source of resources: conditional requests, problem documents, renewed credentials.
///
/// It neither caches nor retries; use a `RetryingTransport` to retry. The cache directives of a reply apply to the resource: a `no-store`
/// value stays in memory, and `Age` counts. Safe from any task.
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

    /// A decoded reply.
    public struct Reply<Value: Sendable>: Sendable {
        /// The decoded content.
        public let value: Value
        public let status: Status
        /// The header fields.
        public let fields: Fields
    }

    /// The base URL without a trailing slash: `http://127.0.0.1:8080`.
    public let base: String
    /// The transport of all requests.
    public let transport: any Transport
    /// Adds credentials; nil: requests are anonymous.
    public var authorizer: (any Authorizer)?
    /// Whether the network may be used. If not, requests fail at once as unreachable, and nothing is sent.
    public var mayUseNetwork: @Sendable () -> Bool

    /// The maximum size of a reply in bytes. A larger one fails with `.unexpectedReply`.
    public var replyBytesMaximum = 16 << 20
    /// Used for a `Retry-After` date if the reply has no `Date` field.
    public var wallClock: any WallClock = SystemWallClock()

    /// A source for the API at the URL `base`.
    public init(
        _ base: String,
        transport: any Transport,
        authorizer: (any Authorizer)? = nil,
        mayUseNetwork: @escaping @Sendable () -> Bool = { true }
    ) {
        self.base = base.hasSuffix("/") ? String(base.dropLast()) : base
        self.transport = transport
        self.authorizer = authorizer
        self.mayUseNetwork = mayUseNetwork
    }

    /// The URL of a path and a query. Query names and values are escaped, the path is not: see `escape`.
    public func url(_ path: String, _ query: [(String, String?)] = []) -> String {
        let items = query.compactMap { name, value in value.map { "\(Self.escape(name))=\(Self.escape($0))" } }
        return base + path + (items.isEmpty ? "" : "?" + items.joined(separator: "&"))
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
    /// A 404 or 410 with JSON (`application/problem+json` included) means that the resource is gone. With any other content type it may
    /// come from a proxy or a gateway: it is an error, and the stored value is kept.
    ///
    /// - Throws: `.offline`; `.timedOut`; `.unauthorized` if the request could not be authorized; `.refused` with status and problem
    ///   type; `.unexpectedReply` if the reply cannot be decoded, as after a captive portal has answered, or is partial (206).
    public func fetch<Value: Decodable & Sendable>(
        _ path: String,
        _ query: [(String, String?)] = [],
        context: FetchContext,
        as type: Value.Type = Value.self,
        completeness: Completeness = .complete
    ) async throws(LarderError) -> Fetched<Value> {
        var request = TransportRequest(
            url: url(path, query),
            fields: [.accept: "application/json"],
            bodyLimit: replyBytesMaximum
        )
        if let validator = context.validator { request.fields.set(.ifNoneMatch, validator) }
        if context.mustRevalidate { request.fields.set(.cacheControl, "no-cache") }
        let response = try await send(request)
        var fetched: Fetched<Value>
        switch response.status.code {
        case 304: fetched = .notModified()
        case 404 where Self.isJSON(response), 410 where Self.isJSON(response): return .gone
        case 404, 410:
            throw LarderError(
                .unexpectedReply,
                "\(request.url) returned the status \(response.status.code) without JSON; the reply may come from a proxy.",
                status: Int(response.status.code)
            )
        case 206:
            throw LarderError(
                .unexpectedReply,
                "\(request.url) returned partial content (206) to a request without Range.",
                status: 206
            )
        default:
            let reply = try decode(type, response, request)
            fetched = .value(reply.value, validator: response.fields[.etag], completeness: completeness)
        }
        let terms = CacheControl(response: response.fields)
        // must-understand overrides no-store for a known status (RFC 9111 §5.2.2.3).
        fetched.mayStore = !terms.noStore || terms.mustUnderstand
        fetched.age = .seconds(response.fields[.age].flatMap { DeltaSeconds.parse($0) } ?? 0)
        return fetched
    }

    /// Sends a request with a JSON body, and decodes the reply.
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

    /// Sends a request with a JSON body. Succeeds with any 2xx status; the content of the reply is ignored.
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
            throw refusal(response, url(path))
        }
    }

    /// Sends a request without a body. Succeeds with any 2xx status; the content of the reply is ignored.
    ///
    /// - Throws: as `fetch`.
    public func send(_ method: LarderHTTP.Method, _ path: String, _ fields: Fields = Fields()) async throws(LarderError)
    {
        try await send(method, path, String?.none, fields)
    }

    private func request(
        _ method: LarderHTTP.Method,
        _ path: String,
        _ body: (some Encodable & Sendable)?,
        _ fields: Fields
    ) throws(LarderError) -> TransportRequest {
        var request = TransportRequest(
            method: method,
            url: url(path),
            fields: [.accept: "application/json"],
            bodyLimit: replyBytesMaximum
        )
        for field in fields { request.fields.add(field.name, field.value) }
        guard let body else { return request }
        do {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            request.body = Array(try encoder.encode(body))
        } catch {
            throw LarderError(.encoding, "The body for \(path) could not be encoded: \(error)", cause: error)
        }
        if request.fields[.contentType] == nil { request.fields.set(.contentType, "application/json") }
        return request
    }

    /// Authorizes and sends a request, and once more after a 401 if the credentials were renewed.
    ///
    /// - Throws: `.offline` or another transport error if there is no reply; `.unauthorized` if the authorizer fails.
    public func send(_ request: TransportRequest) async throws(LarderError) -> TransportResponse {
        let sent = try await authorized(request)
        let response = try await attempt(sent)
        guard response.status.code == 401, let authorizer else { return response }
        let isRenewed: Bool
        do throws(LarderError) { isRenewed = try await authorizer.renew(after: sent) } catch {
            throw Self.unauthorized(error, request.url)
        }
        guard isRenewed else { return response }
        return try await attempt(try await authorized(request))
    }

    private func authorized(_ request: TransportRequest) async throws(LarderError) -> TransportRequest {
        var request = request
        do throws(LarderError) { try await authorizer?.authorize(&request) } catch {
            throw Self.unauthorized(error, request.url)
        }
        return request
    }

    /// Maps a failure of the authorizer: the request was not sent, or was rejected with a 401.
    private static func unauthorized(_ error: LarderError, _ url: String) -> LarderError {
        let text = "\(url) could not be authorized: \(error.description)"
        switch error.code {
        case .cancelled, .closed, .unauthorized: return error
        // Nothing was sent. Retried when the network is back.
        case .offline, .timedOut: return LarderError(TransportError(.unreachable, text))
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
        do { return try await transport.send(request) } catch { throw LarderError(error) }
    }

    private func decode<Value: Decodable & Sendable>(
        _ type: Value.Type,
        _ response: TransportResponse,
        _ request: TransportRequest
    ) throws(LarderError) -> Reply<Value> {
        guard (200..<300).contains(response.status.code) else { throw refusal(response, request.url) }
        let media = (response.fields[.contentType] ?? "").lowercased()
        let status = Int(response.status.code)
        guard !response.body.isEmpty || Self.isForeign(response) else {
            throw LarderError(
                .unexpectedReply,
                "\(request.url) returned \(status) without content, but \(type) was expected. Use the variant of send without a "
                    + "type.",
                status: status,
                retryAfter: nil,
                isFromAPI: true
            )
        }
        guard media.contains("json") else {
            throw LarderError(
                .unexpectedReply,
                "\(request.url) returned the content type '\(media)' instead of JSON; the reply may come from a proxy or a captive "
                    + "portal. Sign in to the network if it requires that.",
                status: status
            )
        }
        do {
            let value = try JSONDecoder().decode(type, from: Data(response.body))
            return Reply(value: value, status: response.status, fields: response.fields)
        } catch {
            throw LarderError(
                .unexpectedReply,
                "The reply of \(request.url) cannot be decoded as \(type): \(error)",
                cause: error,
                status: status,
                retryAfter: nil,
                isFromAPI: true
            )
        }
    }

    /// The members of a problem document that the client uses (RFC 9457).
    private struct ProblemDocument: Decodable {
        var type: String?
        var title: String?
        var detail: String?
    }

    /// Whether the reply is HTML, which a proxy or a captive portal sends in place of the server.
    private static func isForeign(_ response: TransportResponse) -> Bool {
        (response.fields[.contentType] ?? "").lowercased().contains("html")
    }

    /// Whether the content type is JSON, problem documents included.
    private static func isJSON(_ response: TransportResponse) -> Bool {
        (response.fields[.contentType] ?? "").lowercased().contains("json")
    }

    private func refusal(_ response: TransportResponse, _ url: String) -> LarderError {
        let code = Int(response.status.code)
        let isJSON = Self.isJSON(response)
        // A gateway may return it too. A reply without content type counts as the API's.
        let isUnknownPath = (code == 404 || code == 410) && !isJSON && response.fields.contains(.contentType)
        if isUnknownPath || (code < 500 && Self.isForeign(response)) {
            let type = response.fields[.contentType] ?? ""
            return LarderError(
                .unexpectedReply,
                "\(url) returned the status \(code) with the content type '\(type)' instead of JSON; the reply may come from a proxy.",
                status: code
            )
        }
        // The session is missing or has expired: the server has not carried out the request.
        let kind: LarderError.Code =
            code == 401 && authorizer != nil ? .unauthorized : code == 412 ? .conflict : .refused
        var problem: ProblemDocument?
        var cause: (any Error)?
        if isJSON {
            do { problem = try JSONDecoder().decode(ProblemDocument.self, from: Data(response.body)) } catch {
                cause = error
            }
        }
        guard let problem else {
            return LarderError(
                kind == .conflict ? .refused : kind,
                "\(url) returned the status \(code).",
                cause: cause,
                status: code,
                retryAfter: RetryAfterField.wait(response.fields, now: wallClock.now),
                isFromAPI: isJSON
            )
        }
        let text = [problem.title, problem.detail].compactMap { $0 }.joined(separator: ": ")
        return LarderError(
            kind,
            text.isEmpty ? "\(url) returned the status \(code)." : text,
            status: code,
            problem: problem.type,
            retryAfter: RetryAfterField.wait(response.fields, now: wallClock.now),
            isFromAPI: true
        )
    }
}
