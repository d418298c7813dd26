import LarderEvents
import LarderHTTP
import LarderHTTPCache
public import LarderTime
import LarderTransport

/// The reason why a request for a picture failed, or why bytes are not a picture that can be shown.
public struct ImageError: Error, Sendable, CustomStringConvertible {
    /// The kind of failure.
    public let code: ErrorCode<ImageError>
    /// What happened and what to do about it.
    public let description: String
    /// The HTTP status, if the server answered with an error.
    public let status: Int?
    /// Whether the error was remembered from an earlier failure: no request was sent.
    public internal(set) var isRemembered = false
    /// The underlying error.
    public let cause: (any Error)?
    /// The `Retry-After` of the response.
    let retryAfter: Duration?

    init(
        _ code: ErrorCode<ImageError>,
        _ description: String,
        status: Int? = nil,
        cause: (any Error)? = nil,
        retryAfter: Duration? = nil
    ) {
        self.code = code
        self.description = description
        self.status = status
        self.cause = cause
        self.retryAfter = retryAfter
    }

    /// An error of a decoder.
    public init(_ code: ErrorCode<ImageError>, _ description: String) {
        self.init(code, description, status: nil, cause: nil)
    }

    init(_ error: TransportError) {
        let code: ErrorCode<ImageError> =
            switch error.kind {
            case .cancelled: .cancelled
            case .unsent: .offline
            case .noReply, .timedOut: .interrupted
            case .invalidRequest: .invalid
            case .unusable: error.code == .tooLarge ? .tooLarge : .invalid
            }
        self.init(code, error.description, cause: error, retryAfter: error.retryAfter)
    }

    /// The failure for which a stale response was served; nil if there was none.
    init?(_ reason: HTTPCache.StaleReason, _ text: String) {
        switch reason {
        case .serverFailed(let status): self.init(.status, text, status: status.code)
        case .transportFailed(let code): self.init(TransportError(code, text))
        case .unexpectedContent: self.init(.damaged, text)
        case .requested, .offline, .revalidating: return nil
        }
    }

    static func notCached(_ url: String, _ reason: String) -> ImageError {
        let remedy = "Request it without .onlyCached to download it."
        return ImageError(.notCached, "\(url) cannot be shown from the cache: \(reason) \(remedy)")
    }

    /// The error of a decoder for a file that has arrived as a whole: one that ends too soon is damaged.
    var ofWholeFile: ImageError { code == .truncated ? ImageError(.damaged, description, cause: cause) : self }

    /// Whether a later try may succeed.
    var isTransient: Bool {
        switch code {
        case .interrupted, .damaged, .offline: true
        case .status: [408, 425, 429, 500, 502, 503, 504].contains(status)
        default: false
        }
    }

    /// Throws `.cancelled` if the decode of the calling task was cancelled.
    static func checkCancellation() throws(ImageError) { if Task.isCancelled { throw .cancelled } }

    static let cancelled = ImageError(.cancelled, "The request was cancelled.")
}

extension ErrorCode where Scope == ImageError {
    /// The last request was cancelled, or pending work was cancelled.
    public static var cancelled: Self { Self(rawValue: "cancelled") }
    /// The picture is not in the cache, and `onlyCached` forbids a request.
    public static var notCached: Self { Self(rawValue: "notCached") }
    /// The server cannot be reached. Request it again when there is a network.
    public static var offline: Self { Self(rawValue: "offline") }
    /// The connection broke or was silent too often. A new request resumes the download.
    public static var interrupted: Self { Self(rawValue: "interrupted") }
    /// The server answered with an error: see `status`.
    public static var status: Self { Self(rawValue: "status") }
    /// The bytes are not what was written: a checksum is wrong, or a length. A request has failed repeatedly.
    public static var damaged: Self { Self(rawValue: "damaged") }
    /// The bytes end too soon: only of a decoder.
    public static var truncated: Self { Self(rawValue: "truncated") }
    /// No decoder supports the format. Register one, or request another format.
    public static var unsupportedFormat: Self { Self(rawValue: "unsupportedFormat") }
    /// The file or the picture exceeds the limits. Request a smaller rendition.
    public static var tooLarge: Self { Self(rawValue: "tooLarge") }
    /// The URL is invalid, or the server's response does not match the request.
    public static var invalid: Self { Self(rawValue: "invalid") }
}
