import LarderCoding
import LarderEngine
import LarderHTTP
import LarderHTTPWire
import LarderTime
import Synchronization

/// The live channel over a WebSocket.
///
/// A client may only send `{"type":"ping"}`, which is answered with `{"type":"pong"}`, because browsers cannot send protocol
/// pings. Any other message closes the channel with 1008. When the session ends the close code is 4401.
final class LiveWebSocket: WebSocketHandler, LiveOutput {
    private struct State {
        var handle: WebSocketHandle?
        var reader: UInt64?
        var timer: TimerID?
    }

    let session: Int64?
    private let expires: WallTime?
    private let opening: LiveEndpoints.Opening
    private let world: World
    private let filter: (any LiveFilter)?
    private let state = Mutex(State())

    /// The close code for an ended session.
    static let sessionEndedCode: UInt16 = 4401

    init(_ opening: LiveEndpoints.Opening, world: World, session: SessionRow?, filter: (any LiveFilter)?) {
        self.opening = opening
        self.filter = filter
        self.world = world
        self.session = session?.row
        expires = session?.accessExpires
    }

    func opened(_ handle: WebSocketHandle) {
        state.withLock { $0.handle = handle }
        do {
            let reader = try LiveEndpoints.begin(opening, world, self) { hello, _ in handle.send(text: hello) }
            state.withLock { $0.reader = reader }
        } catch {
            handle.close(code: WebSocketCloseCode.internalError.rawValue, reason: error.title)
            return
        }
        if let expires {
            let timer = world.clock.schedule(after: expires - world.clock.now) { [self] in sessionEnded() }
            state.withLock { $0.timer = timer }
        }
        world.startHeartbeat()
        filter?.opened(self, channel: "WebSocket")
    }

    var listener: LiveListener? {
        guard filter?.isPlain ?? true, let handle = state.withLock({ $0.handle }) else { return nil }
        return LiveListener(handle: handle, filter: filter)
    }

    func send(_ event: LiveEvent) {
        if let filter { filter.pass(event, to: self) } else { emit(event) }
    }

    func emit(_ event: LiveEvent) { state.withLock { $0.handle }?.send(frame: event.frame) }

    func end(code: UInt16?) {
        let handle = state.withLock { $0.handle }
        if let code { handle?.close(code: code, reason: "") } else { handle?.abort() }
    }

    var ownsHeartbeat: Bool { !world.clock.followsSystem }

    func heartbeat() { state.withLock { $0.handle }?.ping() }

    func received(text: [UInt8]) {
        filter?.received(text.count)
        let isPing =
            if case .object(let object)? = try? JSONParser.parse(text), object["type"] == .string("ping") { true } else
            {
                false
            }
        guard let handle = state.withLock({ $0.handle }) else { return }
        if isPing {
            handle.send(text: Array("{\"type\":\"pong\"}".utf8))
        } else {
            handle.close(
                code: WebSocketCloseCode.policyViolation.rawValue,
                reason: "only {\"type\":\"ping\"} may be sent"
            )
        }
    }

    func received(binary: [UInt8]) {
        state.withLock { $0.handle }?.close(
            code: WebSocketCloseCode.unsupportedData.rawValue,
            reason: "the channel accepts text only"
        )
    }

    func sessionEnded() {
        state.withLock { $0.handle }?.close(code: Self.sessionEndedCode, reason: "the session has ended")
    }

    func stateReplaced() {
        state.withLock { $0.handle }?.close(
            code: WebSocketCloseCode.goingAway.rawValue,
            reason: "the state was replaced"
        )
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
}
