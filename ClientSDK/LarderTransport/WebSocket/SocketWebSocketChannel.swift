import LarderHTTP
import LarderHTTPWire
import LarderTLS
import LarderTime
import Synchronization

/// One WebSocket over a connected socket, from the handshake to its end.
///
/// One lock guards all state. The loop's thread reads and checks deadlines; a sender writes as much as the socket
/// accepts. Waiters are resumed while the lock is held, which only enqueues them, so that messages stay in order. No
/// code of a caller runs under the lock.
final class SocketWebSocketChannel: SocketHandler {
    typealias Sent = Result<Void, WebSocketError>

    enum Phase {
        /// The handshake is under way.
        case opening
        /// Messages are exchanged, or a close frame was sent and the peer's is awaited.
        case open
        /// Both close frames were exchanged: output is flushed and the peer closes the connection.
        case draining
        case over
    }

    struct State {
        var phase = Phase.opening
        var descriptor: Int32?
        /// Set while a proxy opens a tunnel, which is a part of opening.
        var tunnel: ProxyTunnel?
        /// Set for `wss`, once there is a connection to the server. Its handshake is a part of opening.
        var tls: TLSFilter?
        /// Makes the TLS session; nil for `ws`.
        var makeSession: (@Sendable () throws(TLSError) -> TLSSession)?
        /// The opening request while the tunnel is not open.
        var request: [UInt8] = []
        var output: [UInt8] = []
        var outputStart = 0
        var upgrade: WebSocketUpgrade
        var parser: WebSocketParser
        var inbox = WebSocketInbox()
        var isReadingPaused = false
        var opening: Pending<Sent>?
        var senders: [(id: UInt64, frame: [UInt8], pending: Pending<Sent>)] = []
        var pings: [(id: UInt64, pending: Pending<Sent>)] = []
        var closers: [(id: UInt64, pending: Pending<WebSocketClient.Close?>)] = []
        var subprotocol: String?
        var fields = Fields()
        var heartbeat: Heartbeat
        /// The deadline for opening, or for the peer's close frame.
        var deadline: MonotonicTime?
        var closing: WebSocketClient.Close?
        var hasSentClose = false
        /// Whether a message was delivered after which the reader has not called `receive` again: it may still reply.
        var isReaderBusy = false
        /// The peer's protocol error, while the reader handles earlier messages.
        var failure: (code: WebSocketCloseCode, reason: String)?
        /// Why sending failed. Received bytes may still be unread.
        var outputFailure: WebSocketError?
        var lastID: UInt64 = 0

        var pendingOutput: Int { output.count - outputStart }

        /// Whether something can be written once the socket is writable.
        var hasOutput: Bool {
            guard outputFailure == nil else { return false }
            guard let tls else { return pendingOutput > 0 }
            return tls.hasOutput || (tls.isEstablished && pendingOutput > 0)
        }
    }

    let configuration: WebSocketClient.Configuration
    let clock: any MonotonicClock
    let random: SharedRandom
    let state: Mutex<State>
    private let loop: SocketLoop
    private let jumps: EventRegistration?

    /// - Parameter deadline: the deadline for the handshake.
    init(
        _ configuration: WebSocketClient.Configuration,
        _ upgrade: WebSocketUpgrade,
        request: [UInt8],
        deadline: MonotonicTime,
        clock: any MonotonicClock,
        random: SharedRandom,
        loop: SocketLoop = .shared
    ) {
        self.configuration = configuration
        self.clock = clock
        self.random = random
        self.loop = loop
        jumps = (clock as? any JumpingClock)?.onJump { loop.wake() }
        var first = State(
            upgrade: upgrade,
            parser: WebSocketParser(role: .client, messageBytesMaximum: max(0, configuration.messageBytesMaximum)),
            heartbeat: Heartbeat(interval: nil, timeout: .zero, now: clock.uptime)
        )
        first.output = request
        first.deadline = deadline
        state = Mutex(first)
    }

    // MARK: For the loop

    var interest: SocketInterest? {
        state.withLock { state in
            guard state.phase != .over else { return nil }
            var interest = SocketInterest()
            interest.writes = state.hasOutput
            interest.reads = !state.isReadingPaused
            // poll(2) reports a closed socket repeatedly even without an interest.
            interest.descriptor = interest.reads || interest.writes ? state.descriptor : nil
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
                case .opening:
                    let late = WebSocketError(
                        .timedOut,
                        "The WebSocket was not open within \(configuration.openTimeout)."
                    )
                    return end(&state, state.upgrade.end() ?? late)
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

    // MARK: Opening

    /// Performs the handshakes over a connected socket, which is closed at the end.
    ///
    /// - Parameters:
    ///   - tunnel: what a proxy must open before; nil: the descriptor is connected to the server.
    ///   - session: makes the TLS session; nil for `ws`.
    func open(
        _ descriptor: Int32,
        _ tunnel: ProxyTunnel?,
        _ session: (@Sendable () throws(TLSError) -> TLSSession)?
    ) async throws(WebSocketError) {
        let opening = Pending<Sent>()
        state.withLock { state in
            state.descriptor = descriptor
            state.opening = opening
            state.makeSession = session
            guard let tunnel else { return beginHandshake(&state) }
            state.tunnel = tunnel
            state.request = state.output
            state.output = tunnel.request
            flush(&state)
        }
        if !loop.add(self) { cut(WebSocketError(.unreachable, "No file descriptor is left.")) }
        let cancelled = WebSocketError(.cancelled, "The task that connects was cancelled.")
        try await opening.value(ifCancelled: .failure(cancelled)) { self.cut(cancelled) }.get()
    }

    /// Begins the TLS handshake; without TLS, sends the opening request.
    func beginHandshake(_ state: inout State) {
        do throws(TLSError) {
            if let session = state.makeSession.take() { state.tls = try TLSFilter(session()) }
        } catch { return end(&state, WebSocketError(unopened: error)) }
        flush(&state)
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
            admitSenders(&state)
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
        WebSocketEncoder.append(opcode, payload, mask: random.next(), to: &state.output)
        flush(&state)
    }

    /// Appends the close frame, the last frame.
    func appendClose(_ state: inout State, _ code: WebSocketCloseCode?, _ reason: String) {
        state.hasSentClose = true
        let payload = WebSocketEncoder.closePayload(code, reason)
        WebSocketEncoder.append(.close, payload, mask: random.next(), to: &state.output)
        let error = WebSocketError(.closed, "The WebSocket is being closed.")
        for sender in state.senders { sender.pending.finish(.failure(error)) }
        state.senders = []
    }

    /// Writes what the socket accepts; the loop writes the rest.
    func flush(_ state: inout State) {
        guard state.phase != .over, let descriptor = state.descriptor else { return }
        if state.outputFailure != nil {
            state.output = []
            state.outputStart = 0
        }
        if case .failed(let reason)? = state.tls?.flush({ SocketCall.send(descriptor, $0, from: $1) }) {
            outputFailed(&state, reason)
        }
        while state.pendingOutput > 0 {
            let sent =
                state.tls?.send(state.output, from: state.outputStart) { SocketCall.send(descriptor, $0, from: $1) }
                ?? SocketCall.send(descriptor, state.output, from: state.outputStart)
            switch sent {
            case .count(let count):
                state.outputStart += count
                if state.pendingOutput == 0 {
                    state.output.removeAll(keepingCapacity: state.output.capacity <= 1 << 16)
                    state.outputStart = 0
                } else if state.outputStart > 1 << 18 {
                    state.output.removeFirst(state.outputStart)
                    state.outputStart = 0
                }
                admitSenders(&state)
            case .wouldBlock:
                loop.wake()
                return
            case .failed(let reason): return outputFailed(&state, reason)
            }
        }
        // The last encrypted bytes may still wait for the socket.
        if state.hasOutput { loop.wake() }
        guard state.phase == .draining, state.closing != nil else { return }
        state.tls?.end { SocketCall.send(descriptor, $0, from: $1) }
        if !state.hasOutput { SocketCall.finishSending(descriptor) }
    }

    /// The connection ends when reading ends: the peer may have sent its reason.
    private func outputFailed(_ state: inout State, _ reason: String) {
        let error = WebSocketError(.interrupted, "The connection broke: \(reason).")
        state.outputFailure = error
        state.output = []
        state.outputStart = 0
        for sender in state.senders { sender.pending.finish(.failure(error)) }
        state.senders = []
        loop.wake()
    }

    /// Moves frames of waiting senders into the output while there is room.
    private func admitSenders(_ state: inout State) {
        while let next = state.senders.first {
            let pending = state.pendingOutput
            guard pending == 0 || pending + next.frame.count <= configuration.outputBytesMaximum else { return }
            state.senders.removeFirst()
            // A cancelled sender was told that nothing was sent.
            guard next.pending.finish(.success(())) else { continue }
            state.output += next.frame
        }
    }

    /// Resumes reading if there is room.
    private func resumeReading(_ state: inout State) {
        guard state.isReadingPaused, state.failure == nil, state.inbox.byteCount * 2 <= configuration.inboxBytesMaximum
        else { return }
        state.isReadingPaused = false
        state.heartbeat.resume(at: clock.uptime)
        loop.wake()
    }

    func wakeLoop() { loop.wake() }
}
