import Larder
import LarderArguments
import LarderCoding
import LarderDemo

/// `larder login` and `larder logout`.
struct SessionCommand {
    let context: CommandContext
    private var terminal: Terminal { context.terminal }

    func login() async throws {
        switch context.connection {
        case .open: break
        case .offline: throw UsageError(message: "login requires the server; remove --offline")
        case .unreachable(let error): throw error
        }
        try context.state.remember(context.user, on: context.arguments.server)
        let id = context.client.session.userID
        terminal.result(
            [("user", .string(context.user)), ("id", id.map { .string($0) })],
            terminal.paint("✓ ", .green) + "\(context.user) (\(id ?? "")) is signed in on \(context.arguments.server)"
        )
    }

    private static func loss(_ count: Int, _ kind: String, _ remedy: String) -> String {
        count == 0 ? "" : "\(count) \(kind) change\(count == 1 ? "" : "s") would be lost. \(remedy). "
    }

    func logout(isForced: Bool) async throws {
        await context.drain()
        let outbox = context.cache.outbox
        let rejected = outbox.rejected.count
        let unsent = outbox.entries.count - rejected
        guard unsent + rejected == 0 || isForced else {
            throw Failure(
                Self.loss(unsent, "unsent", "Send what is unsent with 'larder outbox send'")
                    + Self.loss(rejected, "rejected", "Decide about what was rejected ('larder outbox')")
                    + "Or add --force."
            )
        }
        try await context.client.signOut()
        // The records of earlier runs, and of this one so far.
        try RunHistory.erase(directory: context.runsDirectory)
        if context.state.user(on: context.arguments.server) == context.user {
            try context.state.remember(nil, on: context.arguments.server)
        }
        terminal.result(
            [("signedOut", .string(context.user))],
            terminal.paint("✓ ", .green) + "\(context.user) is signed out; all data of the account was erased"
        )
    }
}
