public import LarderHTTP

/// Why an event stream could not be opened, or is over.
public struct EventStreamError: Error, Sendable, CustomStringConvertible {
    /// What kind of failure it was.
    public struct Code: RawRepresentable, Sendable, Hashable {
        /// The code's name.
        public let rawValue: String

        /// A code by its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The server has answered with something else than a stream: see `status` and `body`.
        public static let refused = Code(rawValue: "refused")
        /// The server wants no client to come again (204): stop.
        public static let finished = Code(rawValue: "finished")
        /// The connection could not be made, or broke: see `transport`. Open it again from the last id.
        public static let disconnected = Code(rawValue: "disconnected")
        /// Not even a comment came for too long: the connection is given up. Open it again from the last id.
        public static let silent = Code(rawValue: "silent")
        /// An event was larger than allowed.
        public static let tooLarge = Code(rawValue: "tooLarge")
        /// The reader was cancelled.
        public static let cancelled = Code(rawValue: "cancelled")
    }

    /// What kind of failure it was.
    public let code: Code
    /// What to know about it.
    public let description: String
    /// What the server answered, where it refused.
    public let status: Status?
    /// The fields of the refusal.
    public let fields: Fields
    /// The content of the refusal, the first 64 KiB of it.
    public let body: [UInt8]
    /// What failed beneath.
    public let transport: TransportError?

    /// A failure of a kind.
    public init(
        _ code: Code,
        _ description: String,
        status: Status? = nil,
        fields: Fields = Fields(),
        body: [UInt8] = [],
        transport: TransportError? = nil
    ) {
        self.code = code
        self.description = description
        self.status = status
        self.fields = fields
        self.body = body
        self.transport = transport
    }
}
