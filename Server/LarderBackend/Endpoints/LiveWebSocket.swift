import LarderCoding
import LarderEngine
import LarderHTTP
import LarderHTTPWire
import Synchronization

/// The live channel over a WebSocket.
///
/// A client may only send `{"type":"ping"}`, which is answered with `{"type":"pong"}`, because browsers cannot send protocol
/// pings. Any other message closes the channel with 1008. When the session ends the close code is 4401.
final class LiveWebSocket: ChannelHandler, LiveOutput {
    private let channel: LiveChannel
    private let handle = Mutex<ChannelHandle?>(nil)

    /// The close code for an ended session.
    static let sessionEndedCode: UInt16 = 4401

    init(_ channel: LiveChannel) { self.channel = channel }

    var session: Int64? { channel.session?.row }

    func opened(_ handle: ChannelHandle) {
        self.handle.withLock { $0 = handle }
        do { try channel.begin(self, "WebSocket") { hello, _ in handle.send(text: hello) } } catch {
            handle.close(code: WebSocketCloseCode.internalError.rawValue, reason: error.title)
        }
    }

    func send(_ event: LiveEvent) { channel.send(event, to: self) }

    func emit(_ event: LiveEvent) { handle.withLock { $0 }?.send(event.frame) }

    func end(code: UInt16?) {
        let handle = handle.withLock { $0 }
        if let code { handle?.close(code: code, reason: "") } else { handle?.abort() }
    }

    var ownsHeartbeat: Bool { !channel.world.clock.followsSystem }

    func heartbeat() { handle.withLock { $0 }?.ping() }

    func received(text: [UInt8]) {
        channel.filter?.received(text.count)
        let isPing: Bool
        do { isPing = try JSONParser.parse(text)["type"] == .string("ping") } catch { isPing = false }
        guard let handle = handle.withLock({ $0 }) else { return }
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
        handle.withLock { $0 }?.close(
            code: WebSocketCloseCode.unsupportedData.rawValue,
            reason: "the channel accepts text only"
        )
    }

    func sessionEnded() {
        handle.withLock { $0 }?.close(code: Self.sessionEndedCode, reason: "the session has ended")
    }

    func stateReplaced() {
        handle.withLock { $0 }?.close(
            code: WebSocketCloseCode.goingAway.rawValue,
            reason: "the state was replaced"
        )
    }

    func closed(_ ending: WebSocketEnding) {
        handle.withLock { $0 = nil }
        channel.closed()
    }
}
