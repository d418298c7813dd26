import LarderEngine
import Synchronization

/// The live channel as Server-Sent Events: `hello`, then `change` events whose `id` is the token for resuming.
final class LiveEventStream: ChannelHandler, LiveOutput {
    private let channel: LiveChannel
    private let handle = Mutex<ChannelHandle?>(nil)

    /// The reconnection delay that clients are told.
    private static let retryMilliseconds: Int64 = 2_000

    init(_ channel: LiveChannel) { self.channel = channel }

    var session: Int64? { channel.session?.row }

    func opened(_ handle: ChannelHandle) {
        self.handle.withLock { $0 = handle }
        do {
            try channel.begin(self, "EventStream") { hello, token in
                let retry = Array("retry: \(Self.retryMilliseconds)\n".utf8)
                handle.send(retry + LiveEvent.serverSentEvent(named: "hello", id: token, data: hello))
            }
        } catch { handle.close() }
    }

    func send(_ event: LiveEvent) { channel.send(event, to: self) }

    func emit(_ event: LiveEvent) { handle.withLock { $0 }?.send(event.serverSentEvent) }

    func end(code: UInt16?) {
        let handle = handle.withLock { $0 }
        if code != nil { handle?.close() } else { handle?.abort() }
    }

    var ownsHeartbeat: Bool { !channel.world.clock.followsSystem }

    func heartbeat() { handle.withLock { $0 }?.ping() }

    /// Ends the stream; the client's reconnection is answered with 401.
    func sessionEnded() { handle.withLock { $0 }?.close() }

    func stateReplaced() { handle.withLock { $0 }?.close() }

    func closed(_ ending: WebSocketEnding) {
        handle.withLock { $0 = nil }
        channel.closed()
    }
}
