import Larder
import LarderCoding
import LarderTime

/// What is followed until Ctrl-C: drawn in place on a terminal, told line by line elsewhere.
struct LiveView<Value: Sendable & Equatable> {
    private enum Input: Sendable {
        case snapshot(Snapshot<Value>)
        case state(LiveSync.State)
        case outbox
        case tick
        case end
    }

    /// What a frame is made of.
    struct Moment {
        var snapshot: Snapshot<Value>
        var state: LiveSync.State
        var now: WallTime
    }

    let kitchen: Kitchen
    /// The whole picture, for a terminal.
    var draw: (Moment) async -> [String]
    /// What has changed since the last snapshot, for everything else; old is nil at first.
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
        let terminal = kitchen.terminal
        if terminal.isTerminal { terminal.write("\u{1b}[?1049h\u{1b}[?25l") }
        // The last picture stays on the screen when the view has gone.
        var last: [String] = []
        defer {
            if terminal.isTerminal {
                terminal.write("\u{1b}[?1049l\u{1b}[?25h")
                for line in last { terminal.line(line) }
            }
        }
        var shown: Snapshot<Value>?
        var told: Badge?
        var state = kitchen.client.live.state
        for await input in inputs {
            switch input {
            case .end: return
            case .tick, .outbox: break
            case .state(let new):
                if case .live = new, new != state { kitchen.cache.networkReturned() }
                if !terminal.isTerminal, new != state { tell(new) }
                state = new
            case .snapshot(let new):
                if !terminal.isTerminal {
                    for line in try await changes(shown, new) { terminal.line(line) }
                    let badge = Badge(new)
                    if !terminal.isJSON, badge.freshness != told?.freshness || badge.failure != told?.failure {
                        terminal.line("— \(badge.text(at: kitchen.now))")
                    }
                    told = badge
                }
                shown = new
            }
            guard terminal.isTerminal, let shown else { continue }
            last = await draw(Moment(snapshot: shown, state: state, now: kitchen.now))
            let frame = last.prefix(terminal.size.rows - 1).map { $0 + "\u{1b}[K" }.joined(separator: "\r\n")
            terminal.write("\u{1b}[H" + frame + "\u{1b}[J")
        }
    }

    private func tell(_ state: LiveSync.State) {
        if kitchen.terminal.isJSON {
            kitchen.terminal.json(.members([("live", .string(LiveWords.text(state)))]))
        } else {
            kitchen.terminal.line("— \(LiveWords.text(state))")
        }
    }

    private func feed(
        _ continuation: AsyncStream<Input>.Continuation,
        _ resource: Resource<Value>
    ) -> [Task<Void, Never>] {
        let (cache, live) = (kitchen.cache, kitchen.client.live)
        let policy = kitchen.arguments.policy?.value
        var tasks = [
            Task {
                for await snapshot in cache.snapshots(resource, policy) { continuation.yield(.snapshot(snapshot)) }
            },
            Task { for await state in live.states { continuation.yield(.state(state)) } },
            Task { for await _ in cache.outbox.statuses { continuation.yield(.outbox) } },
            Ticks.every(.seconds(1)) { continuation.yield(.tick) },
        ]
        if let seconds = kitchen.arguments.seconds {
            tasks.append(Ticks.once(after: .seconds(seconds)) { continuation.yield(.end) })
        }
        return tasks
    }
}

/// Points in time that come by themselves.
enum Ticks {
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

/// How following stands, in words.
enum LiveWords {
    static func text(_ state: LiveSync.State) -> String {
        switch state {
        case .idle: "not following"
        case .offline: "waiting for a network"
        case .connecting(let kind): "connecting by \(name(kind))…"
        case .live(let kind): "live by \(name(kind))"
        case .waiting(let failures): "no connection (\(failures) attempt\(failures == 1 ? "" : "s")); it is tried again"
        }
    }

    private static func name(_ kind: LiveKind) -> String {
        switch kind {
        case .webSocket: "WebSocket"
        case .eventStream: "server-sent events"
        case .longPoll: "long poll"
        }
    }
}
