public import LarderHTTP

/// A reply whose content comes in pieces.
public struct TransportStream: Sendable {
    /// The status.
    public let status: Status
    /// The header fields.
    public let fields: Fields
    /// The content as it arrives.
    public let body: TransportBody
    /// The URL that answered, where the transport has followed a redirect to it; nil where the request's own URL did.
    public package(set) var redirectedTo: String?

    /// A reply.
    public init(status: Status, fields: Fields, body: TransportBody, redirectedTo: String? = nil) {
        self.status = status
        self.fields = fields
        self.body = body
        self.redirectedTo = redirectedTo
    }

    /// Reads the content to its end.
    ///
    /// - Throws: what it broke off with; what came before is given up.
    public func whole() async throws(TransportError) -> TransportResponse {
        var bytes: [UInt8] = []
        for try await piece in body {
            // Most content comes in one piece, which is not copied then.
            if bytes.isEmpty { bytes = piece } else { bytes += piece }
        }
        return TransportResponse(status: status, fields: fields, body: bytes, redirectedTo: redirectedTo)
    }
}

/// Content as it arrives, piece by piece. It is read once, by one task.
///
/// When the value and all its copies are gone, the exchange is given up and its connection closed.
public struct TransportBody: AsyncSequence, Sendable {
    /// Gives the pieces.
    public struct Iterator: AsyncIteratorProtocol {
        let piece: @Sendable () async throws(TransportError) -> [UInt8]?

        /// The next piece; nil where the content has ended as it should.
        public mutating func next() async throws(TransportError) -> [UInt8]? { try await piece() }

        /// The next piece; nil where the content has ended as it should.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(TransportError) -> [UInt8]? {
            try await piece()
        }
    }

    private let piece: @Sendable () async throws(TransportError) -> [UInt8]?

    /// - Parameter piece: gives the next piece, nil at the end. It throws where the content broke off.
    public init(_ piece: @escaping @Sendable () async throws(TransportError) -> [UInt8]?) { self.piece = piece }

    /// Begins to read.
    public func makeAsyncIterator() -> Iterator { Iterator(piece: piece) }
}
