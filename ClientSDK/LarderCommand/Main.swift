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
        } catch {
            Terminal.fail("\(error)", code: error is UsageError ? 2 : 1)
        }
    }

    private static func run(
        _ arguments: Arguments,
        _ terminal: Terminal,
        _ environment: [String: String]
    ) async throws {
        // No store of an account is needed to read a file.
        if let file = arguments.recorder { return try RunReport.show(file, terminal) }
        switch arguments.name {
        case "help": return terminal.write(try Help.text(of: arguments.words.first) + "\n")
        case "version": return terminal.line(Help.versionLine)
        case "tour":
            if let directory = arguments.child { return try await TourDeath.child(directory, terminal) }
            return try await Tour(terminal: terminal).run(arguments)
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
        switch arguments.name {
        case "cache", "doctor": requirement = .storeOnly
        case "outbox": requirement = [.list, .drop].contains(try arguments.outboxAction().verb) ? .storeOnly : .session
        case "logout": requirement = .storedSession
        case "login": requirement = .newSession
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
        let (arguments, words) = (context.arguments, context.arguments.words)
        switch arguments.name {
        case "feed":
            let command = FeedCommand(context: context)
            if let post = words.first { try await command.show(post) } else { try await command.run() }
            await context.finish()
        case "search":
            let text = words.joined(separator: " ")
            if text.isEmpty {
                try await SearchField(context).run()
            } else {
                try await SearchCommand(context: context).run(text)
            }
            await context.finish()
        case "profile":
            try await ProfileCommand(context: context).run(words.first, arguments.edits)
            await context.finish()
        case "like", "unlike": try await LikeCommand(context: context).run(words[0], arguments.name == "like")
        case "accounts":
            let command = BankCommand(context: context)
            if let name = words.first { try await command.account(name) } else { try await command.accounts() }
            await context.finish()
        case "transfer":
            try await BankCommand(context: context).transfer(words[0], words[1], words[2], arguments.note ?? "")
            await context.finish()
        case "chat":
            try await ChatCommand(context: context).run(words.first, send: arguments.send, photo: arguments.photo)
        case "tasks": try await TasksCommand(context: context).run(try arguments.taskAction())
        case "sync":
            try await SyncCommand(context: context).run()
            await context.finish()
        case "outbox":
            let (verb, number) = try arguments.outboxAction()
            try await OutboxCommand(context: context).run(verb, number)
        case "cache": try CacheCommand(context: context).clear()
        case "images":
            try await ImagesCommand(context: context).run()
            await context.finish()
        case "doctor": try await DoctorCommand(context: context).run()
        case "login":
            try await SessionCommand(context: context).login()
            await context.finish()
        default: try await SessionCommand(context: context).logout(isForced: arguments.isForced)
        }
    }
}
