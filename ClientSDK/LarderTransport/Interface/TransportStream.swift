public import LarderHTTP
import Synchronization

/// A response whose content arrives in pieces.
public struct TransportStream: Sendable {
    public let status: Status
    /// The header fields.
    public package(set) var fields: Fields
    /// The content.
    public package(set) var body: TransportStream.Body
    /// The URL of the response if redirects were followed; nil if it is the request's URL.
    public package(set) var redirectedTo: String?
    /// Counts the received content if the transport decodes it; nil: it is passed on as received.
    package var codedBytes: CodedByteCount?

    /// Creates a response.
    public init(status: Status, fields: Fields, body: TransportStream.Body, redirectedTo: String? = nil) {
        self.status = status
        self.fields = fields
        self.body = body
        self.redirectedTo = redirectedTo
    }

    /// A response whose content is one piece.
    public init(_ response: TransportResponse) {
        let rest = Mutex<[UInt8]?>(response.body.isEmpty ? nil : response.body)
        self.init(
            status: response.status,
            fields: response.fields,
            body: TransportStream.Body { rest.withLock { $0.take() } },
            redirectedTo: response.redirectedTo
        )
    }

    /// Reads the content to its end.
    ///
    /// - Throws: if the content is truncated; received content is discarded.
    public func whole() async throws(TransportError) -> TransportResponse {
        var bytes: [UInt8] = []
        for try await piece in body {
            // Content in one piece is not copied.
            if bytes.isEmpty { bytes = piece } else { bytes += piece }
        }
        return TransportResponse(status: status, fields: fields, body: bytes, redirectedTo: redirectedTo)
    }
}

extension TransportStream {
    /// The content of a response in pieces. It can be read once, by one task.
    ///
    /// The exchange is cancelled and its connection closed when the last copy of this value is released.
    public struct Body: AsyncSequence, Sendable {
        private struct Iterator: AsyncIteratorProtocol {
            let body: Body

            mutating func next() async throws(TransportError) -> [UInt8]? { try await body.next() }

            mutating func next(isolation actor: isolated (any Actor)?) async throws(TransportError) -> [UInt8]? {
                try await body.next()
            }
        }

        private let piece: @Sendable () async throws(TransportError) -> [UInt8]?

        /// - Parameter piece: returns the next piece, nil at the end, and throws if the content is truncated.
        public init(_ piece: @escaping @Sendable () async throws(TransportError) -> [UInt8]?) { self.piece = piece }

        /// Returns the next piece; nil at the regular end.
        public func next() async throws(TransportError) -> [UInt8]? { try await piece() }

        /// Creates the iterator.
        public func makeAsyncIterator() -> some AsyncIteratorProtocol<[UInt8], TransportError> { Iterator(body: self) }
    }
}
