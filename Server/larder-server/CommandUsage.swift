import LarderArguments

/// The usage texts of the commands.
enum CommandUsage {
    struct Entry {
        let command: String
        let words: String
        var note = ""
        /// Whether it asks a running server.
        var isControl = true

        /// The command with its words.
        var usage: String { words.isEmpty ? command : "\(command) \(words)" }
    }

    static let all: [Entry] = [
        Entry(command: "serve", words: "[options]", note: "the same as larder-server [options]", isControl: false),
        Entry(
            command: "proxy",
            words: "--to URL | --play FILE [options]",
            note: "in front of your own server, or answers from a recording; --routes are asked first",
            isControl: false
        ),
        Entry(command: "init", words: "DIR", note: "writes an example of your own data for --data", isControl: false),
        Entry(
            command: "routes",
            words: "from FILE",
            note: "prints routes for --routes from OpenAPI (JSON or YAML) or HAR",
            isControl: false
        ),
        Entry(
            command: "certificate",
            words: "[--format pem|der|android] [--output FILE]",
            note: "the certificate that clients of --tls must trust",
            isControl: false
        ),
        Entry(
            command: "scenarios",
            words: "[NAME… | run [NAME…] [--timeout SECONDS] [--tap] [--junit FILE] -- COMMAND…]",
            note: "runs a client in named cases and judges it; exit code 1 unless all were passed",
            isControl: false
        ),
        Entry(command: "act", words: "JSON", note: "executes a request as another person"),
        Entry(command: "actors", words: "[list | add JSON | remove ID | clear]"),
        Entry(command: "changes", words: "expire|repeatPage|emptyPage|reversePage|dropTombstones [TOKEN]"),
        Entry(
            command: "clock",
            words: "[freeze [TIME] | set TIME | run [FACTOR] | advance TIME | next | real]",
            note: "TIME to advance: 90, 1h30m, 250ms"
        ),
        Entry(
            command: "conduct",
            words: "[--fail-on RULE,… | --fail-on any]",
            note: "a report of client behaviour; exit code 1 after a finding of these rules"
        ),
        Entry(
            command: "faults",
            words: "[list | add JSON | script JSON | remove ID | clear]",
            note: "JSON may be @FILE or -, here and in other commands"
        ),
        Entry(
            command: "files",
            words: "[list | write]",
            note: "files that were loaded; write: collections into --data"
        ),
        Entry(command: "gates", words: "[list | add JSON | release ID | remove ID | clear]"),
        Entry(command: "held", words: "[list | NUMBER release | NUMBER answer JSON]"),
        Entry(command: "journal", words: "[list | NUMBER [curl] | har [FILE] | clear]"),
        Entry(command: "ledger", words: "", note: "checks the consistency of the ledger"),
        Entry(command: "metrics", words: "", note: "counters and gauges in the text format of Prometheus"),
        Entry(command: "profile", words: "[list | NAME [off]]", note: "simulates a network"),
        Entry(
            command: "recording",
            words: "start | save FILE | stop",
            note: "records requests and replies, for proxy --play"
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
            words:
                "[list | create [ID [JSON]] | fork ID [NEW] | reset [ID] | destroy ID | snapshot|restore ID]"
        ),
    ]

    static func entry(_ command: String) throws(UsageError) -> Entry {
        if let entry = all.first(where: { $0.command == command }) { return entry }
        throw .unknown(
            "unknown command",
            command,
            in: all.map(\.command) + ["help"],
            orElse: "larder-server help lists all commands"
        )
    }

    /// The error for other words of a command than those that it takes.
    static func wrong(_ command: String) -> UsageError {
        let usage = all.first { $0.command == command }?.usage ?? command
        return UsageError(message: "usage: larder-server \(usage)")
    }
}
