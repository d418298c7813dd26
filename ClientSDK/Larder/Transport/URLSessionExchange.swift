import Foundation
import LarderHTTP
import LarderTime
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// One task of a session, between the delegate that is told of it and the task that reads it.
///
/// Events come in order on the session's queue; the reader is one task. After the end nothing changes any more, so a callback
/// that comes late meets a closed door.
final class URLSessionExchange: Sendable {
    typealias Head = Result<(Status, Fields), TransportError>
    typealias Piece = Result<[UInt8]?, TransportError>

    private struct State {
        var headWaiter: Pending<Head>?
        var pieceWaiter: Pending<Piece>?
        var head: (Status, Fields)?
        var pieces: [[UInt8]] = []
        var firstPiece = 0
        var buffered = 0
        var bytesLeft: Int
        var isPaused = false
        /// Whether the request may have left although no reply has come: it was redirected, so a server has seen it.
        var hasLeft = false
        /// nil while it goes on.
        var end: Result<Void, TransportError>?
    }

    let task: URLSessionDataTask
    private let bufferMaximum: Int
    private let state: Mutex<State>

    init(_ task: URLSessionDataTask, bodyLimit: Int, bufferMaximum: Int) {
        self.task = task
        self.bufferMaximum = max(1, bufferMaximum)
        state = Mutex(State(bytesLeft: max(0, bodyLimit)))
    }

    // MARK: The reader

    /// Waits for the head. To be called once.
    func head() async -> Head {
        let waiter = Pending<Head>()
        let now: Head? = state.withLock { state in
            if let head = state.head { return .success(head) }
            if case .failure(let error)? = state.end { return .failure(error) }
            state.headWaiter = waiter
            return nil
        }
        if let now { return now }
        let cancelled = TransportError(.cancelled, "The request was cancelled.")
        return await waiter.value(ifCancelled: .failure(cancelled)) { self.abandon(cancelled) }
    }

    /// The next piece, or the end, where it is there already.
    func takeNow() -> Piece? {
        let (piece, resumes): (Piece?, Bool) = state.withLock { state in
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
        if resumes { task.resume() }
        return piece
    }

    /// Waits for the next piece, nil at the end.
    func piece() async -> Piece {
        let cancelled = TransportError(.cancelled, "The reader was cancelled.")
        if Task.isCancelled {
            abandon(cancelled)
            return .failure(cancelled)
        }
        while true {
            if let now = takeNow() { return now }
            let waiter = Pending<Piece>()
            let mustWait = state.withLock { state in
                guard state.firstPiece == state.pieces.count, state.end == nil else { return false }
                state.pieceWaiter = waiter
                return true
            }
            guard mustWait else { continue }
            // An empty piece only says that there is something to take.
            let woken = await waiter.value(ifCancelled: .failure(cancelled)) { self.abandon(cancelled) }
            if case .failure(let error) = woken { return .failure(error) }
        }
    }

    /// Gives the exchange up. Only the first end counts.
    func abandon(_ error: TransportError) {
        if finish(.failure(error), dropsContent: true) { task.cancel() }
    }

    // MARK: The session

    func responded(_ head: (Status, Fields)) {
        let waiter: Pending<Head>? = state.withLock { state in
            guard state.end == nil else { return nil }
            state.head = head
            defer { state.headWaiter = nil }
            return state.headWaiter
        }
        waiter?.finish(.success(head))
    }

    func received(_ bytes: [UInt8]) {
        guard !bytes.isEmpty else { return }
        enum Step { case ignore, tooLarge(String), wake(Pending<Piece>?, pauses: Bool) }
        let step: Step = state.withLock { state in
            guard state.end == nil else { return .ignore }
            state.bytesLeft -= bytes.count
            guard state.bytesLeft >= 0 else { return .tooLarge("The content is larger than the request allows.") }
            state.buffered += bytes.count
            var pauses = false
            if state.buffered > bufferMaximum, !state.isPaused {
                #if canImport(FoundationNetworking)
                    return .tooLarge("More than \(bufferMaximum) bytes waited for their reader.")
                #else
                    state.isPaused = true
                    pauses = true
                #endif
            }
            state.pieces.append(bytes)
            defer { state.pieceWaiter = nil }
            return .wake(state.pieceWaiter, pauses: pauses)
        }
        switch step {
        case .ignore: return
        case .tooLarge(let reason): abandon(TransportError(.tooLarge, reason))
        case .wake(let waiter, let pauses):
            if pauses { task.suspend() }
            waiter?.finish(.success([]))
        }
    }

    func redirected() { state.withLock { $0.hasLeft = true } }

    func completed(_ error: (any Error)?) {
        guard let error else {
            let hasHead = state.withLock { $0.head != nil }
            finish(
                hasHead ? .success(()) : .failure(TransportError(.interrupted, "The reply has no head.")),
                dropsContent: false
            )
            return
        }
        let hasLeft = state.withLock { $0.hasLeft || $0.head != nil }
        finish(.failure(URLSessionFailure.error(error, requestHasLeft: hasLeft)), dropsContent: false)
    }

    @discardableResult private func finish(_ end: Result<Void, TransportError>, dropsContent: Bool) -> Bool {
        let (isFirst, headWaiter, pieceWaiter): (Bool, Pending<Head>?, Pending<Piece>?) = state.withLock { state in
            // Content that had all come can still be given up; nobody is told, because nobody waits.
            if dropsContent {
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
