import LarderEvents
import LarderStorage
public import LarderTime

/// The error of a read or a write.
public struct LarderError: Error, Sendable, CustomStringConvertible {
    /// The kind of failure.
    public let code: ErrorCode<LarderError>
    /// What happened and what to do.
    public package(set) var description: String
    /// The underlying error.
    public package(set) var cause: (any Error)?
    /// The HTTP status of the reply, if there was one.
    public package(set) var status: Int?
    /// The `type` of the problem document in the reply (RFC 9457), if there was one.
    public let problem: String?
    /// The operation that failed, if there is one.
    public let operation: OperationID?
    /// The delay that the reply asks for (`Retry-After`, RFC 9110 section 10.2.3); nil if there is none.
    public package(set) var retryAfter: Duration?
    /// Whether nothing has reached the server.
    package var isUnsent = false
    /// Whether the reply is the API's own, and not from a proxy or portal on the way.
    package var isFromAPI = false

    /// Whether the API has accepted the request (2xx), and its reply cannot be decoded.
    package var isUnreadableAcceptance: Bool {
        code == .unexpectedReply && isFromAPI && status.map { (200..<300).contains($0) } ?? false
    }

    /// Creates an error.
    public init(
        _ code: ErrorCode<LarderError>,
        _ description: String,
        cause: (any Error)? = nil,
        status: Int? = nil,
        problem: String? = nil,
        operation: OperationID? = nil,
        retryAfter: Duration? = nil
    ) {
        self.code = code
        self.description = description
        self.cause = cause
        self.status = status
        self.problem = problem
        self.operation = operation
        self.retryAfter = retryAfter
    }

    /// The error, marked as one of a request that was never sent, or of a reply that is the API's own.
    package func marked(isUnsent: Bool = false, isFromAPI: Bool = false) -> LarderError {
        var error = self
        (error.isUnsent, error.isFromAPI) = (isUnsent, isFromAPI)
        return error
    }

    /// The error for a request that is not sent yet, because the last one has failed with this error.
    func postponed(for wait: Duration) -> LarderError {
        var error = self
        error.description += " (The next request is sent in \(wait) at the earliest, unless it is a refresh.)"
        error.retryAfter = wait
        error.isUnsent = true
        return error
    }

    /// Whether the request was never sent because the caller gave up, the cache was closed or the network must not be used.
    var isLocal: Bool {
        switch code {
        case .cancelled, .closed, .invalidArgument, .encoding, .storage: true
        default: code == .offline && isUnsent && cause == nil
        }
    }

    /// Converts any error: store and transport errors keep their kind, everything else is `.fetchFailed`.
    public init(_ error: any Error) {
        switch error {
        case let error as LarderError: self = error
        case let error as DiskError: self.init(.storage, error.description, cause: error)
        case is CancellationError: self.init(.cancelled, "The caller was cancelled.", cause: error)
        case let error as any RequestFailure:
            let code: ErrorCode<LarderError> =
                switch error.kind {
                case .cancelled: .cancelled
                case .timedOut: .timedOut
                case .invalidRequest: .invalidArgument
                case .unusable: .unexpectedReply
                case .unsent, .noReply: error.isUntrusted ? .untrusted : .offline
                }
            self.init(code, "\(error)", cause: error, retryAfter: error.retryAfter)
            isUnsent = error.kind == .unsent
        default: self.init(.fetchFailed, "The fetch failed: \(error)", cause: error)
        }
    }
}

extension LarderError: CustomDebugStringConvertible {
    /// The code, status, problem type and delay before the description.
    public var debugDescription: String {
        var facts = [code.rawValue]
        if let status { facts.append("status \(status)") }
        if let problem { facts.append(problem) }
        if let retryAfter { facts.append("retry after \(retryAfter)") }
        return "LarderError(\(facts.joined(separator: ", "))): \(description)"
    }
}

extension ErrorCode where Scope == LarderError {
    /// There was no reply, and nothing in the cache that may be shown instead.
    public static var offline: Self { Self(rawValue: "offline") }
    /// The server's certificate is not trusted, or cannot be checked: `cause` says why. Nothing was sent. What waits in the outbox is
    /// sent when it is trusted.
    public static var untrusted: Self { Self(rawValue: "untrusted") }
    /// The reply did not come in time.
    public static var timedOut: Self { Self(rawValue: "timedOut") }
    /// The server rejected the request. `status` and `problem` are those of its reply.
    public static var rejected: Self { Self(rawValue: "rejected") }
    /// The request could not be authorized: the session has ended, or its renewal failed. The server has not carried it out. A
    /// change in the outbox waits, and is sent after the next sign-in; an awaited write has ended, and nothing has changed. See
    /// `cause`.
    public static var unauthorized: Self { Self(rawValue: "unauthorized") }
    /// The server says that the value does not exist, or does not exist any more.
    public static var gone: Self { Self(rawValue: "gone") }
    /// The reply is not of the form that the API promises. The cache is unchanged.
    public static var unexpectedReply: Self { Self(rawValue: "unexpectedReply") }
    /// The fetch function threw another error; see `cause`.
    public static var fetchFailed: Self { Self(rawValue: "fetchFailed") }
    /// Nothing is stored, and the policy does not allow a request.
    public static var notCached: Self { Self(rawValue: "notCached") }
    /// The value could not be confirmed within the time that a gate demands, or was confirmed too long ago (`Validated`).
    public static var notValidated: Self { Self(rawValue: "notValidated") }
    /// The outbox has the maximum number of operations or bytes; the description names the limit. Nothing was stored.
    public static var outboxFull: Self { Self(rawValue: "outboxFull") }
    /// The store could not be read or written.
    public static var storage: Self { Self(rawValue: "storage") }
    /// The value could not be encoded.
    public static var encoding: Self { Self(rawValue: "encoding") }
    /// The caller was cancelled.
    public static var cancelled: Self { Self(rawValue: "cancelled") }
    /// The cache was closed or erased.
    public static var closed: Self { Self(rawValue: "closed") }
    /// An operation waits in the outbox, and no operation of its name is registered in this process.
    public static var unregistered: Self { Self(rawValue: "unregistered") }
    /// The outbox is paused or was never resumed: the operations in it wait, and an awaited write was not stored.
    public static var paused: Self { Self(rawValue: "paused") }
    /// An argument is invalid; the description says what to pass instead.
    public static var invalidArgument: Self { Self(rawValue: "invalidArgument") }
    /// The outcome of the operation is unknown. It is sent again under its idempotency key until the outcome is known.
    public static var inDoubt: Self { Self(rawValue: "inDoubt") }
    /// The value was changed by someone else meanwhile, or an earlier operation of the scope is in doubt.
    public static var conflict: Self { Self(rawValue: "conflict") }
}
