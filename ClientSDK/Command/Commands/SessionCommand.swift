import Larder
import LarderArguments
import LarderCoding

/// `larder login` and `larder logout`.
struct SessionCommand {
    let kitchen: Kitchen
    private var terminal: Terminal { kitchen.terminal }

    init(_ kitchen: Kitchen) { self.kitchen = kitchen }

    func login() async throws {
        switch kitchen.connection {
        case .open: break
        case .offline: throw UsageError(message: "login asks the server; leave out --offline")
        case .unreachable(let error): throw error
        }
        try kitchen.state.remember(kitchen.user, on: kitchen.arguments.server)
        let id = kitchen.client.session.userID
        if terminal.isJSON {
            return terminal.json(.members([("user", .string(kitchen.user)), ("id", id.map { .string($0) })]))
        }
        terminal.line(
            terminal.paint("✓ ", .green) + "\(kitchen.user) (\(id ?? "")) is signed in on \(kitchen.arguments.server)"
        )
    }

    func logout(isForced: Bool) async throws {
        await kitchen.drain()
        let left = kitchen.cache.outbox.entries.count
        guard left == 0 || isForced else {
            throw Failure(
                "\(left) change\(left == 1 ? " was" : "s were") never sent and would be lost. Send with larder outbox send, or "
                    + "add --force."
            )
        }
        let pictures = try DiskStore(DiskStore.Configuration(directory: kitchen.picturesDirectory))
        try pictures.erase()
        try await kitchen.client.signOut()
        // What was recorded of earlier runs, and of this one so far.
        try RunHistory.erase(directory: kitchen.runsDirectory)
        if kitchen.state.user(on: kitchen.arguments.server) == kitchen.user {
            try kitchen.state.remember(nil, on: kitchen.arguments.server)
        }
        if terminal.isJSON { return terminal.json(.members([("signedOut", .string(kitchen.user))])) }
        terminal.line(
            terminal.paint("✓ ", .green) + "\(kitchen.user) is signed out; nothing of the account is left here"
        )
    }
}
