public import LarderHTTP
public import LarderTime

/// A failure to open an event stream, or its end.
public struct EventStreamError: Error, Sendable, CustomStringConvertible {
    /// The kind of failure.
    public let code: ErrorCode<EventStreamError>
    /// What happened and what to do.
    public let description: String
    /// The status of the response, if the code is `.rejected`.
    public let status: Status?
    /// The transport's error, if the code is `.disconnected`.
    public let transport: TransportError?

    /// Creates an error.
    public init(
        _ code: ErrorCode<EventStreamError>,
        _ description: String,
        status: Status? = nil,
        transport: TransportError? = nil
    ) {
        self.code = code
        self.description = description
        self.status = status
        self.transport = transport
    }
}

extension ErrorCode where Scope == EventStreamError {
    /// The response is not an event stream: see `status`.
    public static var rejected: Self { Self(rawValue: "rejected") }
    /// The server ended the stream for good (204 No Content). Do not reconnect.
    public static var finished: Self { Self(rawValue: "finished") }
    /// The connection failed or broke: see `transport`. Reconnect with the last event ID.
    public static var disconnected: Self { Self(rawValue: "disconnected") }
    /// No byte arrived for 75 seconds. Reconnect with the last event ID.
    public static var silent: Self { Self(rawValue: "silent") }
    /// An event was larger than a mebibyte.
    public static var tooLarge: Self { Self(rawValue: "tooLarge") }
    /// The reading task was cancelled.
    public static var cancelled: Self { Self(rawValue: "cancelled") }
}
