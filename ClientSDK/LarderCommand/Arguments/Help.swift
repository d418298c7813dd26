import Foundation
import LarderArguments
import LarderServer

/// The text of `larder help`.
enum Help {
    /// The version, and the commit if the command was installed from one (`share/larder/COMMIT`).
    static var versionLine: String {
        let file = Bundle.main.executableURL?.deletingLastPathComponent().appendingPathComponent(
            "../share/larder/COMMIT"
        )
        // A command that was built and not installed has no such file.
        let commit = file.flatMap { try? String(contentsOf: $0, encoding: .utf8) }
        return "larder \(MockBackend.version)" + (commit.map { " (\($0.prefix(12)))" } ?? "")
    }

    /// The help for a command; nil for all.
    static func text(of command: String?) throws(UsageError) -> String {
        let (table, options) = (Arguments.commands, Arguments.options)
        guard let command, command != "help" else { return all }
        let entry = try table.entry(command)
        let names = entry.options.union(options.names(of: Arguments.globalOptions))
        return table.help(of: entry) + "\n\n" + options.help(of: names)
    }

    private static var all: String {
        """
        larder: a terminal client for larder-server, built on the Larder SDK

        USAGE
          larder COMMAND [options]

        \(Arguments.commands.sections.map { Arguments.commands.help(of: $0) }.joined(separator: "\n\n"))

        \(Arguments.options.help())

        Exit codes: 0 success, also of a doctor that finds something; 1 failure of the server, the
        network or the disk; 2 invalid arguments.
        """
    }
}
