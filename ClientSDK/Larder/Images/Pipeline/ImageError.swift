/// Why there is no picture.
public struct ImageError: Error, Sendable, CustomStringConvertible {
    /// What kind of failure it was. A struct, because kinds will be added.
    public struct Code: RawRepresentable, Sendable, Hashable {
        /// The code's name.
        public let rawValue: String

        /// A code by its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// Nobody waits for it any more, or pending work was given up.
        public static let cancelled = Code(rawValue: "cancelled")
        /// It is not in the cache, and no server was to be asked.
        public static let notCached = Code(rawValue: "notCached")
        /// The server cannot be reached. Ask again when there is a network.
        public static let offline = Code(rawValue: "offline")
        /// The connection broke or was silent too often. Asking again goes on where it broke off.
        public static let interrupted = Code(rawValue: "interrupted")
        /// The server answered with an error; `status` says which.
        public static let status = Code(rawValue: "status")
        /// The bytes that come are not what was sent, again and again.
        public static let damaged = Code(rawValue: "damaged")
        /// No decoder knows the format. Register one, or ask for another format.
        public static let unsupportedFormat = Code(rawValue: "unsupportedFormat")
        /// The file or the picture is beyond the limits. Ask for a smaller rendition.
        public static let tooLarge = Code(rawValue: "tooLarge")
        /// A processor failed.
        public static let processing = Code(rawValue: "processing")
        /// The URL is none, or the server's answer cannot be one to the request.
        public static let invalid = Code(rawValue: "invalid")
    }

    /// What kind of failure it was.
    public let code: Code
    /// What happened and what to do.
    public let description: String
    /// The status, where the server answered with one that is no picture.
    public let status: Int?
    /// Whether it was not tried now, because it has just failed.
    public internal(set) var isRemembered = false
    /// What led to it.
    public let cause: (any Error)?
    /// How long the server wants to be left alone.
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
        self.init(code, error.description, cause: error)
    }

    static let cancelled = ImageError(.cancelled, "Nobody waits for the picture any more.")
}
