import Foundation
import Larder
import LarderArguments
import LarderDemo

/// The command `larder`: parses the arguments, opens the account's stores and runs the requested command.
@main
enum Main {
    static func main() async {
        let environment = ProcessInfo.processInfo.environment
        do {
            let arguments = try Arguments(Array(CommandLine.arguments.dropFirst()), environment: environment)
            try await run(arguments, Terminal(arguments, environment: environment), environment)
        } catch let error as UsageError {
            Terminal.fail(error.message, code: 2)
        } catch let error as Failure {
            Terminal.fail(error.message, code: 1)
        } catch {
            Terminal.fail("\(error)", code: 1)
        }
    }

    private static func run(
        _ arguments: Arguments,
        _ terminal: Terminal,
        _ environment: [String: String]
    ) async throws {
        switch arguments.command {
        case .help(let text): return terminal.line(text)
        case .version: return terminal.line(Help.versionLine)
        case .tour(let order): return try await Tour(terminal).run(order)
        case .inspect(let client, let action):
            let control = ControlClient(server: arguments.server, environment)
            return try await InspectCommand(control: control, terminal: terminal).run(client, action)
        case .tourChild(let directory): return try await TourDeath.child(directory, terminal)
        default: break
        }
        do {
            let context = try await open(arguments, terminal, environment)
            do { try await execute(context) } catch {
                await context.explain()
                await context.close(error)
                throw error
            }
            await context.explain()
            await context.close()
        } catch let error as LarderError {
            throw Failure(error, server: arguments.server)
        } catch let error as DiskError {
            throw Failure("\(error.description) Run 'larder doctor' to check the stores.")
        }
    }

    private static func open(
        _ arguments: Arguments,
        _ terminal: Terminal,
        _ environment: [String: String]
    ) async throws -> CommandContext {
        let requirement: CommandContext.Requirement
        switch arguments.command {
        case .cache, .doctor, .outbox(.list), .outbox(.drop): requirement = .storeOnly
        case .logout: requirement = .storedSession
        case .login: requirement = .newSession
        default: requirement = .session
        }
        return try await CommandContext(
            arguments,
            terminal,
            environment: environment,
            requirement: requirement
        )
    }

    private static func execute(_ context: CommandContext) async throws {
        switch context.arguments.command {
        case .help, .version, .tour, .tourChild, .inspect: break
        case .feed(let post):
            var command = FeedCommand(context)
            if let post { try await command.show(post) } else { try await command.run() }
            await context.finish()
        case .search(let text):
            if let text { try await SearchCommand(context).run(text) } else { try await SearchField(context).run() }
            await context.finish()
        case .profile(let who, let edits):
            try await ProfileCommand(context).run(who, edits)
            await context.finish()
        case .like(let post, let isLike): try await LikeCommand(context).run(post, isLike)
        case .accounts(let name):
            let command = BankCommand(context)
            if let name { try await command.account(name) } else { try await command.accounts() }
            await context.finish()
        case .transfer(let from, let to, let amount, let note):
            try await BankCommand(context).transfer(from, to, amount, note)
            await context.finish()
        case .chat(let conversation, let text, let photo):
            try await ChatCommand(context).run(conversation, send: text, photo: photo)
        case .tasks(let action): try await TasksCommand(context).run(action)
        case .sync:
            try await SyncCommand(context).run()
            await context.finish()
        case .outbox(let action): try await OutboxCommand(context).run(action)
        case .cache(let action): try await CacheCommand(context).run(action)
        case .images(let draw):
            try await ImagesCommand(context).run(draw: draw)
            await context.finish()
        case .doctor: try await DoctorCommand(context).run()
        case .login:
            try await SessionCommand(context).login()
            await context.finish()
        case .logout(let isForced): try await SessionCommand(context).logout(isForced: isForced)
        }
    }
}
