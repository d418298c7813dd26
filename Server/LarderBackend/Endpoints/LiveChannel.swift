import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime
import Synchronization

/// A live channel over a WebSocket or an event stream: the reader in the hub, the end of the session, and the filter of a fault.
///
/// A WebSocket client may only send `{"type":"ping"}`, which is answered with `{"type":"pong"}`, because browsers cannot send protocol
/// pings. Any other message closes the channel with 1008. When the session ends the close code is 4401; an event stream just ends, and the
/// client's reconnection is answered with 401.
final class LiveChannel: ChannelHandler, LiveOutput {
    private struct State {
        var handle: ChannelHandle?
        var reader: UInt64?
        var timer: TimerID?
    }

    private let world: World
    private let opening: LiveEndpoints.Opening
    private let owner: SessionRow?
    private let filter: (any LiveFilter)?
    private let isStream: Bool
    /// The path by which the reader addresses the world; empty for none.
    private let basePath: String
    private let state = Mutex(State())

    /// The close code for an ended session.
    private static let sessionEndedCode: UInt16 = 4401
    /// The reconnection delay that clients of event streams are told.
    private static let retryMilliseconds: Int64 = 2_000

    /// - Parameter isStream: whether the channel is a stream of events and not a WebSocket.
    init(_ opening: LiveEndpoints.Opening, _ call: Call, filter: (any LiveFilter)?, isStream: Bool) {
        self.opening = opening
        self.filter = filter
        self.isStream = isStream
        world = call.world
        owner = call.session
        basePath = call.owner.prefixLength > 0 && !world.hasCollections ? world.basePath : ""
    }

    var session: Int64? { owner?.row }
    var kind: String { isStream ? "EventStream" : "WebSocket" }
    var ownsHeartbeat: Bool { !world.clock.followsSystem }
    private var handle: ChannelHandle? { state.withLock { $0.handle } }

    // MARK: Opening and closing

    /// Sends the missed changes and begins to deliver new ones, until the session expires.
    func opened(_ handle: ChannelHandle) {
        state.withLock { $0.handle = handle }
        do {
            let reader = try LiveEndpoints.begin(opening, world, self) { hello, token in
                guard isStream else { return handle.send(text: hello) }
                let retry = Array("retry: \(Self.retryMilliseconds)\n".utf8)
                handle.send(retry + LiveEvent.serverSentEvent(named: "hello", id: token, data: hello))
            }
            state.withLock { $0.reader = reader }
            // It may have ended before the channel joined the hub.
            if let owner, try !world.read({ try $0.sessions.has(owner.row) }) { receive(.sessionEnded) }
        } catch { return close(WebSocketCloseCode.internalError.rawValue, error.title) }
        if let expires = owner?.accessExpires {
            let timer = world.clock.schedule(after: expires - world.clock.now) { [self] in receive(.sessionEnded) }
            state.withLock { $0.timer = timer }
        }
        world.startHeartbeat()
        filter?.opened(self)
    }

    private func close(_ code: UInt16, _ reason: String) { handle?.close(code: code, reason: reason) }

    func end(code: UInt16?) {
        if let code { close(code, "") } else { handle?.abort() }
    }

    func closed(_ ending: WebSocketEnding) {
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
        case .event(let event):
            let event = event.addressing(basePath)
            if let filter { filter.pass(event, to: self) } else { emit(event) }
        case .sessionEnded: close(Self.sessionEndedCode, "the session has ended")
        case .stateReplaced, .worldEnds: close(WebSocketCloseCode.goingAway.rawValue, "this state has ended")
        case .heartbeat: handle?.ping()
        }
    }

    func emit(_ event: LiveEvent) { handle?.send(isStream ? event.serverSentEvent : event.frame) }

    // MARK: Messages of the client

    func received(text: [UInt8]) {
        filter?.received(text.count, from: self)
        let isPing: Bool
        do { isPing = try JSONParser.parse(text)["type"] == .string("ping") } catch { isPing = false }
        if isPing {
            handle?.send(text: Array("{\"type\":\"pong\"}".utf8))
        } else {
            close(WebSocketCloseCode.policyViolation.rawValue, "only {\"type\":\"ping\"} may be sent")
        }
    }

    func received(binary: [UInt8]) {
        close(WebSocketCloseCode.unsupportedData.rawValue, "the channel accepts text only")
    }
}
