import Larder
import LarderCoding
import LarderTime

/// `larder sync`: reads what has changed elsewhere into the stores.
struct SyncCommand {
    let kitchen: Kitchen
    private var sync: ChangeSync { kitchen.client.sync }
    private var terminal: Terminal { kitchen.terminal }

    init(_ kitchen: Kitchen) { self.kitchen = kitchen }

    func run() async throws {
        let before = sync.token
        switch kitchen.connection {
        case .open: break
        case .offline:
            guard let before else { throw Failure("Nothing was ever synchronised here. Ask once, without --offline.") }
            if terminal.isJSON { return terminal.json(.members([("token", .string(before))])) }
            return terminal.line("stored up to \(Self.short(before)); nobody was asked what came after")
        case .unreachable(let error): throw error
        }
        guard !kitchen.arguments.isLive else { return await follow() }
        let start = kitchen.uptime.uptime
        let count = try await sync.catchUp()
        kitchen.recorder.telemetry.record(.sync(feature: "changes", applied: count, remaining: 0))
        let status = sync.status
        guard !terminal.isJSON else {
            return terminal.json(
                .members([
                    ("applied", .integer(Int64(count))), ("resyncs", .integer(Int64(status.resyncs))),
                    ("token", sync.token.map { .string($0) }), ("isFirst", .bool(before == nil)),
                ])
            )
        }
        let time = Ages.text(kitchen.uptime.uptime - start)
        if before == nil {
            terminal.line("following changes from now on: \(Self.short(sync.token)) (\(time))")
        } else if status.resyncs > 0 {
            terminal.line(
                terminal.paint("the server could not tell any more what changed; ", .yellow)
                    + "everything is stale until it is fetched again, and shown until then (\(time))"
            )
        } else {
            terminal.line(
                terminal.paint("✓ ", .green) + "\(count) change\(count == 1 ? "" : "s") applied in \(time), up to "
                    + Self.short(sync.token)
            )
        }
    }

    /// Tells of each step until Ctrl-C.
    private func follow() async {
        let (lines, continuation) = AsyncStream.makeStream(of: String?.self, bufferingPolicy: .bufferingNewest(256))
        let (sync, live, isJSON) = (sync, kitchen.client.live, terminal.isJSON)
        var tasks = [
            Task { for await state in live.states { continuation.yield(Self.line(state, isJSON)) } },
            Task {
                var last: ChangeSync.Status?
                for await status in sync.statuses where status != last {
                    if let line = Self.line(status, since: last, isJSON) { continuation.yield(line) }
                    last = status
                }
            },
        ]
        if let seconds = kitchen.arguments.seconds {
            tasks.append(Ticks.once(after: .seconds(seconds)) { continuation.yield(nil) })
        }
        let interrupt = Interrupt { continuation.yield(nil) }
        for await line in lines {
            guard let line else { break }
            terminal.line(line)
        }
        for task in tasks { task.cancel() }
        withExtendedLifetime(interrupt) {}
    }

    private static func line(_ state: LiveSync.State, _ isJSON: Bool) -> String {
        isJSON ? json([("live", .string(LiveWords.text(state)))]) : "— \(LiveWords.text(state))"
    }

    private static func line(_ status: ChangeSync.Status, since last: ChangeSync.Status?, _ isJSON: Bool) -> String? {
        if isJSON {
            return json([
                ("applied", .integer(Int64(status.applied))), ("resyncs", .integer(Int64(status.resyncs))),
                ("isCaughtUp", .bool(status.isCaughtUp)), ("failure", status.failure.map { .string($0) }),
            ])
        }
        let new = status.applied - (last?.applied ?? 0)
        if new > 0 { return "\(new) change\(new == 1 ? "" : "s") applied (\(status.applied) in all)" }
        if status.resyncs > last?.resyncs ?? 0 { return "everything is stale: the server could not tell what changed" }
        if status.isCaughtUp, last?.isCaughtUp != true { return "up to date" }
        return status.failure.flatMap { $0 == last?.failure ? nil : TextWidth.clean($0) }
    }

    private static func json(_ members: [(String, JSONValue?)]) -> String {
        var writer = JSONWriter()
        writer.value(.members(members))
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    /// A token says nothing to people: its beginning tells it from others.
    private static func short(_ token: String?) -> String { token.map { TextWidth.fit($0, 24) } ?? "no token" }
}
