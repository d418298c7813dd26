import LarderArguments

/// The commands of `larder-server`.
enum CommandUsage {
    static let table = CommandTable("larder-server", [local, control])

    static let local = CommandTable.Section(
        "COMMANDS",
        [
            CommandEntry("serve [options]", "the same as larder-server [options]"),
            CommandEntry(
                "proxy --to URL | --play FILE [options]",
                "in front of your own server, or answers from a recording; --routes are asked first"
            ),
            CommandEntry("init DIR", "writes an example of your own data for --data"),
            CommandEntry(
                "routes from FILE",
                "prints routes for --routes from OpenAPI (JSON or YAML) or HAR"
            ),
            CommandEntry(
                "certificate [--format pem|der|android] [--output FILE]",
                "the certificate that clients of --tls must trust"
            ),
            CommandEntry(
                "scenarios [NAME… | run [NAME…] [options] -- COMMAND…]",
                "runs a client in named cases and judges it; exit code 1 unless all were passed"
            ),
        ]
    )

    /// Those that ask a running server.
    static let control = CommandTable.Section(
        "COMMANDS TO A RUNNING SERVER",
        [
            CommandEntry("act JSON", "executes a request as another person"),
            CommandEntry("actors [list | add JSON | remove ID | clear]"),
            CommandEntry(
                "clients [list | ID (offline | online | (show | hide | invalidate | refresh) KEY | drop OPERATION)]",
                "what connected clients hold, and asks one (APIClient.Configuration.inspector)"
            ),
            CommandEntry(
                "clock [freeze [TIME] | set TIME | run [FACTOR] | advance TIME | next | real]",
                "TIME to advance: 90, 1h30m, 250ms"
            ),
            CommandEntry(
                "conduct [--device NAME] [--fail-on RULE,… | --fail-on any]",
                "a report of client behaviour; exit code 1 after a finding of these rules",
                options: ["--device", "--fail-on"]
            ),
            CommandEntry(
                "faults [list | add JSON | script JSON | remove ID | clear]",
                "JSON may be @FILE or -, here and in other commands"
            ),
            CommandEntry("files [list | write]", "files that were loaded; write: collections into --data"),
            CommandEntry(
                "gates [list | add JSON | release ID | remove ID | clear]",
                #"holds exchanges: gates add '{"id":"g","match":{"path":"/todos"}}'"#
            ),
            CommandEntry("held [list | NUMBER release | NUMBER answer JSON]"),
            CommandEntry(
                "journal [list [--device NAME] | NUMBER [curl] | har [FILE] | clear]",
                options: ["--device"]
            ),
            CommandEntry("ledger", "checks the consistency of the ledger"),
            CommandEntry("metrics", "counters and gauges in the text format of Prometheus"),
            CommandEntry("journey [list | NAME [off]]", "simulates a network"),
            CommandEntry(
                "recording start | save FILE | stop",
                "records requests and replies, for proxy --play"
            ),
            CommandEntry(
                "verify JSON",
                """
                compares the journal with expectations; exit code 1 if one is not met:
                      verify '{"expect":[{"match":{"path":"/todos","status":"2xx"},"exactly":1}]}'
                """
            ),
            CommandEntry(
                "wait JSON",
                """
                waits for a condition; exit code 1 if the time limit ends first:
                      wait '{"entries":{"path":"/todos","count":2},"timeoutSeconds":5}'
                """
            ),
            CommandEntry(
                "worlds [list | create [ID [JSON]] | fork ID [NEW] | reset [ID] | destroy ID | snapshot|restore ID]"
            ),
        ]
    )
}
