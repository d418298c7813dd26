package import LarderHTTP
package import LarderTime
import Synchronization

/// A reply between whoever receives it and the one task that reads it.
///
/// Events come in order, on whatever thread. After the end nothing changes any more, so an event that comes late meets a closed
/// door. Its lock is the innermost: waiters are resumed outside of it.
package final class ReplyInbox: Sendable {
    package typealias Head = Result<(Status, Fields), TransportError>
    package typealias Piece = Result<[UInt8]?, TransportError>

    /// What whoever brings content is to do next.
    package enum Demand {
        case more
        /// The reader is behind: nothing more, until it has been told to go on.
        case pause
        /// It is too much: give the exchange up for this reason.
        case stop(TransportError)
    }

    private struct State {
        var headWaiter: Pending<Head>?
        var pieceWaiter: Pending<Piece>?
        var head: (Status, Fields)?
        var pieces: [[UInt8]] = []
        var firstPiece = 0
        var buffered = 0
        var bytesLeft: Int
        var isPaused = false
        /// nil while it goes on.
        var end: Result<Void, TransportError>?
    }

    private let bufferMaximum: Int
    private let canPause: Bool
    private let state: Mutex<State>

    /// - Parameters:
    ///   - bodyLimit: how many bytes of content the request takes.
    ///   - bufferMaximum: how many may wait for the reader.
    ///   - canPause: whether the content waits then, or the exchange fails.
    package init(bodyLimit: Int, bufferMaximum: Int, canPause: Bool) {
        self.bufferMaximum = max(1, bufferMaximum)
        self.canPause = canPause
        state = Mutex(State(bytesLeft: max(0, bodyLimit)))
    }

    /// Whether the head has come.
    package var hasHead: Bool { state.withLock { $0.head != nil } }

    /// Whether it has ended.
    package var isOver: Bool { state.withLock { $0.end != nil } }

    // MARK: The reader

    /// The head, or what came instead; nil where neither is there. Then `waiter` is told.
    package func head(_ waiter: Pending<Head>) -> Head? {
        state.withLock { state in
            if let head = state.head { return .success(head) }
            if case .failure(let error)? = state.end { return .failure(error) }
            state.headWaiter = waiter
            return nil
        }
    }

    /// The next piece, or the end, where it is there already; and whether whoever brings content is to go on.
    package func takeNow() -> (piece: Piece?, resumes: Bool) {
        state.withLock { state in
            guard state.firstPiece < state.pieces.count else {
                switch state.end {
                case nil: return (nil, false)
                case .success: return (.success(nil), false)
                case .failure(let error): return (.failure(error), false)
                }
            }
            let piece = state.pieces[state.firstPiece]
            state.firstPiece += 1
            if state.firstPiece == state.pieces.count {
                state.pieces.removeAll(keepingCapacity: true)
                state.firstPiece = 0
            }
            state.buffered -= piece.count
            let resumes = state.isPaused && state.buffered <= bufferMaximum / 2
            if resumes { state.isPaused = false }
            return (.success(piece), resumes)
        }
    }

    /// Has `waiter` told when there is something to take; false where there is already.
    package func wait(_ waiter: Pending<Piece>) -> Bool {
        state.withLock { state in
            guard state.firstPiece == state.pieces.count, state.end == nil else { return false }
            state.pieceWaiter = waiter
            return true
        }
    }

    // MARK: What comes

    package func responded(_ head: (Status, Fields)) {
        let waiter: Pending<Head>? = state.withLock { state in
            guard state.end == nil else { return nil }
            state.head = head
            defer { state.headWaiter = nil }
            return state.headWaiter
        }
        waiter?.finish(.success(head))
    }

    package func received(_ bytes: [UInt8]) -> Demand {
        guard !bytes.isEmpty else { return .more }
        let (demand, waiter): (Demand, Pending<Piece>?) = state.withLock { state in
            guard state.end == nil else { return (.more, nil) }
            state.bytesLeft -= bytes.count
            guard state.bytesLeft >= 0 else { return (.stop(Self.tooLarge), nil) }
            state.buffered += bytes.count
            var demand = Demand.more
            if state.buffered > bufferMaximum, !state.isPaused {
                guard canPause else {
                    let reason = "More than \(bufferMaximum) bytes waited for their reader."
                    return (.stop(TransportError(.tooLarge, reason)), nil)
                }
                state.isPaused = true
                demand = .pause
            }
            state.pieces.append(bytes)
            defer { state.pieceWaiter = nil }
            return (demand, state.pieceWaiter)
        }
        // An empty piece only says that there is something to take.
        waiter?.finish(.success([]))
        return demand
    }

    /// The rest has come in one piece, up to the end: a task that waits for it is resumed once.
    package func completed(_ head: (Status, Fields)?, _ pieces: [[UInt8]]) {
        let (headWaiter, pieceWaiter): (Pending<Head>?, Pending<Piece>?) = state.withLock { state in
            guard state.end == nil else { return (nil, nil) }
            if let head { state.head = head }
            state.bytesLeft -= pieces.reduce(0) { $0 + $1.count }
            if state.bytesLeft >= 0 {
                state.pieces += pieces
                state.buffered += pieces.reduce(0) { $0 + $1.count }
                state.end = .success(())
            } else {
                state.pieces = []
                state.firstPiece = 0
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

    /// It has ended. Only the first end counts.
    ///
    /// - Parameter dropsContent: whether the reader does not get what came before.
    /// - Returns: whether this was the first.
    @discardableResult package func finish(_ end: Result<Void, TransportError>, dropsContent: Bool = false) -> Bool {
        let (isFirst, headWaiter, pieceWaiter): (Bool, Pending<Head>?, Pending<Piece>?) = state.withLock { state in
            // Content that had all come can still be given up; nobody is told, because nobody waits.
            if dropsContent {
                // What is read after this lacks it, and must not pass for the whole.
                if state.firstPiece < state.pieces.count, case .success? = state.end { state.end = end }
                state.pieces = []
                state.firstPiece = 0
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
            // What came before the failure is read first.
            if dropsContent { pieceWaiter?.finish(.failure(error)) } else { pieceWaiter?.finish(.success([])) }
        }
        return isFirst
    }
}
