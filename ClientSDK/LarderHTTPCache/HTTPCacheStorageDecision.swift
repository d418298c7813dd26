import LarderHTTP
package import LarderTime
package import LarderTransport

/// Whether a response is stored, by RFC 9111 §3: a pure function of request, response and time.
package struct HTTPCacheStorageDecision: Sendable, Hashable {
    /// The entry to store; nil if the response is not stored.
    package let entry: HTTPCacheEntry?
    /// The reason, with figures and the RFC section.
    package let explanation: String

    private init(_ entry: HTTPCacheEntry?, _ explanation: String) {
        self.entry = entry
        self.explanation = explanation
    }

    /// Decides.
    ///
    /// - Parameters:
    ///   - request: the `GET` that was sent.
    ///   - response: the complete response.
    ///   - requestedAt: when the request was sent.
    ///   - receivedAt: when the response was received.
    ///   - policy: the cache's policy.
    package static func decide(
        request: TransportRequest,
        response: TransportResponse,
        requestedAt: WallTime,
        receivedAt: WallTime,
        policy: HTTPCache.Policy = HTTPCache.Policy()
    ) -> HTTPCacheStorageDecision {
        if let rejection = rejection(request, response.status, response.fields) { return .init(nil, rejection) }
        if let rejection = rejection(ofBody: response, policy) { return .init(nil, rejection) }
        guard let names = policy.varying(response.fields) else {
            let text =
                "Not stored: Vary is *, invalid, or names what this cache does not see, so no request could match"
            return .init(nil, text + " (RFC 9111 §4.1).")
        }
        let entry = HTTPCacheEntry(
            bodyID: HTTPCacheEntry.bodyID(for: response.body),
            bodyCount: response.body.count,
            status: response.status,
            fields: storable(response.fields, receivedAt: receivedAt),
            selectors: selectors(names, in: request.fields, policy),
            requestedAt: requestedAt,
            receivedAt: receivedAt
        )
        let terms = ResponseTerms(entry, policy: policy)
        let lifetime = terms.lifetime.components.seconds
        let isOfUse =
            lifetime > 0 || entry.hasValidator || terms.staleWhileRevalidate > .zero
            || (terms.staleIfError ?? .zero) > .zero
        // A 200 is of use while offline.
        guard isOfUse || response.status == .ok else {
            return .init(nil, "Not stored: it is never fresh and has no validator (RFC 9111 §3).")
        }
        return .init(entry, "Stored: fresh for \(lifetime) s by \(terms.source.rawValue) (RFC 9111 §3, §4.2.1).")
    }

    /// Returns why the response to a `GET` with this head is not stored; nil if its head allows it.
    static func rejection(_ request: TransportRequest, _ status: Status, _ fields: Fields) -> String? {
        guard request.url.utf8.count <= urlBytesMaximum else {
            return "Not stored: a URL of \(request.url.utf8.count) bytes, and \(urlBytesMaximum) are taken."
        }
        if CacheControl(request: request.fields).noStore {
            return "Not stored: the request says no-store (RFC 9111 §5.2.1.5)."
        }
        // They answer the conditions or the range of this request and not its URL.
        guard ![206, 304, 412, 416].contains(status.code) else {
            return "Not stored: \(status.code) is not a whole response (RFC 9111 §3)."
        }
        // The transport removes chunked only. Without its `Transfer-Encoding` coded content could not be recognised.
        if let coding = fields.values(of: .transferEncoding).flatMap({ FieldList.members(of: $0.lowercased()) }).first(
            where: { transferCodings.contains($0) }
        ) {
            return "Not stored: its content has the transfer coding \(coding) (RFC 9112 §7.2)."
        }
        if let rejection = ResponseTerms.rejection(status, fields, CacheControl(response: fields)) {
            return "Not stored: \(rejection)."
        }
        let bytes = fields.reduce(0) { $0 + $1.name.description.utf8.count + $1.value.utf8.count + 4 }
        guard bytes <= fieldBytesMaximum else {
            return "Not stored: \(bytes) bytes of fields, and \(fieldBytesMaximum) are taken."
        }
        return nil
    }

    private static func rejection(ofBody response: TransportResponse, _ policy: HTTPCache.Policy) -> String? {
        let count = response.body.count
        guard count <= max(0, policy.bodyBytesMaximum) else {
            return "Not stored: \(count) bytes of content, and \(policy.bodyBytesMaximum) are taken."
        }
        // Decoded content may be larger than `Content-Length`.
        if !response.status.hasNoContent, !response.fields.contains(.contentEncoding),
            let text = response.fields[.contentLength], let length = Int(text), length != count
        {
            return "Not stored: \(count) bytes came of \(length), so it is not whole (RFC 9111 §3.3)."
        }
        return nil
    }

    /// Returns the fields to store: all but those of the connection (§3.1), and with a `Date` (RFC 9110 §6.6.1).
    static func storable(_ fields: Fields, receivedAt: WallTime) -> Fields {
        let listed = fields.values(of: .connection).flatMap(FieldList.members).map { $0.lowercased() }
        var stored = fields
        stored.removeAll { ofConnection.contains($0.canonical) || listed.contains($0.canonical) }
        let date = stored[.date].flatMap { HTTPDate.parse($0, now: receivedAt) }
        if date == nil { stored.set(.date, HTTPDate.format(receivedAt)) }
        return stored
    }

    /// Returns the selectors by `Vary` and by the policy.
    static func selectors(
        _ names: [FieldName],
        in request: Fields,
        _ policy: HTTPCache.Policy
    ) -> [HTTPCacheEntry.Selector] {
        HTTPCacheEntry.Selector.selectors(policy.selecting(names), in: policy.selecting(request))
    }

    private static let urlBytesMaximum = 4 << 10
    private static let fieldBytesMaximum = 64 << 10

    private static let transferCodings: Set<String> = ["compress", "deflate", "gzip", "x-compress", "x-gzip"]

    private static let ofConnection: Set<String> = [
        "connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
        "proxy-authenticate", "proxy-authentication-info", "proxy-authorization",
    ]
}
