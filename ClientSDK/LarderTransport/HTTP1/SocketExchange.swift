import LarderEvents
import LarderHTTP
import LarderHTTPWire
import LarderTLS
import LarderTime
import Synchronization

/// One request over a socket. It waits for a connection and may be sent again over a second one.
final class SocketExchange: Sendable {
    private struct State {
        var connection: SocketConnection?
        /// Whether it requires a new connection.
        var needsFresh: Bool
        /// Whether a connection has begun to send it: the server may have received it.
        var isSent = false
        /// Whether a connection has ended without a reply to it, and it was or will be sent again.
        var hasLostCopy = false
        /// Whether it must not be sent, because the caller was told that it was not.
        var isSendingPrevented = false
        var isOver = false
        /// Reads and sends the body over the current connection.
        var upload: Task<Void, Never>?
        /// The one that was cancelled with the connection before: two do not report their progress at once.
        var endingUpload: Task<Void, Never>?
        /// Called when a piece of the body was sent.
        var onUploadProgress: (@Sendable () -> Void)?
        var upgraded: Upgraded?
    }

    /// A socket that goes on with another protocol: the response's head, and the bytes behind it.
    typealias Upgraded = (head: ResponseHead, link: SocketLink, rest: [UInt8])

    let endpoint: Endpoint
    /// Makes the TLS session of a new connection; nil for http.
    let tls: TLSClient?
    /// The head, and the content if it is in memory.
    let bytes: [UInt8]
    /// The content that is sent in pieces.
    let upload: RequestBody?
    /// Its length; nil: it is sent in chunks.
    let uploadLength: Int?
    let isHead: Bool
    /// The timeout for connecting; nil: that of the pool.
    let connectTimeout: Duration?
    /// Whether it may be sent again if a reused connection is dead: it is idempotent (RFC 9110 §9.2.2), or has an idempotency key.
    let isRepeatable: Bool
    let inbox: ReplyInbox
    private let pool: SocketPool
    private let lostCopies: LostCopies?
    private let state: Mutex<State>

    init(
        _ request: TransportRequest,
        _ endpoint: Endpoint,
        _ bytes: [UInt8],
        uploadLength: Int? = nil,
        tls: TLSClient? = nil,
        connectTimeout: Duration? = nil,
        bufferMaximum: Int,
        pool: SocketPool
    ) {
        self.endpoint = endpoint
        self.tls = tls
        self.bytes = bytes
        upload = request.upload
        self.uploadLength = uploadLength
        isHead = request.method == .head
        self.connectTimeout = connectTimeout
        isRepeatable = RetryPolicy.isRepeatable(request) && request.upload?.isReplayable ?? true
        inbox = ReplyInbox(bodyLimit: request.bodyLimit, bufferMaximum: bufferMaximum)
        self.pool = pool
        lostCopies = LostCopies.current
        state = Mutex(State(needsFresh: !isRepeatable))
    }

    deinit { takeUpgraded()?.link.close() }

    var needsFresh: Bool { state.withLock { $0.needsFresh } }

    /// Whether it is complete, failed or cancelled.
    var isOver: Bool { state.withLock { $0.isOver } }

    /// Assigns a connection; false if the exchange is over.
    func board(_ connection: SocketConnection) -> Bool {
        state.withLock { state in
            guard !state.isOver else { return false }
            state.connection = connection
            return true
        }
    }

    /// Called before the first byte is sent; false if nothing may be sent.
    func beginSending() -> Bool {
        state.withLock { state in
            guard !state.isSendingPrevented else { return false }
            state.isSent = true
            return true
        }
    }

    /// Called when a timeout has passed. Prevents that anything is sent from then on.
    ///
    /// - Returns: whether nothing was sent.
    func preventSending() -> Bool {
        state.withLock { state in
            guard !state.isSent else { return false }
            state.isSendingPrevented = true
            return true
        }
    }

    /// Removes a dead connection. The next one must be new.
    func detachForResend() {
        let upload = state.withLock { state in
            state.connection = nil
            state.needsFresh = true
            if state.isSent {
                state.hasLostCopy = true
                lostCopies?.note()
            }
            state.endingUpload = state.upload.take()
            return state.endingUpload
        }
        Self.cancel(upload)
    }

    /// Sets what is called when a piece of the body was sent, until the end of the exchange.
    func onUploadProgress(_ action: @escaping @Sendable () -> Void) {
        state.withLock { if !$0.isOver { $0.onUploadProgress = action } }
    }

    /// Begins to read the body and to send it over a connection, which has sent the head or is about to.
    func startUpload(over connection: SocketConnection) {
        guard let upload else { return }
        state.withLock { state in
            guard !state.isOver else { return }
            let earlier = state.endingUpload.take()
            state.upload = Task.detached {
                await earlier?.value
                await self.send(upload, over: connection)
            }
        }
    }

    private func send(_ upload: RequestBody, over connection: SocketConnection) async {
        do throws(TransportError) {
            _ = try await upload.write(uploadLength) { piece, isLast in
                var bytes = uploadLength == nil ? ChunkedEncoder.chunk(piece) : piece
                if isLast, uploadLength == nil { bytes += ChunkedEncoder.end }
                let isSent = await connection.write(bytes, of: self, isLast: isLast)
                if isSent { self.state.withLock { $0.onUploadProgress }?() }
                return isSent
            }
        } catch {
            connection.failUpload(self, error)
        }
    }

    /// Stops reading a body. In a task of its own, because cancelling runs code of the body's owner, and callers hold locks.
    private static func cancel(_ upload: Task<Void, Never>?) {
        guard let upload else { return }
        Task.detached { upload.cancel() }
    }

    /// Marks the end, and stops reading the body.
    private func conclude() -> SocketConnection? {
        let (connection, upload) = state.withLock { state in
            state.isOver = true
            state.onUploadProgress = nil
            return (state.connection.take(), state.upload.take())
        }
        Self.cancel(upload)
        return connection
    }

    /// Completes the response. Called after the connection has released the exchange.
    func completed(_ rest: [ResponseReader.Event]) {
        _ = conclude()
        var head: (Status, Fields)?
        var pieces: [[UInt8]] = []
        for event in rest {
            switch event {
            case .head(let received): head = (received.status, received.fields)
            case .content(let bytes): pieces.append(bytes)
            case .end: break
            }
        }
        inbox.completed(head, pieces)
    }

    /// Called before the end of an exchange whose socket goes on with another protocol.
    func upgraded(_ upgraded: Upgraded) { state.withLock { $0.upgraded = upgraded } }

    /// The socket, which the caller must close.
    func takeUpgraded() -> Upgraded? { state.withLock { $0.upgraded.take() } }

    /// Ends the exchange. Called by the connection when it releases the exchange.
    func end(_ end: Result<Void, TransportError>) {
        _ = conclude()
        var end = end
        if case .failure(let error) = end {
            let isSent = error.kind == .unsent && state.withLock { $0.isSent }
            end = .failure(isSent ? Self.lost(error) : afterLostCopy(error))
        }
        inbox.finish(end)
    }

    /// An error of the last copy: after a lost one nobody can say that the request was not sent.
    func afterLostCopy(_ error: TransportError) -> TransportError {
        let claims = error.kind == .unsent || error.kind == .invalidRequest
        return claims && state.withLock { $0.hasLostCopy } ? Self.lost(error) : error
    }

    private static func lost(_ error: TransportError) -> TransportError {
        let text = "The connection was closed without a reply, and the request could not be sent again: "
        return TransportError(.interrupted, text + error.description, cause: error.cause)
    }

    /// Called when the reader has made room for content.
    func resumeReading() { state.withLock { $0.connection }?.resumeReading(self) }

    /// Called when the response is no longer needed.
    func stop() {
        conclude()?.giveUp(self)
        pool.forget(self)
    }
}
