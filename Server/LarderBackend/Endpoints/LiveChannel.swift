import LarderCoding
import LarderEngine
import LarderHTTP
import LarderHTTPWire
import LarderTime
import Synchronization

/// A live channel over a WebSocket or an event stream: the reader in the hub, the end of the session, and the filter of a fault.
///
/// A WebSocket client may only send `{"type":"ping"}`, which is answered with `{"type":"pong"}`, because browsers cannot send protocol
/// pings. Any other message closes the channel with 1008. When the session ends the close code is 4401; an event stream just ends, and the
/// client's reconnection is answered with 401.
final class LiveChannel: WebSocketHandler, EventStreamHandler, LiveOutput {
    private enum Handle {
        case webSocket(WebSocketHandle)
        case eventStream(EventStreamHandle)
    }

    private struct State {
        var handle: Handle?
        var reader: UInt64?
        var timer: TimerID?
    }

    private let world: World
    private let opening: LiveEndpoints.Opening
    private let owner: SessionRow?
    private let filter: (any LiveFilter)?
    private let state = Mutex(State())

    /// The close code for an ended session.
    private static let sessionEndedCode: UInt16 = 4401
    /// The reconnection delay that clients of event streams are told.
    private static let retryMilliseconds: Int64 = 2_000

    init(_ opening: LiveEndpoints.Opening, _ call: Call, filter: (any LiveFilter)?) {
        self.opening = opening
        self.filter = filter
        world = call.world
        owner = call.session
    }

    var session: Int64? { owner?.row }
    var ownsHeartbeat: Bool { !world.clock.followsSystem }
    private var handle: Handle? { state.withLock { $0.handle } }

    // MARK: Opening and closing

    func opened(_ handle: WebSocketHandle) {
        opened(.webSocket(handle), "WebSocket") { hello, _ in handle.send(text: hello) }
    }

    func opened(_ handle: EventStreamHandle) {
        opened(.eventStream(handle), "EventStream") { hello, token in
            let retry = Array("retry: \(Self.retryMilliseconds)\n".utf8)
            handle.send(retry + LiveEvent.serverSentEvent(named: "hello", id: token, data: hello))
        }
    }

    /// Sends the missed changes and begins to deliver new ones, until the session expires.
    ///
    /// - Parameter name: the name of the protocol in the journal.
    private func opened(_ handle: Handle, _ name: String, hello: (_ json: [UInt8], _ token: String) -> Void) {
        state.withLock { $0.handle = handle }
        do {
            let reader = try LiveEndpoints.begin(opening, world, self, hello: hello)
            state.withLock { $0.reader = reader }
        } catch { return close(WebSocketCloseCode.internalError.rawValue, error.title) }
        if let expires = owner?.accessExpires {
            let timer = world.clock.schedule(after: expires - world.clock.now) { [self] in receive(.sessionEnded) }
            state.withLock { $0.timer = timer }
        }
        world.startHeartbeat()
        filter?.opened(self, channel: name)
    }

    private func close(_ code: UInt16, _ reason: String) {
        switch handle {
        case .webSocket(let handle): handle.close(code: code, reason: reason)
        case .eventStream(let handle): handle.finish()
        case nil: break
        }
    }

    func end(code: UInt16?) {
        if let code { return close(code, "") }
        switch handle {
        case .webSocket(let handle): handle.abort()
        case .eventStream(let handle): handle.abort()
        case nil: break
        }
    }

    func closed(_ ending: WebSocketEnding) { closed() }

    func closed() {
        let last = state.withLock { state in
            defer { state = State() }
            return state
        }
        if let reader = last.reader { world.removeReader(reader) }
        if let timer = last.timer { world.clock.cancel(timer) }
        filter?.closed()
    }

    // MARK: Sending

    func receive(_ signal: LiveSignal) {
        switch signal {
        case .event(let event): if let filter { filter.pass(event, to: self) } else { emit(event) }
        case .sessionEnded: close(Self.sessionEndedCode, "the session has ended")
        case .stateReplaced: close(WebSocketCloseCode.goingAway.rawValue, "the state was replaced")
        // The engine closes all channels itself.
        case .serverStops: break
        case .heartbeat:
            switch handle {
            case .webSocket(let handle): handle.ping()
            case .eventStream(let handle): handle.ping()
            case nil: break
            }
        }
    }

    func emit(_ event: LiveEvent) {
        switch handle {
        case .webSocket(let handle): handle.send(frame: event.frame)
        case .eventStream(let handle): handle.send(event.serverSentEvent)
        case nil: break
        }
    }

    // MARK: Messages of the client

    func received(text: [UInt8]) {
        filter?.received(text.count)
        guard case .webSocket(let handle) = handle else { return }
        if let message = try? JSONParser.parse(text), message["type"] == .string("ping") {
            handle.send(text: Array("{\"type\":\"pong\"}".utf8))
        } else {
            close(WebSocketCloseCode.policyViolation.rawValue, "only {\"type\":\"ping\"} may be sent")
        }
    }

    func received(binary: [UInt8]) {
        close(WebSocketCloseCode.unsupportedData.rawValue, "the channel accepts text only")
    }
}
