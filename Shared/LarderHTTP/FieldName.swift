/// The name of a header field: a token, compared case-insensitively (RFC 9110 §5.1).
///
/// The original spelling is kept for display.
public struct FieldName: Sendable, Hashable, CustomStringConvertible, ExpressibleByStringLiteral {
    /// The name as written.
    public let description: String
    /// The name in lower case, used for comparison.
    public let canonical: String

    /// Makes a name; nil if the text is not a token (RFC 9110 §5.6.2).
    public init?(_ text: String) {
        guard Self.isToken(text) else { return nil }
        self.init(trusted: text)
    }

    /// Makes a name from a literal, which must be a token: `fields.set("X-API-Key", key)`.
    public init(stringLiteral text: String) {
        precondition(
            Self.isToken(text),
            "\"\(text)\" is not the name of a header field. Use letters, digits and hyphens."
        )
        self.init(trusted: text)
    }

    private static func isToken(_ text: String) -> Bool { !text.isEmpty && text.utf8.allSatisfy(isTokenByte) }

    private init(trusted text: String) {
        description = text
        canonical = text.utf8.contains { $0 >= UInt8(ascii: "A") && $0 <= UInt8(ascii: "Z") } ? text.lowercased() : text
    }

    /// Compares case-insensitively.
    public static func == (left: FieldName, right: FieldName) -> Bool { left.canonical == right.canonical }

    /// Hashes case-insensitively.
    public func hash(into hasher: inout Hasher) { hasher.combine(canonical) }

    /// `Accept` (RFC 9110 §12.5.1).
    public static let accept = FieldName(trusted: "Accept")
    /// `Accept-Encoding` (RFC 9110 §12.5.3).
    public static let acceptEncoding = FieldName(trusted: "Accept-Encoding")
    /// `Accept-Language` (RFC 9110 §12.5.4).
    public static let acceptLanguage = FieldName(trusted: "Accept-Language")
    /// `Accept-Patch` (RFC 5789 §3.1).
    public static let acceptPatch = FieldName(trusted: "Accept-Patch")
    /// `Accept-Ranges` (RFC 9110 §14.3).
    public static let acceptRanges = FieldName(trusted: "Accept-Ranges")
    /// `Access-Control-Allow-Headers` (Fetch).
    public static let accessControlAllowHeaders = FieldName(trusted: "Access-Control-Allow-Headers")
    /// `Access-Control-Allow-Methods` (Fetch).
    public static let accessControlAllowMethods = FieldName(trusted: "Access-Control-Allow-Methods")
    /// `Access-Control-Allow-Origin` (Fetch).
    public static let accessControlAllowOrigin = FieldName(trusted: "Access-Control-Allow-Origin")
    /// `Access-Control-Expose-Headers` (Fetch).
    public static let accessControlExposeHeaders = FieldName(trusted: "Access-Control-Expose-Headers")
    /// `Access-Control-Max-Age` (Fetch).
    public static let accessControlMaxAge = FieldName(trusted: "Access-Control-Max-Age")
    /// `Access-Control-Request-Headers` (Fetch).
    public static let accessControlRequestHeaders = FieldName(trusted: "Access-Control-Request-Headers")
    /// `Access-Control-Request-Method` (Fetch).
    public static let accessControlRequestMethod = FieldName(trusted: "Access-Control-Request-Method")
    /// `Age` (RFC 9111 §5.1).
    public static let age = FieldName(trusted: "Age")
    /// `Allow` (RFC 9110 §10.2.1).
    public static let allow = FieldName(trusted: "Allow")
    /// `Authorization` (RFC 9110 §11.6.2).
    public static let authorization = FieldName(trusted: "Authorization")
    /// `Cache-Control` (RFC 9111 §5.2).
    public static let cacheControl = FieldName(trusted: "Cache-Control")
    /// `Connection` (RFC 9110 §7.6.1).
    public static let connection = FieldName(trusted: "Connection")
    /// `Content-Encoding` (RFC 9110 §8.4).
    public static let contentEncoding = FieldName(trusted: "Content-Encoding")
    /// `Content-Language` (RFC 9110 §8.5).
    public static let contentLanguage = FieldName(trusted: "Content-Language")
    /// `Content-Length` (RFC 9110 §8.6).
    public static let contentLength = FieldName(trusted: "Content-Length")
    /// `Content-Location` (RFC 9110 §8.7).
    public static let contentLocation = FieldName(trusted: "Content-Location")
    /// `Content-Range` (RFC 9110 §14.4).
    public static let contentRange = FieldName(trusted: "Content-Range")
    /// `Content-Type` (RFC 9110 §8.3).
    public static let contentType = FieldName(trusted: "Content-Type")
    /// `Cookie` (RFC 6265).
    public static let cookie = FieldName(trusted: "Cookie")
    /// `Date` (RFC 9110 §6.6.1).
    public static let date = FieldName(trusted: "Date")
    /// `ETag` (RFC 9110 §8.8.3).
    public static let etag = FieldName(trusted: "ETag")
    /// `Expect` (RFC 9110 §10.1.1).
    public static let expect = FieldName(trusted: "Expect")
    /// `Expires` (RFC 9111 §5.3).
    public static let expires = FieldName(trusted: "Expires")
    /// `Host` (RFC 9110 §7.2).
    public static let host = FieldName(trusted: "Host")
    /// `Keep-Alive` (RFC 2068 §19.7.1).
    public static let keepAlive = FieldName(trusted: "Keep-Alive")
    /// `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header).
    public static let idempotencyKey = FieldName(trusted: "Idempotency-Key")
    /// `X-Request-ID`: identifies a request in the logs of both sides.
    package static let requestID = FieldName(trusted: "X-Request-ID")
    /// Marks the account of a request within the SDK. It is never sent.
    package static let larderAccount = FieldName(trusted: "Larder-Account")
    /// `Tus-Resumable`: the version of the upload protocol tus.
    package static let tusResumable = FieldName(trusted: "Tus-Resumable")
    /// `Upload-Metadata`: of the file (tus).
    package static let uploadMetadata = FieldName(trusted: "Upload-Metadata")
    /// `Upload-Complete` (draft-ietf-httpbis-resumable-upload).
    package static let uploadComplete = FieldName(trusted: "Upload-Complete")
    /// `Upload-Length`: of the whole content.
    package static let uploadLength = FieldName(trusted: "Upload-Length")
    /// `Upload-Limit`: what the server accepts.
    package static let uploadLimit = FieldName(trusted: "Upload-Limit")
    /// `Upload-Offset`: how much of the content the server has.
    package static let uploadOffset = FieldName(trusted: "Upload-Offset")
    /// `If-Match` (RFC 9110 §13.1.1).
    public static let ifMatch = FieldName(trusted: "If-Match")
    /// `If-Modified-Since` (RFC 9110 §13.1.3).
    public static let ifModifiedSince = FieldName(trusted: "If-Modified-Since")
    /// `If-None-Match` (RFC 9110 §13.1.2).
    public static let ifNoneMatch = FieldName(trusted: "If-None-Match")
    /// `If-Range` (RFC 9110 §13.1.5).
    public static let ifRange = FieldName(trusted: "If-Range")
    /// `If-Unmodified-Since` (RFC 9110 §13.1.4).
    public static let ifUnmodifiedSince = FieldName(trusted: "If-Unmodified-Since")
    /// `Last-Event-ID` (HTML, Server-Sent Events).
    public static let lastEventID = FieldName(trusted: "Last-Event-ID")
    /// `Last-Modified` (RFC 9110 §8.8.2).
    public static let lastModified = FieldName(trusted: "Last-Modified")
    /// `Link` (RFC 8288 §3).
    public static let link = FieldName(trusted: "Link")
    /// `Location` (RFC 9110 §10.2.2).
    public static let location = FieldName(trusted: "Location")
    /// `Sec-Fetch-Site` (W3C Fetch Metadata).
    public static let secFetchSite = FieldName(trusted: "Sec-Fetch-Site")
    /// `Origin` (RFC 6454).
    public static let origin = FieldName(trusted: "Origin")
    /// `Pragma` (RFC 9111 §5.4).
    public static let pragma = FieldName(trusted: "Pragma")
    /// `Range` (RFC 9110 §14.2).
    public static let range = FieldName(trusted: "Range")
    /// `Retry-After` (RFC 9110 §10.2.3).
    public static let retryAfter = FieldName(trusted: "Retry-After")
    /// `Sec-WebSocket-Accept` (RFC 6455).
    public static let secWebSocketAccept = FieldName(trusted: "Sec-WebSocket-Accept")
    /// `Sec-WebSocket-Key` (RFC 6455).
    public static let secWebSocketKey = FieldName(trusted: "Sec-WebSocket-Key")
    /// `Sec-WebSocket-Protocol` (RFC 6455).
    public static let secWebSocketProtocol = FieldName(trusted: "Sec-WebSocket-Protocol")
    /// `Sec-WebSocket-Version` (RFC 6455).
    public static let secWebSocketVersion = FieldName(trusted: "Sec-WebSocket-Version")
    /// `Set-Cookie` (RFC 6265).
    public static let setCookie = FieldName(trusted: "Set-Cookie")
    /// `Transfer-Encoding` (RFC 9112 §6.1).
    public static let transferEncoding = FieldName(trusted: "Transfer-Encoding")
    /// `Upgrade` (RFC 9110 §7.8).
    public static let upgrade = FieldName(trusted: "Upgrade")
    /// `User-Agent` (RFC 9110 §10.1.5).
    public static let userAgent = FieldName(trusted: "User-Agent")
    /// `Vary` (RFC 9110 §12.5.5).
    public static let vary = FieldName(trusted: "Vary")
    /// `WWW-Authenticate` (RFC 9110 §11.6.1).
    public static let wwwAuthenticate = FieldName(trusted: "WWW-Authenticate")
}

/// Whether a byte may stand in a token (RFC 9110 §5.6.2).
@inlinable package func isTokenByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"):
        true
    case UInt8(ascii: "!"), UInt8(ascii: "#"), UInt8(ascii: "$"), UInt8(ascii: "%"), UInt8(ascii: "&"),
        UInt8(ascii: "'"), UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."),
        UInt8(ascii: "^"), UInt8(ascii: "_"), UInt8(ascii: "`"), UInt8(ascii: "|"), UInt8(ascii: "~"):
        true
    default: false
    }
}
