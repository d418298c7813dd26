import Foundation
import Larder
import LarderArguments

/// The command: reads the arguments, opens the account's stores, and carries out what was asked for.
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
        case .help: return terminal.line(Help.text)
        case .version: return terminal.line("larder \(Help.version)")
        default: break
        }
        do {
            let kitchen = try await open(arguments, terminal, environment)
            do { try await carryOut(kitchen) } catch {
                kitchen.close(error)
                throw error
            }
            kitchen.close()
        } catch let error as LarderError {
            throw Failure(error, server: arguments.server)
        } catch let error as DiskError {
            throw Failure("\(error.description) larder doctor looks at the stores.")
        }
    }

    private static func open(
        _ arguments: Arguments,
        _ terminal: Terminal,
        _ environment: [String: String]
    ) async throws -> Kitchen {
        var bytesMaximum: Int64?
        let need: Kitchen.Need
        switch arguments.command {
        case .cache(let action):
            if case .trim(let bytes) = action { bytesMaximum = bytes }
            need = .nothing
        case .doctor, .outbox(.list), .outbox(.drop): need = .nothing
        case .logout: need = .session
        case .login: need = .newSignIn
        default: need = .signIn
        }
        return try await Kitchen(arguments, terminal, environment: environment, need: need, bytesMaximum: bytesMaximum)
    }

    private static func carryOut(_ kitchen: Kitchen) async throws {
        switch kitchen.arguments.command {
        case .help, .version: break
        case .feed:
            var command = FeedCommand(kitchen)
            try await command.run()
            await kitchen.finish()
        case .profile(let who, let edits):
            try await ProfileCommand(kitchen).run(who, edits)
            await kitchen.finish()
        case .like(let post, let isLike): try await LikeCommand(kitchen).run(post, isLike)
        case .accounts:
            try await BankCommand(kitchen).accounts()
            await kitchen.finish()
        case .transfer(let from, let to, let amount, let note):
            try await BankCommand(kitchen).transfer(from, to, amount, note)
            await kitchen.finish()
        case .chat(let conversation, let text): try await ChatCommand(kitchen).run(conversation, send: text)
        case .sync:
            try await SyncCommand(kitchen).run()
            await kitchen.finish()
        case .outbox(let action): try await OutboxCommand(kitchen).run(action)
        case .cache(let action): try await CacheCommand(kitchen).run(action)
        case .images(let draw):
            try await ImagesCommand(kitchen).run(draw: draw)
            await kitchen.finish()
        case .doctor(let format): try await DoctorCommand(kitchen).run(format)
        case .login:
            try await SessionCommand(kitchen).login()
            await kitchen.finish()
        case .logout(let isForced): try await SessionCommand(kitchen).logout(isForced: isForced)
        }
    }
}
