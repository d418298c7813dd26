import LarderHTTP
import LarderTime
import LarderWebSocket
import Synchronization

/// One WebSocket on a socket of its own: everything that happens to it, from connecting to the end.
///
/// All state is under one lock. The loop's thread reads and keeps the time; whoever sends writes by himself as far as the
/// network takes it. Waiters are told while the lock is held, which only puts them in their executor's queue, so that no
/// message can overtake another between two locks. Waiters themselves never call back under a lock of theirs.
final class SocketWebSocketChannel: SocketHandler {
    typealias Sent = Result<Void, WebSocketError>

    enum Phase {
        /// The system connects.
        case connecting
        /// The handshake is under way.
        case opening
        /// Messages flow; or a close was sent, and the peer's is awaited.
        case open
        /// Nothing more is said or heard: what was said leaves, and the peer closes the connection.
        case draining
        case over
    }

    struct State {
        var phase = Phase.connecting
        var descriptor: Int32?
        var output: [UInt8] = []
        var outputStart = 0
        var upgrade: WebSocketUpgrade
        var parser: WebSocketParser
        var inbox = WebSocketInbox()
        var isReadingPaused = false
        var opening: Pending<Sent>?
        var senders: [(id: UInt64, frame: [UInt8], pending: Pending<Sent>)] = []
        var pings: [(id: UInt64, pending: Pending<Sent>)] = []
        var closers: [(id: UInt64, pending: Pending<WebSocketClose?>)] = []
        var subprotocol: String?
        var fields = Fields()
        var heartbeat: Heartbeat
        /// When opening, or the peer's answer to a close, has taken too long.
        var deadline: MonotonicTime?
        var closing: WebSocketClose?
        var hasSentClose = false
        /// Whether a message was given, or waits to be taken, whose reader has not come back since: it may be about to reply.
        var isReaderBusy = false
        /// How the peer broke the protocol, while the reader replies to what came before.
        var failure: (code: WebSocketCloseCode, reason: String)?
        /// Why the network takes nothing more. What the peer said before may still be there to be read.
        var outputFailure: WebSocketError?
        var lastID: UInt64 = 0

        var pendingOutput: Int { output.count - outputStart }
    }

    let configuration: WebSocketConfiguration
    let clock: any MonotonicClock
    let random: SharedRandom
    let state: Mutex<State>
    private let deadline: MonotonicTime
    private let loop: SocketLoop
    private let jumps: ClockRegistration?

    /// - Parameters:
    ///   - connectDeadline: when it is too late for the connection to stand.
    ///   - deadline: when it is too late to be agreed.
    init(
        _ configuration: WebSocketConfiguration,
        _ upgrade: WebSocketUpgrade,
        request: [UInt8],
        connectDeadline: MonotonicTime,
        deadline: MonotonicTime,
        clock: any MonotonicClock,
        random: SharedRandom,
        loop: SocketLoop = .shared
    ) {
        self.configuration = configuration
        self.clock = clock
        self.random = random
        self.deadline = deadline
        self.loop = loop
        jumps = clock.onJump { loop.wake() }
        var first = State(
            upgrade: upgrade,
            parser: WebSocketParser(role: .client, messageBytesMaximum: max(0, configuration.messageBytesMaximum)),
            heartbeat: Heartbeat(interval: nil, timeout: .zero, now: clock.uptime)
        )
        first.output = request
        first.deadline = connectDeadline
        state = Mutex(first)
    }

    // MARK: For the loop

    var interest: SocketInterest? {
        state.withLock { state in
            guard state.phase != .over else { return nil }
            var interest = SocketInterest()
            interest.writes = state.phase == .connecting || state.pendingOutput > 0
            interest.reads = state.phase != .connecting && !state.isReadingPaused
            // Without any wish a socket that was hung up would be reported again and again.
            interest.descriptor = interest.reads || interest.writes ? state.descriptor : nil
            let deadlines = [state.deadline, state.phase == .open ? state.heartbeat.deadline : nil]
            if let next = deadlines.compactMap({ $0 }).min() { interest.timeLeft = next - clock.uptime }
            return interest
        }
    }

    func ready() {
        state.withLock { state in
            guard let descriptor = state.descriptor else { return }
            if state.phase == .connecting {
                if let failure = SocketCall.connectionFailure(descriptor) { return end(&state, failure) }
                state.phase = .opening
                state.deadline = deadline
            }
            flush(&state)
            read(&state)
        }
    }

    func deadlineReached() {
        state.withLock { state in
            let now = clock.uptime
            if let deadline = state.deadline, now >= deadline {
                switch state.phase {
                case .connecting:
                    return end(&state, WebSocketError(.timedOut, "The server did not take the connection in time."))
                case .opening:
                    let late = WebSocketError(.timedOut, "It took longer than \(configuration.openTimeout) to open.")
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
                end(&state, WebSocketError(.silent, "The peer gave no sign of life for \(configuration.pongTimeout)."))
            }
        }
    }

    // MARK: Opening

    /// Connects to an address and agrees.
    func open(_ address: SocketCall.Address) async throws(WebSocketError) {
        let opening = Pending<Sent>()
        let descriptor = try SocketCall.connect(address).get()
        state.withLock { state in
            state.descriptor = descriptor
            state.opening = opening
        }
        if !loop.add(self) { cut(WebSocketError(.unreachable, "The system has no descriptor left.")) }
        let cancelled = WebSocketError(.cancelled, "The task that connects was cancelled.")
        try await opening.value(ifCancelled: .failure(cancelled)) { self.cut(cancelled) }.get()
    }

    // MARK: Using

    func receive() async throws(WebSocketError) -> WebSocketMessage? {
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
            if let error = refusal(state) {
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
            if let error = refusal(state) {
                pending.finish(.failure(error))
                return state.lastID
            }
            state.pings.append((state.lastID, pending))
            append(&state, .ping, Self.payload(state.lastID))
            return state.lastID
        }
        let cancelled = WebSocketError(.cancelled, "The task that waits for a sign of life was cancelled.")
        try await pending.value(ifCancelled: .failure(cancelled)) {
            self.state.withLock { $0.pings.removeAll { $0.id == id } }
        }.get()
    }

    func close(_ close: WebSocketClose) async -> WebSocketClose? {
        let pending = Pending<WebSocketClose?>()
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
            // The peer's answer must be heard, whatever its messages that nobody takes any more.
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

    /// Why nothing can be sent; nil where it can.
    private func refusal(_ state: State) -> WebSocketError? {
        if state.phase == .open, !state.hasSentClose { return state.outputFailure }
        if case .failure(let error)? = state.inbox.end { return error }
        return WebSocketError(.closed, "The WebSocket is closed.")
    }

    private static func payload(_ id: UInt64) -> [UInt8] {
        (0..<8).map { UInt8(truncatingIfNeeded: id >> (UInt64($0) * 8)) }
    }

    // MARK: Output

    /// Appends a control frame and lets it leave.
    func append(_ state: inout State, _ opcode: WebSocketEncoder.Opcode, _ payload: [UInt8]) {
        WebSocketEncoder.append(opcode, payload, mask: random.next(), to: &state.output)
        flush(&state)
    }

    /// Appends the close frame, behind which nothing is sent.
    func appendClose(_ state: inout State, _ code: WebSocketCloseCode?, _ reason: String) {
        state.hasSentClose = true
        let payload = WebSocketEncoder.closePayload(code, reason)
        WebSocketEncoder.append(.close, payload, mask: random.next(), to: &state.output)
        let error = WebSocketError(.closed, "The WebSocket is being closed.")
        for sender in state.senders { sender.pending.finish(.failure(error)) }
        state.senders = []
    }

    /// Writes what the network takes; the loop does the rest.
    func flush(_ state: inout State) {
        guard state.phase != .connecting, state.phase != .over, let descriptor = state.descriptor else { return }
        if state.outputFailure != nil {
            state.output = []
            state.outputStart = 0
        }
        while state.pendingOutput > 0 {
            switch SocketCall.send(descriptor, state.output, from: state.outputStart) {
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
            case .failed(let reason):
                let error = WebSocketError(.interrupted, "The connection broke: \(reason).")
                state.outputFailure = error
                state.output = []
                state.outputStart = 0
                for sender in state.senders { sender.pending.finish(.failure(error)) }
                state.senders = []
                // The end comes with what is read: there the peer may have said why it goes.
                loop.wake()
                return
            }
        }
        if state.phase == .draining, state.closing != nil { SocketCall.finishSending(descriptor) }
    }

    /// Takes frames of waiting senders as far as there is room.
    private func admitSenders(_ state: inout State) {
        while let next = state.senders.first {
            let pending = state.pendingOutput
            guard pending == 0 || pending + next.frame.count <= configuration.outputBytesMaximum else { return }
            state.senders.removeFirst()
            // One that was cancelled just now is told that nothing was sent, so nothing is.
            guard next.pending.finish(.success(())) else { continue }
            state.output += next.frame
        }
    }

    /// Reads on when there is room again.
    private func resumeReading(_ state: inout State) {
        guard state.isReadingPaused, state.failure == nil, state.inbox.byteCount * 2 <= configuration.inboxBytesMaximum
        else { return }
        state.isReadingPaused = false
        state.heartbeat.resume(at: clock.uptime)
        loop.wake()
    }

    /// Has the loop look again.
    func wakeLoop() { loop.wake() }
}
