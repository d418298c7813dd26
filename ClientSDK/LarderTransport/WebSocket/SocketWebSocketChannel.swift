import LarderHTTPWire
import LarderTime
import Synchronization

/// One open WebSocket over a socket.
///
/// One lock guards all state. The loop's thread reads and checks deadlines; a sender writes as much as the socket
/// accepts. Waiters are resumed while the lock is held, which only enqueues them, so that messages stay in order. No
/// code of a caller runs under the lock.
final class SocketWebSocketChannel: SocketHandler {
    typealias Sent = Result<Void, WebSocketError>

    enum Phase {
        /// Messages are exchanged, or a close frame was sent and the peer's is awaited.
        case open
        /// Both close frames were exchanged: output is flushed and the peer closes the connection.
        case draining
        case over
    }

    struct State {
        var phase = Phase.open
        /// nil after the end.
        var link: SocketLink?
        var parser: WebSocketParser
        var inbox = WebSocketInbox()
        var isReadingPaused = false
        var senders: [(id: UInt64, frame: [UInt8], pending: Pending<Sent>)] = []
        var pings: [(id: UInt64, pending: Pending<Sent>)] = []
        var closers: [(id: UInt64, pending: Pending<WebSocketClient.Close?>)] = []
        var heartbeat: Heartbeat
        /// The deadline for the peer's close frame.
        var deadline: MonotonicTime?
        var closing: WebSocketClient.Close?
        var hasSentClose = false
        /// Whether a message was delivered after which the reader has not called `receive` again: it may still reply.
        var isReaderBusy = false
        /// The peer's protocol error, while the reader handles earlier messages.
        var failure: (code: WebSocketCloseCode, reason: String)?
        var lastID: UInt64 = 0

        /// Why sending failed. Received bytes may still be unread.
        var outputFailure: WebSocketError? {
            link?.failure.map { WebSocketError(.interrupted, "The connection broke: \($0).") }
        }
    }

    let configuration: WebSocketClient.Configuration
    let clock: any MonotonicClock
    let random: SharedRandom
    let state: Mutex<State>
    private let loop: SocketLoop
    private let jumps: EventRegistration?

    /// - Parameter link: the socket after the handshake, which is closed at the end.
    init(
        _ configuration: WebSocketClient.Configuration,
        _ link: SocketLink,
        clock: any MonotonicClock,
        random: SharedRandom,
        loop: SocketLoop
    ) {
        self.configuration = configuration
        self.clock = clock
        self.random = random
        self.loop = loop
        jumps = (clock as? any JumpingClock)?.onJump { loop.wake() }
        state = Mutex(
            State(
                link: link,
                parser: WebSocketParser(role: .client, messageBytesMaximum: max(0, configuration.messageBytesMaximum)),
                heartbeat: Heartbeat(
                    interval: configuration.pingInterval,
                    timeout: configuration.pongTimeout,
                    now: clock.uptime
                )
            )
        )
    }

    /// Begins to read.
    ///
    /// - Parameter received: bytes that came with the handshake.
    func start(_ received: [UInt8]) {
        state.withLock { if !received.isEmpty { take(&$0, received) } }
        guard loop.add(self) else { return cut(WebSocketError(.unreachable, "No file descriptor is left.")) }
        ready()
    }

    // MARK: For the loop

    var interest: SocketInterest? {
        state.withLock { state in
            guard var interest = state.link?.interest(reads: !state.isReadingPaused) else { return nil }
            let deadlines = [state.deadline, state.phase == .open ? state.heartbeat.deadline : nil]
            if let next = deadlines.compactMap({ $0 }).min() { interest.timeLeft = next - clock.uptime }
            return interest
        }
    }

    func ready() {
        state.withLock { state in
            flush(&state)
            read(&state)
        }
    }

    func deadlineReached() {
        state.withLock { state in
            let now = clock.uptime
            if let deadline = state.deadline, now >= deadline {
                switch state.phase {
                case .open where state.failure != nil: return failNow(&state)
                case .open, .draining: return endClosed(&state)
                case .over: return
                }
            }
            guard state.phase == .open else { return }
            switch state.heartbeat.beat(at: now) {
            case .nothing: break
            case .ping: append(&state, .ping, [])
            case .silent:
                end(
                    &state,
                    WebSocketError(.silent, "The peer did not react to a ping within \(configuration.pongTimeout).")
                )
            }
        }
    }

    // MARK: Using

    func receive() async throws(WebSocketError) -> WebSocketClient.Message? {
        let reader = Pending<WebSocketInbox.Received>()
        let cancelled = WebSocketError(.cancelled, "The reader was cancelled.")
        if Task.isCancelled { throw cancelled }
        let (now, id): (WebSocketInbox.Received?, UInt64) = state.withLock { state in
            if let now = state.inbox.take() {
                resumeReading(&state)
                return (now, 0)
            }
            state.isReaderBusy = false
            failNow(&state)
            if let now = state.inbox.take() { return (now, 0) }
            state.lastID += 1
            state.inbox.wait(state.lastID, reader)
            return (nil, state.lastID)
        }
        if let now { return try now.get() }
        return try await reader.value(ifCancelled: .failure(cancelled)) {
            self.state.withLock { $0.inbox.forget(id) }
        }.get()
    }

    func send(_ opcode: WebSocketEncoder.Opcode, _ payload: [UInt8]) async throws(WebSocketError) {
        let cancelled = WebSocketError(.cancelled, "The sender was cancelled; nothing was sent.")
        if Task.isCancelled { throw cancelled }
        let pending = Pending<Sent>()
        let id: UInt64 = state.withLock { state in
            state.lastID += 1
            if let error = rejection(state) {
                pending.finish(.failure(error))
                return state.lastID
            }
            var frame: [UInt8] = []
            WebSocketEncoder.append(opcode, payload, mask: random.next(), to: &frame)
            state.senders.append((state.lastID, frame, pending))
            flush(&state)
            return state.lastID
        }
        try await pending.value(ifCancelled: .failure(cancelled)) {
            self.state.withLock { $0.senders.removeAll { $0.id == id } }
        }.get()
    }

    func ping() async throws(WebSocketError) {
        let pending = Pending<Sent>()
        let id: UInt64 = state.withLock { state in
            state.lastID += 1
            if let error = rejection(state) {
                pending.finish(.failure(error))
                return state.lastID
            }
            state.pings.append((state.lastID, pending))
            append(&state, .ping, Self.payload(state.lastID))
            return state.lastID
        }
        let cancelled = WebSocketError(.cancelled, "The task that waits for a pong was cancelled.")
        try await pending.value(ifCancelled: .failure(cancelled)) {
            self.state.withLock { $0.pings.removeAll { $0.id == id } }
        }.get()
    }

    func close(_ close: WebSocketClient.Close) async -> WebSocketClient.Close? {
        let pending = Pending<WebSocketClient.Close?>()
        state.withLock { state in
            failNow(&state)
            guard state.phase == .open else {
                pending.finish(state.closing)
                return
            }
            state.lastID += 1
            state.closers.append((state.lastID, pending))
            guard !state.hasSentClose else { return }
            state.deadline = clock.uptime + configuration.closeTimeout
            appendClose(&state, close.code.map { WebSocketCloseCode(rawValue: $0) }, close.reason)
            // The peer's close frame must be read, so messages that nobody reads are dropped.
            if state.isReadingPaused {
                state.isReadingPaused = false
                state.heartbeat.resume(at: clock.uptime)
            }
            flush(&state)
            loop.wake()
        }
        return await pending.value(ifCancelled: nil) {
            self.cut(WebSocketError(.cancelled, "The task that closes was cancelled."))
        }
    }

    func cut(_ error: WebSocketError) { state.withLock { end(&$0, error) } }

    /// Why sending is impossible; nil if it is possible.
    private func rejection(_ state: State) -> WebSocketError? {
        if state.phase == .open, !state.hasSentClose { return state.outputFailure }
        if case .failure(let error)? = state.inbox.end { return error }
        return WebSocketError(.closed, "The WebSocket is closed.")
    }

    private static func payload(_ id: UInt64) -> [UInt8] {
        (0..<8).map { UInt8(truncatingIfNeeded: id >> (UInt64($0) * 8)) }
    }

    // MARK: Output

    /// Appends a control frame and flushes.
    func append(_ state: inout State, _ opcode: WebSocketEncoder.Opcode, _ payload: [UInt8]) {
        appendFrame(&state, opcode, payload)
        flush(&state)
    }

    private func appendFrame(_ state: inout State, _ opcode: WebSocketEncoder.Opcode, _ payload: [UInt8]) {
        var frame: [UInt8] = []
        WebSocketEncoder.append(opcode, payload, mask: random.next(), to: &frame)
        state.link?.append(frame)
    }

    /// Appends the close frame, the last frame.
    func appendClose(_ state: inout State, _ code: WebSocketCloseCode?, _ reason: String) {
        state.hasSentClose = true
        appendFrame(&state, .close, WebSocketEncoder.closePayload(code, reason))
        rejectSenders(&state, WebSocketError(.closed, "The WebSocket is being closed."))
    }

    func rejectSenders(_ state: inout State, _ error: WebSocketError) {
        for sender in state.senders { sender.pending.finish(.failure(error)) }
        state.senders = []
    }

    /// Writes what the socket accepts; the loop writes the rest.
    func flush(_ state: inout State) {
        guard let link = state.link else { return }
        repeat { link.flush() } while admitSenders(&state, to: link)
        if let error = state.outputFailure { rejectSenders(&state, error) }
        // Encrypted bytes may wait for the socket, too.
        if link.hasOutput || link.failure != nil { loop.wake() }
        if state.phase == .draining, state.closing != nil, link.pendingCount == 0 { link.finishSending() }
    }

    /// Moves frames of waiting senders into the output while there is room.
    ///
    /// - Returns: whether there is more to write.
    private func admitSenders(_ state: inout State, to link: SocketLink) -> Bool {
        guard link.failure == nil else { return false }
        var isAdmitted = false
        while let next = state.senders.first {
            let pending = link.pendingCount
            guard pending == 0 || pending + next.frame.count <= configuration.outputBytesMaximum else { break }
            state.senders.removeFirst()
            // A cancelled sender was told that nothing was sent.
            guard next.pending.finish(.success(())) else { continue }
            link.append(next.frame)
            isAdmitted = true
        }
        return isAdmitted
    }

    /// Resumes reading if there is room.
    private func resumeReading(_ state: inout State) {
        guard state.isReadingPaused, state.failure == nil,
            state.inbox.byteCount * 2 <= max(0, configuration.inboxBytesMaximum)
        else { return }
        state.isReadingPaused = false
        state.heartbeat.resume(at: clock.uptime)
        loop.wake()
    }

    func wakeLoop() { loop.wake() }
}
