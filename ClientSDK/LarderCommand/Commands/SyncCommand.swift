import Larder
import LarderCoding
import LarderDemo

/// `larder sync`: applies the change feed to the stores.
struct SyncCommand {
    let context: CommandContext
    private var sync: ChangeSync { context.client.sync }
    private var terminal: Terminal { context.terminal }

    func run() async throws {
        let before = sync.token
        switch context.connection {
        case .open: break
        case .offline:
            guard let before else { throw Failure("There is no change token yet. Run once without --offline.") }
            let text = "applied up to token \(Self.short(before)); not checked for newer changes (--offline)"
            return terminal.result([("token", .string(before))], text)
        case .unreachable(let error): throw error
        }
        guard !context.arguments.isLive else { return await follow() }
        let start = context.uptime.uptime
        let count = try await sync.catchUp()
        let status = sync.status
        guard !terminal.isJSON else {
            return terminal.json(
                .members([
                    ("applied", .integer(Int64(count))), ("resyncs", .integer(Int64(status.resyncs))),
                    ("token", sync.token.map { .string($0) }), ("isFirst", .bool(before == nil)),
                ])
            )
        }
        let time = TimeText.text(context.uptime.uptime - start)
        if before == nil {
            terminal.line("following changes from token \(Self.short(sync.token)) (\(time))")
        } else if status.resyncs > 0 {
            terminal.line(
                terminal.paint("the change token has expired; ", .yellow)
                    + "all stored data is stale until it is fetched again (\(time))"
            )
        } else {
            terminal.line(
                terminal.paint("✓ ", .green)
                    + "\(count) change\(count == 1 ? "" : "s") applied in \(time), up to token "
                    + Self.short(sync.token)
            )
        }
    }

    /// Prints each step until Ctrl-C.
    private func follow() async {
        let (sync, live, isJSON) = (sync, context.client.live, terminal.isJSON)
        let lines = Follower<String>(seconds: context.arguments.seconds) { continuation in
            [
                Task {
                    for await state in live.states { continuation.yield(LiveStateText.line(state, isJSON: isJSON)) }
                },
                Task {
                    var last: ChangeSync.Status?
                    for await status in sync.statuses where status != last {
                        if let line = Self.line(status, since: last, isJSON) { continuation.yield(line) }
                        last = status
                    }
                },
            ]
        }
        for await line in lines.stream { terminal.line(line) }
        withExtendedLifetime(lines) {}
    }

    private static func line(_ status: ChangeSync.Status, since last: ChangeSync.Status?, _ isJSON: Bool) -> String? {
        if isJSON {
            return JSONValue.members([
                ("applied", .integer(Int64(status.applied))), ("resyncs", .integer(Int64(status.resyncs))),
                ("isCaughtUp", .bool(status.isCaughtUp)), ("failure", status.failure.map { .string($0) }),
            ]).line
        }
        let new = status.applied - (last?.applied ?? 0)
        if new > 0 { return "\(new) change\(new == 1 ? "" : "s") applied (\(status.applied) in total)" }
        if status.resyncs > last?.resyncs ?? 0 { return "the change token has expired: all stored data is stale" }
        if status.isCaughtUp, last?.isCaughtUp != true { return "up to date" }
        return status.failure.flatMap { $0 == last?.failure ? nil : $0 }
    }

    /// The first characters of a token.
    private static func short(_ token: String?) -> String { token.map { TextWidth.fit($0, 24) } ?? "no token" }
}
