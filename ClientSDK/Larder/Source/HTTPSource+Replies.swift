import Foundation
import LarderHTTP
public import LarderResources
import LarderTime
public import LarderTransport

extension HTTPSource {
    /// A decoded reply.
    public struct Reply<Value: Sendable>: Sendable {
        /// The decoded content.
        public let value: Value
        public let status: Status
        /// The header fields.
        public let fields: Fields
        /// The URL of the reply, after redirects.
        public let url: String

        /// The absolute URL of the first link with a relation type, such as `next`, in the `Link` fields (RFC 8288); nil if there is
        /// none.
        public func link(_ relation: String) -> String? {
            guard let base = HTTPURL(url) else { return nil }
            return WebLink.parse(fields.values(of: .link)).first { $0.relates(as: relation) }
                .flatMap { base.resolve($0.target)?.text }
        }
    }

    /// The media type of a reply in lower case, without parameters; empty if there is none.
    static func mediaType(_ response: TransportResponse) -> String {
        let text = response.fields[.contentType] ?? ""
        return MediaType(parsing: text)?.essence ?? text.lowercased()
    }

    /// Whether the reply is HTML, which a proxy or a captive portal sends in place of the server.
    static func isForeign(_ response: TransportResponse) -> Bool { mediaType(response).contains("html") }

    /// Whether the content type is one of the API.
    func isAccepted(_ response: TransportResponse) -> Bool {
        configuration.acceptsContentType(Self.mediaType(response))
    }

    /// The error of a reply that is not the API's.
    func foreign(_ response: TransportResponse, _ url: String, _ retryAfter: Duration? = nil) -> LarderError {
        LarderError(
            .unexpectedReply,
            "\(url) returned the status \(response.status.code) with the content type '\(Self.mediaType(response))', which is not one of "
                + "the API's; the reply may come from a proxy or a captive portal. Sign in to the network if it requires that, or change "
                + "acceptsContentType.",
            status: Int(response.status.code),
            retryAfter: retryAfter
        )
    }

    /// Decodes a success.
    ///
    /// - Throws: the error of a reply that is not a success, or whose content is not the API's.
    func decode<Value: Decodable & Sendable>(
        _ type: Value.Type,
        _ response: TransportResponse,
        _ request: TransportRequest
    ) throws(LarderError) -> Reply<Value> {
        guard (200..<300).contains(response.status.code) else { throw error(for: response, request.url) }
        let status = Int(response.status.code)
        guard !response.body.isEmpty || Self.isForeign(response) else {
            throw LarderError(
                .unexpectedReply,
                "\(request.url) returned \(status) without content, but \(type) was expected. Use the variant of send without a "
                    + "type.",
                status: status
            ).marked(isFromAPI: true)
        }
        guard isAccepted(response) else { throw foreign(response, request.url) }
        do {
            let value = try configuration.decoder.decode(type, from: Data(response.body))
            return Reply(
                value: value,
                status: response.status,
                fields: response.fields,
                url: response.redirectedTo ?? request.url
            )
        } catch {
            let coding = response.fields.combined(.contentEncoding).flatMap { $0.lowercased() == "identity" ? nil : $0 }
            let reason =
                coding.map {
                    "it has the content coding '\($0)', which was not requested. Turn compression off for requests without "
                        + "Accept-Encoding."
                } ?? "\(error)"
            throw LarderError(
                .unexpectedReply,
                "The reply of \(request.url) cannot be decoded as \(type): \(reason)",
                cause: error,
                status: status
            ).marked(isFromAPI: coding == nil)
        }
    }

    /// The error of a reply: the members of a problem document (RFC 9457), and the time in `Retry-After`.
    ///
    /// For use with `send(_: TransportRequest)`, which returns every reply.
    public func error(for response: TransportResponse, _ url: String) -> LarderError {
        let known = defaultError(for: response, url)
        var mapped = configuration.mapError(known, response)
        mapped.cause = mapped.cause ?? known.cause
        (mapped.status, mapped.retryAfter, mapped.isFromAPI) = (known.status, known.retryAfter, known.isFromAPI)
        return mapped
    }

    /// The members of a problem document that the client uses (RFC 9457).
    private struct ProblemDocument: Decodable {
        var type: String?
        var title: String?
        var detail: String?
    }

    private func defaultError(for response: TransportResponse, _ url: String) -> LarderError {
        let code = Int(response.status.code)
        let isAccepted = isAccepted(response)
        let retryAfter = RetryAfterField.wait(
            response.fields,
            now: wallClock.now,
            or: configuration.retryAfter(response)
        )
        // A gateway may return it too. A reply without content type counts as the API's.
        let isUnknownPath = (code == 404 || code == 410) && !isAccepted && response.fields.contains(.contentType)
        if isUnknownPath || (code < 500 && Self.isForeign(response)) {
            return foreign(response, url, retryAfter)
        }
        // The session is missing or has expired: the server has not carried out the request.
        let kind: ErrorCode<LarderError> =
            code == 401 && authorizer != nil && isOwn(response) ? .unauthorized : code == 412 ? .conflict : .rejected
        var problem: ProblemDocument?
        var cause: (any Error)?
        if Self.mediaType(response).contains("json") {
            // Not by the decoder of the API: the members have their own names.
            do { problem = try JSONDecoder().decode(ProblemDocument.self, from: Data(response.body)) } catch {
                cause = error
            }
        }
        guard let problem else {
            return LarderError(
                kind == .conflict ? .rejected : kind,
                "\(url) returned the status \(code).",
                cause: cause,
                status: code,
                retryAfter: retryAfter
            ).marked(isFromAPI: isAccepted)
        }
        let text = [problem.title, problem.detail].compactMap { $0 }.joined(separator: ": ")
        return LarderError(
            kind,
            text.isEmpty ? "\(url) returned the status \(code)." : text,
            status: code,
            problem: problem.type,
            retryAfter: retryAfter
        ).marked(isFromAPI: true)
    }
}
