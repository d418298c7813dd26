import LarderEngine
import LarderTime
import Synchronization

/// The live channel as Server-Sent Events: `hello`, then `change` events whose `id` is the token for resuming.
final class LiveEventStream: EventStreamHandler, LiveOutput {
    private struct State {
        var handle: EventStreamHandle?
        var reader: UInt64?
        var timer: TimerID?
    }

    let session: Int64?
    private let expires: WallTime?
    private let opening: LiveEndpoints.Opening
    private let world: World
    private let filter: (any LiveFilter)?
    private let state = Mutex(State())

    /// The reconnection delay that clients are told.
    private static let retryMilliseconds: Int64 = 2_000

    init(_ opening: LiveEndpoints.Opening, world: World, session: SessionRow?, filter: (any LiveFilter)?) {
        self.opening = opening
        self.filter = filter
        self.world = world
        self.session = session?.row
        expires = session?.accessExpires
    }

    func opened(_ handle: EventStreamHandle) {
        state.withLock { $0.handle = handle }
        do {
            let reader = try LiveEndpoints.begin(opening, world, self) { hello, token in
                var bytes: [UInt8] = []
                bytes.append("retry: ")
                bytes.append(decimal: Self.retryMilliseconds)
                bytes.append(UInt8(ascii: "\n"))
                bytes.append(contentsOf: LiveEvent.serverSentEvent(named: "hello", id: token, data: hello))
                handle.send(bytes)
            }
            state.withLock { $0.reader = reader }
        } catch {
            handle.finish()
            return
        }
        if let expires {
            let timer = world.clock.schedule(after: expires - world.clock.now) { [self] in sessionEnded() }
            state.withLock { $0.timer = timer }
        }
        world.startHeartbeat()
        filter?.opened(self, channel: "EventStream")
    }

    func send(_ event: LiveEvent) {
        if let filter { filter.pass(event, to: self) } else { emit(event) }
    }

    func emit(_ event: LiveEvent) { state.withLock { $0.handle }?.send(event.serverSentEvent) }

    func end(code: UInt16?) {
        let handle = state.withLock { $0.handle }
        if code != nil { handle?.finish() } else { handle?.abort() }
    }

    var ownsHeartbeat: Bool { !world.clock.followsSystem }

    func heartbeat() { state.withLock { $0.handle }?.ping() }

    /// Ends the stream; the client's reconnection is answered with 401.
    func sessionEnded() { state.withLock { $0.handle }?.finish() }

    func stateReplaced() { state.withLock { $0.handle }?.finish() }

    func closed() {
        let last = state.withLock { state in
            defer { state = State() }
            return state
        }
        if let reader = last.reader { world.removeReader(reader) }
        if let timer = last.timer { world.clock.cancel(timer) }
        filter?.closed()
    }
}
