public import LarderHTTP
public import LarderTime
public import LarderTransport

extension HTTPCache {
    /// A response with its source and an explanation.
    public struct Response: Sendable, Hashable {
        /// The source of a response.
        public enum Source: Sendable, Hashable {
            /// The server.
            case network
            /// A fresh stored response.
            case hit
            /// A stored response that the server has just confirmed.
            case revalidated
            /// A stale stored response.
            case stale(HTTPCache.StaleReason)
            /// The server, in an exchange shared with an equal request.
            case collapsed
            /// No source: the request must not be sent, and no stored response matches it.
            case cacheOnlyMiss
        }

        /// The response without its source. A stored one has an `Age`.
        public var reply: TransportResponse
        public var source: Source
        /// The reason for the source, with figures and RFC sections.
        public var explanation: String
        /// The stored response; nil if it must not be stored.
        package var entry: HTTPCacheEntry?

        public var status: Status { reply.status }
        public var fields: Fields { reply.fields }
        public var body: [UInt8] { reply.body }
        /// The URL of the response if redirects were followed; nil if it is the request's URL.
        public var redirectedTo: String? {
            get { reply.redirectedTo }
            set { reply.redirectedTo = newValue }
        }
    }
}

extension HTTPCache.Response: RedirectableReply {}

extension HTTPCache {
    /// Why a stale response is served.
    public enum StaleReason: Sendable, Hashable {
        /// The request allows it by `max-stale`.
        case requested
        /// The device is offline.
        case offline
        /// It is being validated in the background.
        case revalidating
        /// The server failed, with this status.
        case serverFailed(Status)
        /// The server could not be reached, for this reason.
        case transportFailed(ErrorCode<TransportError>)
        /// The content is damaged, or no picture, such as a sign-in page.
        case unexpectedContent
    }
}
