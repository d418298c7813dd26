import LarderEngine
import LarderHTTP
import LarderTime
import Synchronization

/// What the live channels of both protocols have in common: the reader in the hub, the end of the session, and the filter of a fault.
final class LiveChannel: Sendable {
    private struct State {
        var reader: UInt64?
        var timer: TimerID?
    }

    let world: World
    let session: SessionRow?
    let filter: (any LiveFilter)?
    private let opening: LiveEndpoints.Opening
    private let state = Mutex(State())

    init(_ opening: LiveEndpoints.Opening, _ call: Call, filter: (any LiveFilter)?) {
        self.opening = opening
        self.filter = filter
        world = call.world
        session = call.session
    }

    /// Sends the missed changes and begins to deliver new ones, until the session expires.
    ///
    /// - Parameter name: the name of the protocol in the journal.
    func begin(
        _ output: some LiveOutput,
        _ name: String,
        hello: (_ json: [UInt8], _ token: String) -> Void
    ) throws(Problem) {
        let reader = try LiveEndpoints.begin(opening, world, output, hello: hello)
        state.withLock { $0.reader = reader }
        if let expires = session?.accessExpires {
            let timer = world.clock.schedule(after: expires - world.clock.now) { output.sessionEnded() }
            state.withLock { $0.timer = timer }
        }
        world.startHeartbeat()
        filter?.opened(output, channel: name)
    }

    func send(_ event: LiveEvent, to output: some LiveOutput) {
        if let filter { filter.pass(event, to: output) } else { output.emit(event) }
    }

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
