public import LarderTime
import LarderTransport

/// The reason why a request for a picture failed.
public struct ImageError: Error, Sendable, CustomStringConvertible {
    /// The kind of failure. More codes may be added.
    public typealias Code = ErrorCode<ImageError>

    /// The kind of failure.
    public let code: Code
    /// What happened and what to do about it.
    public let description: String
    /// The HTTP status, if the server answered with an error.
    public let status: Int?
    /// Whether the error is a remembered one: no request was sent.
    public internal(set) var isRemembered = false
    /// The underlying error.
    public let cause: (any Error)?
    /// The `Retry-After` of the response.
    let retryAfter: Duration?

    init(
        _ code: Code,
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

    init(_ error: ImageDecodingError) {
        let code: Code =
            switch error.code {
            case .unsupportedFormat: .unsupportedFormat
            case .tooLarge: .tooLarge
            case .cancelled: .cancelled
            default: .damaged
            }
        self.init(code, error.description, cause: error)
    }

    init(_ error: TransportError) {
        let code: Code =
            switch error.code {
            case .cancelled: .cancelled
            case .unreachable: .offline
            case .tooLarge: .tooLarge
            case .invalidURL: .invalid
            default: .interrupted
            }
        self.init(code, error.description, cause: error, retryAfter: error.retryAfter)
    }

    static let cancelled = ImageError(.cancelled, "The request was cancelled.")
}

extension ErrorCode where Scope == ImageError {
    /// Nobody waits for it any more, or pending work was given up.
    public static var cancelled: Self { Self(rawValue: "cancelled") }
    /// It is not in the cache, and no server was to be asked.
    public static var notCached: Self { Self(rawValue: "notCached") }
    /// The server cannot be reached. Ask again when there is a network.
    public static var offline: Self { Self(rawValue: "offline") }
    /// The connection broke or was silent too often. Asking again goes on where it broke off.
    public static var interrupted: Self { Self(rawValue: "interrupted") }
    /// The server answered with an error; `status` says which.
    public static var status: Self { Self(rawValue: "status") }
    /// The bytes that come are not what was sent, again and again.
    public static var damaged: Self { Self(rawValue: "damaged") }
    /// No decoder knows the format. Register one, or ask for another format.
    public static var unsupportedFormat: Self { Self(rawValue: "unsupportedFormat") }
    /// The file or the picture is beyond the limits. Ask for a smaller rendition.
    public static var tooLarge: Self { Self(rawValue: "tooLarge") }
    /// A processor failed.
    public static var processing: Self { Self(rawValue: "processing") }
    /// The URL is none, or the server's answer cannot be one to the request.
    public static var invalid: Self { Self(rawValue: "invalid") }
}
