import Foundation
public import LarderHTTP
import LarderTime

/// Puts into requests what proves who sends them, and renews it when the server does not take it any more.
public protocol RequestAuthorizer: Sendable {
    /// Puts the proof into a request.
    func authorize(_ request: inout TransportRequest) async throws(LarderError)

    /// The server has answered 401 to a request: makes a new proof, unless that has happened since the request was made.
    ///
    /// However many requests met the 401, there is one renewal at a time.
    ///
    /// - Returns: whether the request should be sent again, once.
    func renew(after request: TransportRequest) async throws(LarderError) -> Bool
}

/// A JSON API over HTTP as a source of resources: conditional requests, problem documents, renewed authorisation.
///
/// It caches nothing and retries nothing; put a `RetryingTransport` below it if it should. Safe from any task.
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

    /// Gets a value for a resource: with the validator where there is one, and «not modified» where the server says so.
    ///
    /// - Throws: `.offline`, `.timedOut`, `.refused` with status and problem type, `.unexpectedReply` where it is not JSON of that
    ///   type, as when a captive portal has answered.
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
        // Whoever asks by name means the server, and none of the caches on the way.
        if context.isForced { request.fields.set(.cacheControl, "no-cache") }
        let response = try await send(request)
        switch response.status.code {
        case 304: return .notModified()
        // A portal or a proxy that knows no such page says nothing about what the server has.
        case 404 where !Self.isForeign(response), 410 where !Self.isForeign(response): return .gone
        default: break
        }
        let reply = try decode(type, response, request)
        return .value(reply.value, validator: response.fields[.etag], completeness: completeness)
    }

    /// Sends a request that changes something, with a JSON body.
    ///
    /// - Throws: as `fetch`.
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

    /// Sends a request whose reply has no content.
    ///
    /// - Throws: as `fetch`.
    public func send(_ method: LarderHTTP.Method, _ path: String, _ fields: Fields = Fields()) async throws(LarderError)
    {
        let response = try await send(request(method, path, String?.none, fields))
        guard (200..<300).contains(response.status.code) else { throw Self.refusal(response, url(path)) }
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
    /// - Throws: `.offline` and the like where there is no reply.
    public func send(_ request: TransportRequest) async throws(LarderError) -> TransportResponse {
        var sent = request
        try await authorizer?.authorize(&sent)
        let response = try await attempt(sent)
        guard response.status.code == 401, let authorizer, try await authorizer.renew(after: sent) else {
            return response
        }
        sent = request
        try await authorizer.authorize(&sent)
        return try await attempt(sent)
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
        guard (200..<300).contains(response.status.code) else { throw Self.refusal(response, request.url) }
        let media = (response.fields[.contentType] ?? "").lowercased()
        guard media.contains("json") else {
            throw LarderError(
                .unexpectedReply,
                "\(request.url) was answered with «\(media)» where JSON was expected: perhaps not by the server. Sign in to the "
                    + "network if it asks for that.",
                status: Int(response.status.code)
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
                status: Int(response.status.code)
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

    private static func refusal(_ response: TransportResponse, _ url: String) -> LarderError {
        let code = Int(response.status.code)
        if code < 500, isForeign(response) {
            return LarderError(
                .unexpectedReply,
                "\(url) was answered with a page for people and the status \(code): perhaps not by the server.",
                status: code
            )
        }
        let media = (response.fields[.contentType] ?? "").lowercased()
        guard media.contains("json"),
            let problem = try? JSONDecoder().decode(ProblemDocument.self, from: Data(response.body))
        else {
            return LarderError(.refused, "\(url) was answered with \(code).", status: code, retryAfter: response.fields)
        }
        let text = [problem.title, problem.detail].compactMap { $0 }.joined(separator: ": ")
        return LarderError(
            code == 412 ? .conflict : .refused,
            text.isEmpty ? "\(url) was answered with \(code)." : text,
            status: code,
            problem: problem.type,
            retryAfter: response.fields
        )
    }
}
