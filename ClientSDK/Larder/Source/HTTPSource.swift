import Foundation
public import LarderHTTP
import LarderTime

/// Puts into requests what proves who sends them, and renews it when the server does not take it any more.
public protocol RequestAuthorizer: Sendable {
    /// Puts the proof into a request.
    func authorize(_ request: inout TransportRequest) async throws(LarderError)

    /// The server has answered 401 to a request: makes a new proof, unless that has happened since the request was made.
    ///
    /// However many requests met the 401, there is one renewal at a time. Whatever it throws, the request counts as not carried out:
    /// an operation of the outbox waits, and is never rejected for it.
    ///
    /// - Returns: whether the request should be sent again, once.
    func renew(after request: TransportRequest) async throws(LarderError) -> Bool
}

/// A JSON API over HTTP as a source of resources: conditional requests, problem documents, renewed authorisation.
///
/// It caches nothing and retries nothing; put a `RetryingTransport` below it if it should. What a reply says of caching reaches the
/// resource: a `no-store` value stays in memory, and `Age` counts. Safe from any task.
public struct HTTPSource: Sendable {
    /// A reply that has its value.
    public struct Reply<Value: Sendable>: Sendable {
        /// The value.
        public let value: Value
        /// The status.
        public let status: Status
        /// The header fields.
        public let fields: Fields
    }

    /// Where the API is, without a slash at its end: `http://127.0.0.1:8080`.
    public let base: String
    /// What sends its requests.
    public let transport: any Transport
    /// What proves who sends them.
    public var authorizer: (any RequestAuthorizer)?
    /// Whether the network may be asked at present. Where it may not, requests fail at once as unreachable: nothing was sent.
    public var mayUseNetwork: @Sendable () -> Bool

    /// How many bytes of a reply are taken at most. What is larger is no reply of this API's, and fails as `.unexpectedReply`.
    public var replyBytesMaximum = 16 << 20

    /// An API at a place.
    public init(
        _ base: String,
        transport: any Transport,
        authorizer: (any RequestAuthorizer)? = nil,
        mayUseNetwork: @escaping @Sendable () -> Bool = { true }
    ) {
        self.base = base.hasSuffix("/") ? String(base.dropLast()) : base
        self.transport = transport
        self.authorizer = authorizer
        self.mayUseNetwork = mayUseNetwork
    }

    /// The URL of a path and a query. Values are escaped, the path is taken as it is: see `escape`.
    public func url(_ path: String, _ query: [(String, String?)] = []) -> String {
        let items = query.compactMap { name, value in value.map { "\(Self.escape(name))=\(Self.escape($0))" } }
        return base + path + (items.isEmpty ? "" : "?" + items.joined(separator: "&"))
    }

    /// A text as one segment of a path, or one part of a query (RFC 3986 §2.1).
    public static func escape(_ text: String) -> String {
        text.addingPercentEncoding(withAllowedCharacters: unreserved) ?? ""
    }

    private static let unreserved = CharacterSet(
        charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
    )

    /// Gets a value for a resource: with the validator where there is one, and "not modified" where the server says so.
    ///
    /// A 404 or 410 with JSON (`application/problem+json` included) says that there is no such thing. One of any other type, or of none,
    /// may come from a proxy or a gateway: it is an error, and what is stored stays.
    ///
    /// - Throws: `.offline`, `.timedOut`, `.unauthorized` where the request could not be authorized, `.refused` with status and
    ///   problem type, `.unexpectedReply` where the reply is not JSON of that type, as when a captive portal has answered, or is
    ///   a part (206) although none was asked for.
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
                "\(request.url) was answered with the status \(response.status.code) and no JSON: perhaps not by the server.",
                status: Int(response.status.code)
            )
        case 206:
            throw LarderError(
                .unexpectedReply,
                "\(request.url) was answered with a part of its content (206) although the whole was asked for.",
                status: 206
            )
        default:
            let reply = try decode(type, response, request)
            fetched = .value(reply.value, validator: response.fields[.etag], completeness: completeness)
        }
        let terms = CacheControl(response: response.fields)
        // With must-understand it is for those alone who do not know the status (RFC 9111 §5.2.2.3).
        fetched.mayStore = !terms.noStore || terms.mustUnderstand
        fetched.age = .seconds(response.fields[.age].flatMap { DeltaSeconds.parse($0) } ?? 0)
        return fetched
    }

    /// Sends a request that changes something, with a JSON body, and decodes the reply.
    ///
    /// - Throws: as `fetch`. Where the server accepts the request (2xx) and its reply cannot be decoded, `.unexpectedReply` with that
    ///   status: the change is made. The outbox asks again under the same key, in case the reply was damaged on its way, and ends the
    ///   operation with that error after the fifth attempt. For an endpoint that answers without content, as with 204, use the
    ///   variant that decodes nothing.
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

    /// Sends a request that changes something, with a JSON body. It is done when the server answers with 2xx: content of the reply is
    /// not read.
    ///
    /// - Throws: as `fetch`.
    public func send(
        _ method: LarderHTTP.Method,
        _ path: String,
        _ body: (some Encodable & Sendable)?,
        _ fields: Fields = Fields()
    ) async throws(LarderError) {
        let response = try await send(request(method, path, body, fields))
        // A sign-in page of the network may have any status.
        guard (200..<300).contains(response.status.code), !Self.isForeign(response) else {
            throw refusal(response, url(path))
        }
    }

    /// Sends a request without a body. It is done when the server answers with 2xx: content of the reply is not read.
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

    /// Sends a request as it is, authorised, and once more where a new authorisation may help.
    ///
    /// - Throws: `.offline` and the like where there is no reply, `.unauthorized` where the authorizer fails.
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

    /// What a failure of the authorizer means for a request: it was not sent, or was turned away with a 401.
    private static func unauthorized(_ error: LarderError, _ url: String) -> LarderError {
        let text = "\(url) could not be authorized: \(error.description)"
        switch error.code {
        case .cancelled, .closed, .unauthorized: return error
        // The network is to blame, and nothing was sent: it is tried again when the network is back.
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
                TransportError(.unreachable, "The network may not be used at present; \(request.url) was not asked.")
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
                "\(request.url) was answered with \(status) and no content where \(type) was expected. Send what is answered so "
                    + "without a type to decode.",
                status: status,
                retryAfter: nil,
                isFromAPI: true
            )
        }
        guard media.contains("json") else {
            throw LarderError(
                .unexpectedReply,
                "\(request.url) was answered with \"\(media)\" where JSON was expected: perhaps not by the server. Sign in to the "
                    + "network if it asks for that.",
                status: status
            )
        }
        do {
            let value = try JSONDecoder().decode(type, from: Data(response.body))
            return Reply(value: value, status: response.status, fields: response.fields)
        } catch {
            throw LarderError(
                .unexpectedReply,
                "The reply from \(request.url) is not a \(type): \(error)",
                cause: error,
                status: status,
                retryAfter: nil,
                isFromAPI: true
            )
        }
    }

    /// What the parts of a problem document say that a client acts by (RFC 9457).
    private struct ProblemDocument: Decodable {
        var type: String?
        var title: String?
        var detail: String?
    }

    /// Whether somebody on the way has answered in the server's place: with a page for people where JSON was asked for.
    private static func isForeign(_ response: TransportResponse) -> Bool {
        (response.fields[.contentType] ?? "").lowercased().contains("html")
    }

    /// Whether it is JSON, as the API's own replies are, its problems included.
    private static func isJSON(_ response: TransportResponse) -> Bool {
        (response.fields[.contentType] ?? "").lowercased().contains("json")
    }

    private func refusal(_ response: TransportResponse, _ url: String) -> LarderError {
        let code = Int(response.status.code)
        let isJSON = Self.isJSON(response)
        // A gateway that knows no such path answers so too. Without any type and content it is taken for the API's.
        let isUnknownPath = (code == 404 || code == 410) && !isJSON && response.fields.contains(.contentType)
        if isUnknownPath || (code < 500 && Self.isForeign(response)) {
            let type = response.fields[.contentType] ?? ""
            return LarderError(
                .unexpectedReply,
                "\(url) was answered with the status \(code) and \"\(type)\" where JSON was expected: perhaps not by the server.",
                status: code
            )
        }
        // Nobody is signed in, or not any more: the server has not carried it out.
        let kind: LarderError.Code =
            code == 401 && authorizer != nil ? .unauthorized : code == 412 ? .conflict : .refused
        guard isJSON, let problem = try? JSONDecoder().decode(ProblemDocument.self, from: Data(response.body)) else {
            return LarderError(
                kind == .conflict ? .refused : kind,
                "\(url) was answered with \(code).",
                status: code,
                retryAfter: response.fields,
                isFromAPI: isJSON
            )
        }
        let text = [problem.title, problem.detail].compactMap { $0 }.joined(separator: ": ")
        return LarderError(
            kind,
            text.isEmpty ? "\(url) was answered with \(code)." : text,
            status: code,
            problem: problem.type,
            retryAfter: response.fields,
            isFromAPI: true
        )
    }
}
