import LarderHTTP

/// Why a read or a write gave nothing.
public struct LarderError: Error, Sendable, CustomStringConvertible {
    /// What kind of failure it was. A struct, because kinds will be added.
    public struct Code: RawRepresentable, Sendable, Hashable {
        /// The code's name.
        public let rawValue: String

        /// A code by its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// There was no reply, and nothing in the cache that may be shown instead.
        public static let offline = Code(rawValue: "offline")
        /// The reply did not come in time.
        public static let timedOut = Code(rawValue: "timedOut")
        /// The server refused. `status` says how, `problem` why, as far as it told.
        public static let refused = Code(rawValue: "refused")
        /// The request could not be authorized: the session has ended, or its renewal failed. The server has not carried it out. A
        /// change in the outbox waits, and is sent after the next sign-in; an awaited write has ended, and nothing has changed. See
        /// `cause`.
        public static let unauthorized = Code(rawValue: "unauthorized")
        /// The server says that there is no such thing, or not any more.
        public static let gone = Code(rawValue: "gone")
        /// The reply was not what the API promises. The cache is as it was.
        public static let unexpectedReply = Code(rawValue: "unexpectedReply")
        /// The fetch function failed in a way of its own; see `cause`.
        public static let fetchFailed = Code(rawValue: "fetchFailed")
        /// Nothing is stored, and the policy forbids to ask the network.
        public static let notCached = Code(rawValue: "notCached")
        /// The value could not be confirmed within the time that a gate demands.
        public static let notValidated = Code(rawValue: "notValidated")
        /// The store could not be read or written.
        public static let storage = Code(rawValue: "storage")
        /// The value could not be encoded.
        public static let encoding = Code(rawValue: "encoding")
        /// The caller does not wait any more.
        public static let cancelled = Code(rawValue: "cancelled")
        /// The cache was closed or erased.
        public static let closed = Code(rawValue: "closed")
        /// An operation waits in the outbox, and no operation of its name is registered in this process.
        public static let unregistered = Code(rawValue: "unregistered")
        /// Operations wait in the outbox, which is paused or was never resumed.
        public static let paused = Code(rawValue: "paused")
        /// What was asked for makes no sense; the description says what to give instead.
        public static let invalidArgument = Code(rawValue: "invalidArgument")
        /// Nobody knows yet whether the operation was carried out; it resolves itself.
        public static let inDoubt = Code(rawValue: "inDoubt")
        /// What was to be changed has been changed by somebody else meanwhile.
        public static let conflict = Code(rawValue: "conflict")
    }

    /// What kind of failure it was.
    public let code: Code
    /// What happened and what to do.
    public let description: String
    /// What led to it.
    public let cause: (any Error)?
    /// The status that the server answered with, if it did.
    public let status: Int?
    /// The `type` of the problem document that the server answered with (RFC 9457), if it did.
    public let problem: String?
    /// The operation that it is about, where there is one.
    public let operation: OperationID?
    /// The server's `Retry-After`, as it came.
    let retryAfter: Fields?
    /// Whether it is about a reply of the API itself, rather than of a proxy or portal on the way.
    let isFromAPI: Bool

    /// Whether the API has done what it was asked for (2xx), and its reply cannot be decoded.
    var isUnreadableAcceptance: Bool {
        code == .unexpectedReply && isFromAPI && status.map { (200..<300).contains($0) } ?? false
    }

    /// A failure of a kind.
    public init(
        _ code: Code,
        _ description: String,
        cause: (any Error)? = nil,
        status: Int? = nil,
        problem: String? = nil,
        operation: OperationID? = nil
    ) {
        self.init(
            code,
            description,
            cause: cause,
            status: status,
            problem: problem,
            operation: operation,
            retryAfter: nil
        )
    }

    init(
        _ code: Code,
        _ description: String,
        cause: (any Error)? = nil,
        status: Int? = nil,
        problem: String? = nil,
        operation: OperationID? = nil,
        retryAfter: Fields?,
        isFromAPI: Bool = false
    ) {
        self.code = code
        self.description = description
        self.cause = cause
        self.status = status
        self.problem = problem
        self.operation = operation
        self.retryAfter = retryAfter
        self.isFromAPI = isFromAPI
    }

    /// Any error as one of these: what went wrong in the store or on the way keeps its kind, everything else is `.fetchFailed`.
    public init(_ error: any Error) {
        switch error {
        case let error as LarderError: self = error
        case let error as DiskError: self.init(.storage, error.description, cause: error)
        case is CancellationError: self.init(.cancelled, "The caller does not wait any more.", cause: error)
        case let error as TransportError:
            let code: Code =
                switch error.code {
                case .cancelled: .cancelled
                case .timedOut: .timedOut
                case .invalidURL: .invalidArgument
                case .tooLarge: .unexpectedReply
                default: .offline
                }
            self.init(code, error.description, cause: error)
        default: self.init(.fetchFailed, "The fetch failed: \(error)", cause: error)
        }
    }
}
