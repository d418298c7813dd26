import Foundation
import LarderEvents
import LarderHTTP
import LarderTime
import LarderTransport
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A WebSocket over `URLSessionWebSocketTask` with ordered sends, limits and heartbeats.
final class FoundationWebSocket: WebSocketConnection {
    fileprivate struct State {
        var inbox = WebSocketInbox()
        var opening: Pending<Result<Void, WebSocketError>>?
        var isOpen = false
        var isReceiving = false
        var subprotocol: String?
        var fields = Fields()
        var heartbeat: Heartbeat
        var closing: WebSocketClient.Close?
        var hasSentClose = false
        var closers: [Pending<WebSocketClient.Close?>] = []
        var lastID: UInt64 = 0
        var isOver = false
    }

    private let session: URLSession
    private let task: URLSessionWebSocketTask
    private let core: FoundationWebSocketCore

    init(_ request: URLRequest, _ configuration: WebSocketClient.Configuration, _ clock: any MonotonicClock & Sleeper) {
        core = FoundationWebSocketCore(configuration, clock)
        session = URLSession(configuration: .ephemeral, delegate: core, delegateQueue: nil)
        task = session.webSocketTask(with: request)
        task.maximumMessageSize = max(0, configuration.messageBytesMaximum)
        core.attach(task)
    }

    deinit { cut() }

    func open() async -> Result<Void, WebSocketError> {
        let opening = Pending<Result<Void, WebSocketError>>()
        core.state.withLock { $0.opening = opening }
        task.resume()
        let cancelled = WebSocketError(.cancelled, "The task that connects was cancelled.")
        return await opening.value(ifCancelled: .failure(cancelled)) { self.cut() }
    }

    var subprotocol: String? { core.state.withLock { $0.subprotocol } }
    var fields: Fields { core.state.withLock { $0.fields } }
    var closing: WebSocketClient.Close? { core.state.withLock { $0.closing } }

    func receive() async throws(WebSocketError) -> WebSocketClient.Message? {
        let cancelled = WebSocketError(.cancelled, "The reader was cancelled.")
        if Task.isCancelled { throw cancelled }
        let reader = Pending<WebSocketInbox.Received>()
        let (now, id): (WebSocketInbox.Received?, UInt64) = core.state.withLock { state in
            if let now = state.inbox.take() { return (now, 0) }
            state.lastID += 1
            state.inbox.wait(state.lastID, reader)
            return (nil, state.lastID)
        }
        core.receiveMore()
        if let now { return try now.get() }
        return try await reader.value(ifCancelled: .failure(cancelled)) { [core] in
            core.state.withLock { $0.inbox.forget(id) }
        }.get()
    }

    func send(_ message: WebSocketClient.Message) async throws(WebSocketError) {
        let cancelled = WebSocketError(.cancelled, "The sender was cancelled.")
        if Task.isCancelled { throw cancelled }
        if let rejection = core.rejection { throw rejection }
        let pending = Pending<Result<Void, WebSocketError>>()
        let foreign: URLSessionWebSocketTask.Message =
            switch message {
            case .text(let text): .string(text)
            case .binary(let bytes): .data(Data(bytes))
            }
        task.send(foreign) { error in
            pending.finish(error.map { .failure(FoundationWebSocketCore.broken($0)) } ?? .success(()))
        }
        try await pending.value(ifCancelled: .failure(cancelled)).get()
    }

    func ping() async throws(WebSocketError) {
        if let rejection = core.rejection { throw rejection }
        let pending = Pending<Result<Void, WebSocketError>>()
        task.sendPing { error in
            pending.finish(error.map { .failure(FoundationWebSocketCore.broken($0)) } ?? .success(()))
        }
        let cancelled = WebSocketError(.cancelled, "The task that waits for a pong was cancelled.")
        try await pending.value(ifCancelled: .failure(cancelled)).get()
    }

    func close(_ close: WebSocketClient.Close) async -> WebSocketClient.Close? {
        let pending = Pending<WebSocketClient.Close?>()
        let says = core.state.withLock { state in
            guard !state.isOver else {
                pending.finish(state.closing)
                return false
            }
            state.closers.append(pending)
            defer { state.hasSentClose = true }
            return !state.hasSentClose
        }
        if says {
            let code = close.code.flatMap { URLSessionWebSocketTask.CloseCode(rawValue: Int($0)) }
            task.cancel(with: code ?? .normalClosure, reason: Data(close.reason.utf8.prefix(123)))
        }
        let answer = await until(core.clock.uptime + core.configuration.closeTimeout, by: core.clock) {
            await pending.value(ifCancelled: nil)
        }
        session.finishTasksAndInvalidate()
        return answer ?? nil
    }

    func cut() {
        core.end(.failure(WebSocketError(.cancelled, "The WebSocket was closed without a close frame.")))
        session.invalidateAndCancel()
    }
}

/// The delegate state. It does not retain the WebSocket, which ends when its users release it.
private final class FoundationWebSocketCore: NSObject, URLSessionWebSocketDelegate, SocketHandler {
    let configuration: WebSocketClient.Configuration
    let clock: any MonotonicClock & Sleeper
    let state: Mutex<FoundationWebSocket.State>
    private let task = Mutex<URLSessionWebSocketTask?>(nil)
    private let jumps: ManualClock.Registration?

    init(_ configuration: WebSocketClient.Configuration, _ clock: any MonotonicClock & Sleeper) {
        self.configuration = configuration
        self.clock = clock
        jumps = clock.onJump { SocketLoop.shared.wake() }
        let heartbeat = Heartbeat(
            interval: configuration.pingInterval,
            timeout: configuration.pongTimeout,
            now: clock.uptime
        )
        state = Mutex(FoundationWebSocket.State(heartbeat: heartbeat))
    }

    func attach(_ task: URLSessionWebSocketTask) { self.task.withLock { $0 = task } }

    /// Why sending is impossible; nil if it is possible.
    var rejection: WebSocketError? {
        state.withLock { state in
            if case .failure(let error)? = state.inbox.end { return error }
            return state.isOver || state.hasSentClose ? WebSocketError(.closed, "The WebSocket is closed.") : nil
        }
    }

    static func broken(_ error: any Error) -> WebSocketError {
        let error = URLSessionFailure.error(error, requestHasLeft: false)
        let code: WebSocketError.Code =
            switch error.code {
            case .unreachable, .untrusted: .unreachable
            case .timedOut: .timedOut
            case .cancelled: .closed
            default: .interrupted
            }
        return WebSocketError(code, error.description)
    }

    // MARK: Messages

    /// Requests the next message unless a request is pending or the inbox is full.
    func receiveMore() {
        let asks = state.withLock { state in
            guard state.isOpen, !state.isOver, !state.isReceiving,
                state.inbox.byteCount <= configuration.inboxBytesMaximum
            else { return false }
            state.isReceiving = true
            state.heartbeat.resume(at: clock.uptime)
            return true
        }
        guard asks, let task = task.withLock({ $0 }) else { return }
        task.receive { [weak self] result in self?.received(result) }
    }

    private func received(_ result: Result<URLSessionWebSocketTask.Message, any Error>) {
        switch result {
        case .failure(let error):
            // The task knows the close code before the delegate is called.
            let code = task.withLock { $0?.closeCode.rawValue } ?? 0
            let reason = task.withLock { $0?.closeReason }
            if code > 0 {
                closed(
                    WebSocketClient.Close(
                        code: UInt16(clamping: code),
                        reason: String(decoding: reason ?? Data(), as: UTF8.self)
                    )
                )
            } else {
                end(.failure(Self.broken(error)))
            }
        case .success(let foreign):
            let message: WebSocketClient.Message =
                switch foreign {
                case .string(let text): .text(text)
                case .data(let data): .binary(Array(data))
                @unknown default: .binary([])
                }
            state.withLock { state in
                state.isReceiving = false
                state.heartbeat.heard(at: clock.uptime)
                if !state.hasSentClose { state.inbox.put(message) }
                if state.inbox.byteCount > configuration.inboxBytesMaximum { state.heartbeat.hold() }
            }
            receiveMore()
        }
    }

    func closed(_ close: WebSocketClient.Close) {
        state.withLock { if $0.closing == nil { $0.closing = close } }
        end(.success(nil))
    }

    func end(_ end: WebSocketInbox.Received) {
        state.withLock { state in
            guard !state.isOver else { return }
            state.isOver = true
            if case .failure(let error) = end { state.opening?.finish(.failure(error)) }
            state.opening = nil
            state.inbox.finish(end)
            for closer in state.closers { closer.finish(state.closing) }
            state.closers = []
        }
        task.withLock { task in
            task?.cancel()
            task = nil
        }
        SocketLoop.shared.wake()
    }

    // MARK: Foundation

    func urlSession(
        _ session: URLSession,
        webSocketTask: URLSessionWebSocketTask,
        didOpenWithProtocol subprotocol: String?
    ) {
        // Foundation on Linux calls this for a response of any status.
        if let rejection = Self.rejection(webSocketTask) { return end(.failure(rejection)) }
        let opening: Pending<Result<Void, WebSocketError>>? = state.withLock { state in
            guard !state.isOver else { return nil }
            state.isOpen = true
            state.subprotocol = subprotocol
            if let http = webSocketTask.response as? HTTPURLResponse {
                state.fields = URLSessionExchangeDelegate.fields(of: http)
            }
            state.heartbeat.heard(at: clock.uptime)
            defer { state.opening = nil }
            return state.opening
        }
        // Without the loop a dead peer would not be detected.
        guard SocketLoop.shared.add(self) else {
            let error = WebSocketError(.unreachable, "No file descriptor is left.")
            opening?.finish(.failure(error))
            return end(.failure(error))
        }
        opening?.finish(.success(()))
        receiveMore()
    }

    func urlSession(
        _ session: URLSession,
        webSocketTask: URLSessionWebSocketTask,
        didCloseWith closeCode: URLSessionWebSocketTask.CloseCode,
        reason: Data?
    ) {
        closed(
            WebSocketClient.Close(
                code: closeCode.rawValue > 0 ? UInt16(clamping: closeCode.rawValue) : nil,
                reason: String(decoding: reason ?? Data(), as: UTF8.self)
            )
        )
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        let isOpen = state.withLock { $0.isOpen }
        if !isOpen, let rejection = Self.rejection(task) {
            end(.failure(rejection))
        } else if let error {
            end(.failure(Self.broken(error)))
        } else {
            end(.success(nil))
        }
    }

    /// The response's rejection of the handshake; nil if it is accepted or not there.
    private static func rejection(_ task: URLSessionTask) -> WebSocketError? {
        guard let http = task.response as? HTTPURLResponse, http.statusCode != 101 else { return nil }
        return WebSocketError(
            .rejected,
            "The server answered with \(http.statusCode) instead of a WebSocket.",
            status: Status(code: http.statusCode),
            fields: URLSessionExchangeDelegate.fields(of: http)
        )
    }

    // MARK: Heartbeat

    var interest: SocketInterest? {
        state.withLock { state in
            guard !state.isOver else { return nil }
            return SocketInterest(timeLeft: state.heartbeat.deadline.map { $0 - clock.uptime })
        }
    }

    func ready() {}

    func deadlineReached() {
        switch state.withLock({ $0.heartbeat.beat(at: clock.uptime) }) {
        case .nothing: return
        case .silent: end(.failure(WebSocketError(.silent, "The peer did not react to a ping.")))
        case .ping:
            task.withLock({ $0 })?.sendPing { [weak self] error in
                guard let self, error == nil else { return }
                state.withLock { $0.heartbeat.heard(at: self.clock.uptime) }
            }
        }
    }
}
