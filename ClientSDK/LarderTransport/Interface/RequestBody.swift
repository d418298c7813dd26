import Synchronization

/// The content of a request that is read and sent in pieces.
///
/// The next piece is read when the connection has accepted the one before, so at most two pieces are in memory. Sequences and
/// files are read on the global concurrent executor, never on the caller's. Reading is cancelled when the
/// exchange ends: if its task is cancelled, a timeout passes, the connection breaks, or the server rejects the request early (4xx, 5xx).
///
/// Bytes, files and sequences that are made for each attempt can be sent again. A single sequence is sent at most once: where the
/// request would have to be repeated (a redirect with 307 or 308, a renewal after 401, a retry), it fails instead, with
/// `.bodyNotReplayable` or an error that says why there was no retry.
///
/// Two values are equal if one is a copy of the other.
public struct RequestBody: Sendable, Hashable {
    /// How much of a body was sent.
    public struct Progress: Sendable, Hashable {
        /// The number of bytes that the connection has accepted in this attempt.
        public let sent: Int
        /// The number of bytes of the body; nil if it is not known.
        public let total: Int?

        package init(sent: Int, total: Int?) { (self.sent, self.total) = (sent, total) }
    }

    private struct Use {
        var hasBegun = false
        var sent = 0
    }

    /// What copies of a body share.
    private final class Shared: Sendable {
        let use = Mutex(Use())
    }

    /// The largest piece that is handed to a connection, in bytes. A larger one of a sequence is divided.
    package static let pieceMaximum = 64 << 10

    /// The media type, for `Content-Type` if the request does not have that field; nil: unknown.
    public let contentType: String?
    /// Called after each sent piece of at most 64 KiB, and after the last with the total. An attempt that is repeated begins at zero.
    ///
    /// It is called on the global concurrent executor, one call after another. Sending waits for its return.
    public var onProgress: (@Sendable (Progress) -> Void)?
    private let content: any RequestContent
    private let shared = Shared()

    /// A body of bytes in memory.
    public init(_ bytes: [UInt8], contentType: String? = nil) {
        self.init(RequestBytes(bytes: bytes), contentType)
    }

    /// The content of a file, read in pieces of 64 KiB.
    ///
    /// The file is opened when the request is sent. If it cannot be read, is not a regular file or changes its size meanwhile, the
    /// request fails with `.bodyFailed`.
    public init(file path: String, contentType: String? = nil) { self.init(RequestFile(path: path), contentType) }

    /// The pieces of a sequence, which is read once. The body can be sent only once.
    ///
    /// - Parameters:
    ///   - pieces: the content, read once.
    ///   - length: the number of bytes of all pieces together, for `Content-Length`. If the sequence has another number, the request fails
    ///     with `.bodyFailed` before it is complete. nil: unknown; the body is sent in chunks (RFC 9112 §7.1).
    ///   - contentType: the media type.
    public init<Pieces: AsyncSequence & Sendable>(
        _ pieces: Pieces,
        length: Int? = nil,
        contentType: String? = nil
    ) where Pieces.Element == [UInt8] {
        self.init(RequestSequence(statedLength: length, isReplayable: false) { pieces }, contentType)
    }

    /// The pieces of a sequence that is made for each attempt, so that the body can be sent again.
    ///
    /// - Parameters:
    ///   - length: the number of bytes of all pieces together; nil: unknown.
    ///   - contentType: the media type.
    ///   - pieces: makes the sequence. It must have the same content each time.
    public init<Pieces: AsyncSequence>(
        length: Int? = nil,
        contentType: String? = nil,
        replaying pieces: @escaping @Sendable () -> Pieces
    ) where Pieces.Element == [UInt8] {
        self.init(RequestSequence(statedLength: length, isReplayable: true, make: pieces), contentType)
    }

    init(_ content: any RequestContent, _ contentType: String?) {
        self.content = content
        self.contentType = contentType
    }

    /// Whether two values are copies of one body.
    public static func == (left: RequestBody, right: RequestBody) -> Bool { left.shared === right.shared }

    /// Hashes the identity of the body.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(shared)) }

    /// Whether the body can be sent more than once.
    public var isReplayable: Bool { content.isReplayable }

    /// Whether the body can be sent now: it can be replayed, or none of it was read yet.
    package var canBeSent: Bool { isReplayable || !shared.use.withLock { $0.hasBegun } }

    /// The number of bytes that were sent in the last attempt.
    package var bytesSent: Int { shared.use.withLock { $0.sent } }

    /// The number of bytes; nil if it is not known before the body is read. Files are asked for their size.
    package func length() async throws(TransportError) -> Int? {
        do {
            guard let length = try await content.length() else { return nil }
            guard length >= 0 else {
                throw TransportError(.invalidRequest, "The length \(length) of the body is negative.")
            }
            return length
        } catch { throw Self.failure(error) }
    }

    /// Reads the body and passes its pieces on, each when the one before was accepted.
    ///
    /// The piece that completes a stated length is passed on when the content has ended. So a body that is longer than stated is
    /// never sent completely.
    ///
    /// - Parameters:
    ///   - length: the stated length, which the content must have.
    ///   - sink: takes a piece of at most `pieceMaximum` bytes, at the end one with `isLast`, which may be empty. It returns false if no
    ///     more is wanted.
    /// - Returns: whether everything was accepted.
    /// - Throws: `.bodyNotReplayable`, `.bodyFailed` or `.cancelled`.
    package func write(
        _ length: Int?,
        to sink: (_ piece: [UInt8], _ isLast: Bool) async -> Bool
    ) async throws(TransportError) -> Bool {
        try begin()
        var read = 0
        var sent = 0
        var held: [UInt8] = []
        do {
            try await content.write { piece in
                var start = 0
                while start < piece.count {
                    let end = min(piece.count, start + Self.pieceMaximum)
                    let part = start == 0 && end == piece.count ? piece : Array(piece[start..<end])
                    start = end
                    read += part.count
                    guard read <= length ?? .max else { throw Self.wrongLength("at least \(read)", length) }
                    guard read != length else {
                        held = part
                        continue
                    }
                    guard await sink(part, false) else { throw NotWanted() }
                    sent += part.count
                    note(sent, length)
                }
                try Task.checkCancellation()
            }
            guard length == nil || read == length else { throw Self.wrongLength("\(read)", length) }
            guard await sink(held, true) else { return false }
            note(read, length)
            return true
        } catch is NotWanted { return false } catch { throw Self.failure(error) }
    }

    private func begin() throws(TransportError) {
        let isFirst = shared.use.withLock { use in
            defer { use = Use(hasBegun: true) }
            return !use.hasBegun
        }
        guard isFirst || isReplayable else {
            throw TransportError(
                .bodyNotReplayable,
                "The body is a sequence that was read before. Send the request with a new body, or use init(replaying:)."
            )
        }
    }

    /// Notes and reports how much was sent.
    package func note(_ sent: Int, _ total: Int?) {
        shared.use.withLock { $0.sent = sent }
        onProgress?(Progress(sent: sent, total: total))
    }

    /// The sink of a body that needs no more pieces.
    private struct NotWanted: Error {}

    private static func wrongLength(_ count: String, _ length: Int?) -> TransportError {
        TransportError(
            .bodyFailed,
            "The body has \(count) bytes, but \(length ?? 0) were stated. State its exact length, or none."
        )
    }

    private static func failure(_ error: any Error) -> TransportError {
        switch error {
        case let error as TransportError: error
        case is CancellationError: TransportError(.cancelled, "The request was cancelled while its body was read.")
        default: TransportError(.bodyFailed, "The body could not be read: \(error)")
        }
    }
}

/// The content of a body, apart from its use.
protocol RequestContent: Sendable {
    var isReplayable: Bool { get }

    /// The number of bytes; nil if it is not known before they are read.
    func length() async throws -> Int?

    /// Passes on all pieces in order, each after the call for the one before has returned.
    func write(to sink: (_ piece: [UInt8]) async throws -> Void) async throws
}

private struct RequestBytes: RequestContent {
    let bytes: [UInt8]
    var isReplayable: Bool { true }

    func length() -> Int? { bytes.count }

    func write(to sink: ([UInt8]) async throws -> Void) async throws { try await sink(bytes) }
}

private struct RequestSequence<Pieces: AsyncSequence>: RequestContent where Pieces.Element == [UInt8] {
    let statedLength: Int?
    let isReplayable: Bool
    let make: @Sendable () -> Pieces

    func length() -> Int? { statedLength }

    func write(to sink: ([UInt8]) async throws -> Void) async throws {
        for try await piece in make() { try await sink(piece) }
        // A sequence that ends because its task was cancelled is not complete.
        try Task.checkCancellation()
    }
}
