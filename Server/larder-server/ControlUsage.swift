import LarderArguments

/// The usage texts of the commands to a running server.
enum ControlUsage {
    struct Entry {
        let command: String
        let words: String
        var note = ""
    }

    static let all = [
        Entry(command: "act", words: "JSON", note: "executes a request as another person"),
        Entry(command: "actors", words: "[add JSON | remove ID | clear]"),
        Entry(command: "changes", words: "expire|repeatPage|emptyPage|reversePage|dropTombstones [TOKEN]"),
        Entry(
            command: "clock",
            words: "[freeze [TIME] | set TIME | run [FACTOR] | advance TIME | next | real]",
            note: "TIME: 90, 1h30m, 250ms"
        ),
        Entry(
            command: "conduct",
            words: "[--fail-on RULE,… | --fail-on any]",
            note: "a report of client behaviour; exit code 1 after a finding of these rules"
        ),
        Entry(
            command: "faults",
            words: "[add JSON | script JSON | remove ID | clear]",
            note: "JSON may be @FILE or -, here and in other commands"
        ),
        Entry(command: "gates", words: "[add JSON | release ID | remove ID | clear]"),
        Entry(command: "held", words: "[NUMBER release | NUMBER answer JSON]"),
        Entry(command: "journal", words: "[NUMBER [curl] | har [FILE] | clear]"),
        Entry(command: "ledger", words: "", note: "checks the consistency of the ledger"),
        Entry(command: "profile", words: "[NAME [off]]", note: "simulates a network"),
        Entry(
            command: "recording",
            words: "start | save FILE | stop",
            note: "records requests and replies, for proxy --play"
        ),
        Entry(
            command: "scenarios",
            words: "[NAME… | run [NAME…] [--timeout SECONDS] [--tap] [--junit FILE] -- COMMAND…]",
            note: "runs a client in named cases and judges it; exit code 1 unless all were passed"
        ),
        Entry(
            command: "verify",
            words: "JSON",
            note: "compares the journal with expectations; exit code 1 if one is not met"
        ),
        Entry(
            command: "wait",
            words: "JSON",
            note: "waits for a condition; exit code 1 if the time limit ends first"
        ),
        Entry(
            command: "worlds",
            words: "[create [ID [JSON]] | fork FROM [ID] | reset [ID] | destroy ID | snapshot NAME | restore NAME]"
        ),
    ]

    /// The command with its words.
    static func of(_ command: String) -> String {
        [command, all.first { $0.command == command }?.words ?? ""].filter { !$0.isEmpty }.joined(separator: " ")
    }

    /// The help for one command, or for all.
    static func help(_ command: String?) throws(UsageError) -> String {
        guard let command else {
            let lines = all.map { "  " + line($0) }.joined(separator: "\n")
            return lines + "\n  all accept [--server URL] [--world ID] [--control-token TOKEN] [--json]"
        }
        guard let entry = all.first(where: { $0.command == command }) else { throw unknown(command) }
        return line(entry)
    }

    static func unknown(_ command: String) -> UsageError {
        .unknown(
            "unknown command",
            command,
            in: all.map(\.command) + ["help", "init", "proxy"],
            orElse: "larder-server help lists all commands"
        )
    }

    private static func line(_ entry: Entry) -> String {
        "larder-server \(of(entry.command))" + (entry.note.isEmpty ? "" : "      \(entry.note)")
    }
}
