import Larder
import LarderCoding
import LarderDemo

/// Follows a resource until Ctrl-C: redraws on a terminal, prints changes line by line otherwise.
struct LiveView<Value: Sendable & Equatable> {
    private enum Input: Sendable {
        case snapshot(Snapshot<Value>)
        case state(LiveSync.State)
        case outbox
        case tick
        case end
    }

    /// The input of a frame.
    struct Frame {
        var snapshot: Snapshot<Value>
        var state: LiveSync.State
        var now: WallTime
    }

    let context: CommandContext
    /// The lines of a frame, for a terminal.
    var draw: (Frame) async -> [String]
    /// The lines that describe a change, for other outputs; `old` is nil at first.
    var changes: (_ old: Snapshot<Value>?, _ new: Snapshot<Value>) async throws -> [String]

    /// Follows a resource.
    func run(_ resource: Resource<Value>) async throws {
        let (inputs, continuation) = AsyncStream.makeStream(of: Input.self, bufferingPolicy: .bufferingNewest(256))
        let tasks = feed(continuation, resource)
        let interrupt = Interrupt { continuation.yield(.end) }
        defer {
            for task in tasks { task.cancel() }
            withExtendedLifetime(interrupt) {}
        }
        let terminal = context.terminal
        let screen = Screen(terminal)
        var shown: Snapshot<Value>?
        var printedBadge: Badge?
        var state = context.client.live.state
        for await input in inputs {
            switch input {
            case .end: return
            case .tick, .outbox: break
            case .state(let new):
                if case .live = new, new != state { context.cache.networkReturned() }
                if !terminal.isTerminal, new != state { report(new) }
                state = new
            case .snapshot(let new):
                if !terminal.isTerminal {
                    for line in try await changes(shown, new) { terminal.line(line) }
                    let badge = Badge(new)
                    if !terminal.isJSON,
                        badge.freshness != printedBadge?.freshness || badge.failure != printedBadge?.failure
                    {
                        terminal.line("— \(badge.text(at: context.now))")
                    }
                    printedBadge = badge
                }
                shown = new
            }
            guard terminal.isTerminal, let shown else { continue }
            screen.show(await draw(Frame(snapshot: shown, state: state, now: context.now)))
        }
    }

    private func report(_ state: LiveSync.State) {
        if context.terminal.isJSON {
            context.terminal.json(.members([("live", .string(LiveStateText.text(state)))]))
        } else {
            context.terminal.line("— \(LiveStateText.text(state))")
        }
    }

    private func feed(
        _ continuation: AsyncStream<Input>.Continuation,
        _ resource: Resource<Value>
    ) -> [Task<Void, Never>] {
        let (cache, live) = (context.cache, context.client.live)
        let policy = context.arguments.policy?.value
        var tasks = [
            Task {
                for await snapshot in cache.snapshots(resource, policy) { continuation.yield(.snapshot(snapshot)) }
            },
            Task { for await state in live.states { continuation.yield(.state(state)) } },
            Task { for await _ in cache.outbox.statuses { continuation.yield(.outbox) } },
            Timers.every(.seconds(1)) { continuation.yield(.tick) },
        ]
        if let seconds = context.arguments.seconds {
            tasks.append(Timers.once(after: .seconds(seconds)) { continuation.yield(.end) })
        }
        return tasks
    }
}

/// One-shot and repeating timers.
enum Timers {
    static func every(_ interval: Duration, _ body: @escaping @Sendable () -> Void) -> Task<Void, Never> {
        Task {
            let clock = SystemMonotonicClock()
            while !Task.isCancelled {
                do { try await clock.sleep(until: clock.uptime + interval) } catch { return }
                body()
            }
        }
    }

    static func once(after time: Duration, _ body: @escaping @Sendable () -> Void) -> Task<Void, Never> {
        Task {
            let clock = SystemMonotonicClock()
            do { try await clock.sleep(until: clock.uptime + time) } catch { return }
            body()
        }
    }
}

/// Formats the state of live updates.
enum LiveStateText {
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
