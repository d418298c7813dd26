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

    // Where nothing else is said: RFC 9110 to 9112, RFC 6265 (cookies), RFC 6454 (Origin), RFC 6455 (WebSocket), Fetch (Access-Control).

    public static let accept = FieldName(trusted: "Accept")
    public static let acceptEncoding = FieldName(trusted: "Accept-Encoding")
    public static let acceptLanguage = FieldName(trusted: "Accept-Language")
    /// `Accept-Patch` (RFC 5789 §3.1).
    public static let acceptPatch = FieldName(trusted: "Accept-Patch")
    public static let acceptRanges = FieldName(trusted: "Accept-Ranges")
    public static let accessControlAllowHeaders = FieldName(trusted: "Access-Control-Allow-Headers")
    public static let accessControlAllowMethods = FieldName(trusted: "Access-Control-Allow-Methods")
    public static let accessControlAllowOrigin = FieldName(trusted: "Access-Control-Allow-Origin")
    public static let accessControlExposeHeaders = FieldName(trusted: "Access-Control-Expose-Headers")
    public static let accessControlMaxAge = FieldName(trusted: "Access-Control-Max-Age")
    public static let accessControlRequestHeaders = FieldName(trusted: "Access-Control-Request-Headers")
    public static let accessControlRequestMethod = FieldName(trusted: "Access-Control-Request-Method")
    public static let age = FieldName(trusted: "Age")
    public static let allow = FieldName(trusted: "Allow")
    public static let authorization = FieldName(trusted: "Authorization")
    public static let cacheControl = FieldName(trusted: "Cache-Control")
    public static let connection = FieldName(trusted: "Connection")
    public static let contentEncoding = FieldName(trusted: "Content-Encoding")
    public static let contentLanguage = FieldName(trusted: "Content-Language")
    public static let contentLength = FieldName(trusted: "Content-Length")
    public static let contentLocation = FieldName(trusted: "Content-Location")
    public static let contentRange = FieldName(trusted: "Content-Range")
    public static let contentType = FieldName(trusted: "Content-Type")
    public static let cookie = FieldName(trusted: "Cookie")
    public static let date = FieldName(trusted: "Date")
    public static let etag = FieldName(trusted: "ETag")
    public static let expect = FieldName(trusted: "Expect")
    public static let expires = FieldName(trusted: "Expires")
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
    public static let ifMatch = FieldName(trusted: "If-Match")
    public static let ifModifiedSince = FieldName(trusted: "If-Modified-Since")
    public static let ifNoneMatch = FieldName(trusted: "If-None-Match")
    public static let ifRange = FieldName(trusted: "If-Range")
    public static let ifUnmodifiedSince = FieldName(trusted: "If-Unmodified-Since")
    /// `Last-Event-ID` (HTML, Server-Sent Events).
    public static let lastEventID = FieldName(trusted: "Last-Event-ID")
    public static let lastModified = FieldName(trusted: "Last-Modified")
    /// `Link` (RFC 8288 §3).
    public static let link = FieldName(trusted: "Link")
    public static let location = FieldName(trusted: "Location")
    /// `Sec-Fetch-Site` (W3C Fetch Metadata).
    public static let secFetchSite = FieldName(trusted: "Sec-Fetch-Site")
    public static let origin = FieldName(trusted: "Origin")
    public static let pragma = FieldName(trusted: "Pragma")
    public static let range = FieldName(trusted: "Range")
    public static let retryAfter = FieldName(trusted: "Retry-After")
    public static let secWebSocketAccept = FieldName(trusted: "Sec-WebSocket-Accept")
    public static let secWebSocketKey = FieldName(trusted: "Sec-WebSocket-Key")
    public static let secWebSocketProtocol = FieldName(trusted: "Sec-WebSocket-Protocol")
    public static let secWebSocketVersion = FieldName(trusted: "Sec-WebSocket-Version")
    public static let setCookie = FieldName(trusted: "Set-Cookie")
    public static let transferEncoding = FieldName(trusted: "Transfer-Encoding")
    public static let upgrade = FieldName(trusted: "Upgrade")
    public static let userAgent = FieldName(trusted: "User-Agent")
    public static let vary = FieldName(trusted: "Vary")
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

/// The value of a hexadecimal digit; nil for other bytes.
package func hexValue(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
    default: nil
    }
}
