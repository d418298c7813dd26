import LarderArguments
import LarderServer

/// The text of `--help` and `help`.
enum Help {
    /// The version, and the commit if the server was installed from one (`share/larder/COMMIT`).
    static var versionLine: String {
        let path = FixtureDirectory.executable.flatMap { executable in
            executable.lastIndex(of: "/").map { "\(executable[..<$0])/../share/larder/COMMIT" }
        }
        let version = "larder-server \(MockBackend.version)"
        // A server that was built and not installed has no such file.
        guard let path, let commit = try? SourceFile.bytes(path) else { return version }
        return "\(version) (\(String(decoding: commit.prefix(12), as: UTF8.self)))"
    }

    /// The help for a command; nil for all.
    static func text(of command: String?) throws(UsageError) -> String {
        guard let command, command != "help", command != "serve" else { return all }
        let entry = try CommandUsage.table.entry(command)
        var parts = [CommandUsage.table.help(of: entry)]
        if CommandUsage.control.entries.contains(where: { $0.name == command }) {
            let options = ControlCommand.options
            parts.append(options.help(of: options.names(of: ControlCommand.commonOptions).union(entry.options)))
        }
        switch command {
        case "proxy": parts.append(Arguments.options.help())
        case "certificate": parts.append(CertificateCommand.options.help())
        case "scenarios": parts.append(ScenarioCommand.options.help())
        default: break
        }
        return parts.joined(separator: "\n\n")
    }

    private static var all: String {
        """
        larder-server — a mobile backend for local work and tests

        USAGE
          larder-server [options]
          larder-server COMMAND …

        \(CommandUsage.table.help(of: CommandUsage.local))

        \(Arguments.options.help())

        \(CommandUsage.table.help(of: CommandUsage.control))

        \(ControlCommand.options.help())

        ENVIRONMENT
          LARDER_FIXTURES         a directory of fixtures
          LARDER_CONTROL_TOKEN    the default of --control-token, also for commands
          LARDER_SERVER           the default of --server, for commands

        An invalid option prints one line and exits with code 2. SIGTERM and SIGINT stop gracefully.
        """
    }
}
