import Dispatch
import Glibc
import Larder
import LarderCoding
import LarderDemo

/// Follows a resource until Ctrl-C, and prints its changes line by line.
struct LiveView<Value: Sendable & Equatable> {
    private enum Input: Sendable {
        case snapshot(Snapshot<Value>)
        case state(LiveSync.State)
    }

    let context: CommandContext
    /// The lines that describe a change; `old` is nil at first.
    var changes: (_ old: Snapshot<Value>?, _ new: Snapshot<Value>) async throws -> [String]

    /// Follows a resource.
    func run(_ resource: Resource<Value>) async throws {
        context.noteConnection()
        let (cache, live) = (context.cache, context.client.live)
        let policy = context.askedPolicy
        let inputs = Follower<Input>(seconds: context.arguments.seconds) { continuation in
            [
                Task {
                    for await snapshot in cache.snapshots(resource, policy) { continuation.yield(.snapshot(snapshot)) }
                }, Task { for await state in live.states { continuation.yield(.state(state)) } },
            ]
        }
        defer { withExtendedLifetime(inputs) {} }
        let terminal = context.terminal
        var shown: Snapshot<Value>?
        var state = context.client.live.state
        for await input in inputs.stream {
            switch input {
            case .state(let new):
                if case .live = new, new != state { context.cache.networkReturned() }
                if new != state { terminal.line(LiveStateText.line(new, isJSON: terminal.isJSON)) }
                state = new
            case .snapshot(let new):
                for line in try await changes(shown, new) { terminal.line(line) }
                let isSame =
                    new.freshness == shown?.freshness && new.refreshError?.code == shown?.refreshError?.code
                if !terminal.isJSON, !isSame { terminal.line("— \(new.badge(at: context.now))") }
                shown = new
            }
        }
    }
}

/// What tasks yield until Ctrl-C, or for `--seconds`. The tasks end with it.
final class Follower<Input: Sendable> {
    let stream: AsyncStream<Input>
    private let tasks: [Task<Void, Never>]
    private let interrupt: Interrupt

    init(seconds: Int?, _ start: (AsyncStream<Input>.Continuation) -> [Task<Void, Never>]) {
        let (stream, continuation) = AsyncStream.makeStream(of: Input.self, bufferingPolicy: .bufferingNewest(256))
        self.stream = stream
        let limit = seconds.map { seconds in
            Task {
                let clock = SystemMonotonicClock()
                // It is cancelled when the view has ended before.
                do { try await clock.sleep(until: clock.uptime + .seconds(seconds)) } catch { return }
                continuation.finish()
            }
        }
        tasks = start(continuation) + [limit].compactMap(\.self)
        interrupt = Interrupt { continuation.finish() }
    }

    deinit { for task in tasks { task.cancel() } }
}

/// Formats the state of live updates.
enum LiveStateText {
    /// A change of the state as a line of a live view.
    static func line(_ state: LiveSync.State, isJSON: Bool) -> String {
        isJSON ? JSONValue.members(["live": .string(text(state))]).line : "— \(text(state))"
    }

    static func text(_ state: LiveSync.State) -> String {
        switch state {
        case .idle: "not following"
        case .offline: "waiting for a network"
        case .connecting(let kind): "connecting by \(name(kind))"
        case .live(let kind): "live by \(name(kind))"
        case .waiting(let failures): "no connection (\(failures) attempt\(failures == 1 ? "" : "s")); retrying"
        }
    }

    private static func name(_ kind: LiveSync.Kind) -> String {
        switch kind {
        case .webSocket: "WebSocket"
        case .eventStream: "server-sent events"
        case .longPoll: "long poll"
        }
    }
}

/// Handles SIGINT and SIGTERM while a view follows changes, so that the command ends normally.
final class Interrupt {
    private let sources: [any DispatchSourceSignal]

    /// Calls `body` for each signal until it is released.
    init(_ body: @escaping @Sendable () -> Void) {
        sources = [SIGINT, SIGTERM].map { number in
            // The default action would end the process before the handler runs.
            _ = signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number)
            source.setEventHandler(handler: body)
            source.resume()
            return source
        }
    }

    deinit {
        for source in sources { source.cancel() }
        for number in [SIGINT, SIGTERM] { _ = signal(number, SIG_DFL) }
    }
}
