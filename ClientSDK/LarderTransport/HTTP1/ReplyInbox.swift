import LarderEvents
import LarderHTTP
import LarderTime
import Synchronization

/// The buffered part of a response between the connection and the one task that reads it.
///
/// Not a mailbox: it limits buffered and total bytes, pauses the connection, and distinguishes head, content and end.
/// Events arrive in order from any thread; those after the end are ignored. Its lock is the innermost; waiters are
/// resumed outside of it.
final class ReplyInbox: Sendable {
    typealias Head = Result<(Status, Fields), TransportError>
    typealias Piece = Result<[UInt8]?, TransportError>

    /// What the connection must do next.
    enum Demand {
        case more
        /// Pause reading until `resumeReading`.
        case pause
        /// A limit was exceeded: end the exchange with this error.
        case stop(TransportError)
    }

    private struct State {
        var headWaiter: Pending<Head>?
        var pieceWaiter: Pending<Piece>?
        var head: (Status, Fields)?
        var pieces = FIFO<[UInt8]>()
        var buffered = 0
        var bytesLeft: Int
        var isPaused = false
        /// nil until the end.
        var end: Result<Void, TransportError>?
    }

    private let bufferMaximum: Int
    private let state: Mutex<State>

    /// - Parameters:
    ///   - bodyLimit: the maximum size of the content, in bytes.
    ///   - bufferMaximum: how many bytes may wait for the reader before reading pauses.
    init(bodyLimit: Int, bufferMaximum: Int) {
        self.bufferMaximum = max(1, bufferMaximum)
        state = Mutex(State(bytesLeft: max(0, bodyLimit)))
    }

    var isOver: Bool { state.withLock { $0.end != nil } }

    // MARK: The reader

    /// Returns the head or the failure; nil if there is neither, and then `waiter` gets it.
    func head(_ waiter: Pending<Head>) -> Head? {
        state.withLock { state in
            if let head = state.head { return .success(head) }
            if case .failure(let error)? = state.end { return .failure(error) }
            state.headWaiter = waiter
            return nil
        }
    }

    /// Returns the next piece or the end if it is already there, and whether reading must be resumed.
    func takeNow() -> (piece: Piece?, resumes: Bool) {
        state.withLock { state in
            guard let piece = state.pieces.popFirst() else {
                switch state.end {
                case nil: return (nil, false)
                case .success: return (.success(nil), false)
                case .failure(let error): return (.failure(error), false)
                }
            }
            state.buffered -= piece.count
            let resumes = state.isPaused && state.buffered <= bufferMaximum / 2
            if resumes { state.isPaused = false }
            return (.success(piece), resumes)
        }
    }

    /// Resumes `waiter` when something can be taken; false if something can be taken already.
    func wait(_ waiter: Pending<Piece>) -> Bool {
        state.withLock { state in
            guard state.pieces.isEmpty, state.end == nil else { return false }
            state.pieceWaiter = waiter
            return true
        }
    }

    // MARK: What comes

    func responded(_ head: (Status, Fields)) {
        let waiter: Pending<Head>? = state.withLock { state in
            guard state.end == nil else { return nil }
            state.head = head
            defer { state.headWaiter = nil }
            return state.headWaiter
        }
        waiter?.finish(.success(head))
    }

    func received(_ bytes: [UInt8]) -> Demand {
        guard !bytes.isEmpty else { return .more }
        let (demand, waiter): (Demand, Pending<Piece>?) = state.withLock { state in
            guard state.end == nil else { return (.more, nil) }
            state.bytesLeft -= bytes.count
            guard state.bytesLeft >= 0 else { return (.stop(Self.tooLarge), nil) }
            state.buffered += bytes.count
            var demand = Demand.more
            if state.buffered > bufferMaximum, !state.isPaused {
                state.isPaused = true
                demand = .pause
            }
            state.pieces.append(bytes)
            defer { state.pieceWaiter = nil }
            return (demand, state.pieceWaiter)
        }
        // An empty piece means that something can be taken.
        waiter?.finish(.success([]))
        return demand
    }

    /// Adds the rest of the response and its end in one step, so that a waiting task is resumed once.
    func completed(_ head: (Status, Fields)?, _ pieces: [[UInt8]]) {
        let (headWaiter, pieceWaiter): (Pending<Head>?, Pending<Piece>?) = state.withLock { state in
            guard state.end == nil else { return (nil, nil) }
            if let head { state.head = head }
            state.bytesLeft -= pieces.reduce(0) { $0 + $1.count }
            if state.bytesLeft >= 0 {
                for piece in pieces { state.pieces.append(piece) }
                state.buffered += pieces.reduce(0) { $0 + $1.count }
                state.end = .success(())
            } else {
                state.pieces.removeAll()
                state.buffered = 0
                state.end = .failure(Self.tooLarge)
            }
            defer { (state.headWaiter, state.pieceWaiter) = (nil, nil) }
            return (head == nil ? nil : state.headWaiter, state.pieceWaiter)
        }
        if let head { headWaiter?.finish(.success(head)) }
        pieceWaiter?.finish(.success([]))
    }

    private static let tooLarge = TransportError(.tooLarge, "The content is larger than the request allows.")

    /// Sets the end. Only the first end has an effect.
    ///
    /// - Parameter dropsContent: whether unread content is dropped.
    /// - Returns: whether this was the first.
    @discardableResult func finish(_ end: Result<Void, TransportError>, dropsContent: Bool = false) -> Bool {
        let (isFirst, headWaiter, pieceWaiter): (Bool, Pending<Head>?, Pending<Piece>?) = state.withLock { state in
            // A complete response can still be cancelled; no task waits for it.
            if dropsContent {
                // A reader must not take the rest for the complete content.
                if !state.pieces.isEmpty, case .success? = state.end { state.end = end }
                state.pieces.removeAll()
                state.buffered = 0
            }
            guard state.end == nil else { return (false, nil, nil) }
            state.end = end
            defer { (state.headWaiter, state.pieceWaiter) = (nil, nil) }
            return (true, state.headWaiter, state.pieceWaiter)
        }
        switch end {
        case .success:
            pieceWaiter?.finish(.success([]))
        case .failure(let error):
            headWaiter?.finish(.failure(error))
            // Content before the failure is read first.
            if dropsContent { pieceWaiter?.finish(.failure(error)) } else { pieceWaiter?.finish(.success([])) }
        }
        return isFirst
    }
}
